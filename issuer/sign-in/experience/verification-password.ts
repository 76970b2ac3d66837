import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { password } from '../../directory/users/user.ts'
import { findInteraction } from '../../interaction/interaction-store.ts'
import { verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import { guardProblems, requireAllowed, requireEvent } from './guards.ts'
import { anyIdentifier, identifierOf } from './identifier-body.ts'
import { passwordProblems, rejected, usernameProblems } from './password-problems.ts'
import { experienceRoute } from './route.ts'

/** Passwords, and the names and passwords of people who are new. */
export const passwordRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/password',
    operationId: 'verifyPassword',
    summary: 'Proves who it is by a password.',
    body: z.object({ identifier: anyIdentifier, password }),
    status: 200,
    response: verification,
    problems: [...guardProblems.event, ...attemptProblems, 'session.invalid_credentials', 'password.expired'],
    hashes: true,
    async handle(call) {
      const { query, operations, interaction, visitor, body, request, count } = call
      requireEvent(call, 'SignIn')
      const input = { identifier: identifierOf(body.identifier), password: body.password }
      const attempt = await operations.passwords.prove(interaction, visitor, input, request)
      count('password', attempt.outcome)
      const verificationId = provenBy(attempt, () => problem('session.invalid_credentials'))
      const proven = await findInteraction(query, interaction.id)
      const situation = proven && (await operations.standingOf(query, proven, visitor)).situation
      // It proves who it is all the same: whoever goes on has to set another one before anything else.
      if (situation?.person?.isPasswordExpired) {
        throw problem('password.expired', { data: { verificationId } })
      }
      return { body: { verificationId } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/new-password-identity',
    operationId: 'createPasswordIdentity',
    summary: 'Takes the user name and password of somebody new.',
    body: z.object({ identifier: z.object({ type: z.literal('username'), value: z.string().max(128) }), password }),
    status: 200,
    response: verification,
    problems: [...guardProblems.event, ...guardProblems.allowed, ...usernameProblems, ...passwordProblems],
    hashes: true,
    async handle(call) {
      requireEvent(call, 'Register')
      requireAllowed(call)
      const { identifier, password: chosen } = call.body
      const identity = { username: identifier.value, password: chosen }
      const staged = await call.operations.staging.identity(call.interaction, identity, call.visitor)
      if (staged.outcome !== 'staged') throw rejected(staged)
      return { body: { verificationId: staged.id } }
    },
  }),
]
