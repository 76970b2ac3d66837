import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import { guardProblems, requireEvent } from './guards.ts'
import { addressOf, emailIdentifier } from './identifier-body.ts'
import { experienceRoute } from './route.ts'

/** Tokens that whoever runs the issuer has sent to an address. */
export const oneTimeTokenRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/one-time-token/verify',
    operationId: 'verifyOneTimeToken',
    summary: 'Proves an address by a one-time token that was sent there.',
    body: z.object({ identifier: emailIdentifier, token: z.string().min(1).max(256) }),
    status: 200,
    response: verification,
    problems: [
      ...guardProblems.event,
      ...attemptProblems,
      'one_time_token.token_not_found',
      'one_time_token.email_mismatch',
      'one_time_token.token_expired',
      'one_time_token.token_consumed',
      'one_time_token.token_revoked',
      'one_time_token.interaction_event_mismatch',
    ],
    async handle(call) {
      const { operations, interaction, visitor, body, request, count } = call
      requireEvent(call, 'SignIn', 'Register')
      const input = { identifier: addressOf(body.identifier), token: body.token }
      const attempt = await operations.oneTimeTokens.prove(interaction, visitor, input, request)
      count('one_time_token', attempt.outcome)
      const wrong = () => problem(attempt.refusal ?? 'one_time_token.token_not_found')
      return { body: { verificationId: provenBy(attempt, wrong) } }
    },
  }),
]
