import { z } from 'zod'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import { authenticationCredential, registrationCredential } from '../../directory/users/factors/index.ts'
import type { Identifier } from '../../interaction/identifier.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { findPendingProof, findWaiting } from '../../interaction/proof-store.ts'
import type { ProofPurpose } from '../../interaction/proofs.ts'
import { authenticationAnswer, registrationAnswer, verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import {
  guardProblems,
  requireEnrolment,
  requireEvent,
  requireFactor,
  requirePasskeys,
  requirePerson,
} from './guards.ts'
import { anyIdentifier, identifierOf } from './identifier-body.ts'
import { type Call, experienceRoute } from './route.ts'

/** Passkeys: new ones, as a second factor, and to sign in with alone. */

const verificationId = z.string().max(64)
const failed = () => problem('session.mfa.webauthn_verification_failed')

const requirePasskeySignIn = (call: Call): void => {
  requireEvent(call, 'SignIn')
  if (!call.settings.passkeySignIn.enabled) throw problem('user.sign_in_method_not_enabled')
}

const optionsFor = async (call: Call, purpose: 'sign_in' | 'mfa', identifier?: Identifier) => {
  const made = await call.operations.passkeys.authentication(call.interaction, purpose, call.visitor, identifier)
  if (!made) throw problem('session.not_found')
  return { body: { verificationId: made.proofId, authenticationOptions: made.options } }
}

/** A challenge that was made for the one does not do for the other. */
const requireChallenge = async ({ query, interaction }: Call, id: string, purpose: ProofPurpose): Promise<void> => {
  const waiting = await findWaiting(query, interaction.id, id)
  if (interaction.proofs.some((proof) => proof.id === id)) throw problem('session.verification_failed')
  if (waiting?.kind !== 'passkey' || waiting.purpose !== purpose) {
    throw problem('session.verification_session_not_found')
  }
}

const proven = async (call: Call, id: string, payload: z.output<typeof authenticationCredential>) => {
  const { operations, interaction, visitor, request, count } = call
  const answer = { proofId: id, credential: payload }
  const attempt = await operations.passkeys.prove(interaction, visitor, answer, request)
  count('passkey', attempt.outcome)
  return { body: { verificationId: provenBy(attempt, failed) } }
}

const signInProblems: readonly ProblemCode[] = [...guardProblems.event, 'user.sign_in_method_not_enabled']
const challengeProblems: readonly ProblemCode[] = [
  'session.verification_failed',
  'session.verification_session_not_found',
  'session.mfa.webauthn_verification_failed',
]

export const passkeyRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/web-authn/registration',
    operationId: 'createPasskeyRegistration',
    summary: 'Asks the browser for a new passkey.',
    status: 200,
    response: registrationAnswer,
    problems: [...guardProblems.factor, ...guardProblems.enrolment],
    async handle(call) {
      const { query, operations, interaction } = call
      requirePasskeys(call)
      const due = await requireEnrolment(call)
      const { person, staged } = interaction
      const account = person && (await findAccount(query, person.id))
      const address = interaction.proofs.find(({ data }) => data.identifier)?.data.identifier?.value
      const name = account?.identifier ?? staged.username ?? address ?? ''
      const displayName = account?.name ?? name
      const isConditional = due?.options.isConditional ?? false
      const made = await operations.passkeys.registration(interaction, { name, displayName, isConditional })
      if (!made) throw problem('session.not_found')
      return { body: { verificationId: made.proofId, registrationOptions: made.options } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/web-authn/registration/verify',
    operationId: 'verifyPasskeyRegistration',
    summary: 'Takes the new passkey.',
    body: z.object({ verificationId, payload: registrationCredential }),
    status: 200,
    response: verification,
    problems: [...guardProblems.factor, ...guardProblems.enrolment, ...challengeProblems],
    async handle(call) {
      const { operations, interaction, visitor, body } = call
      requirePasskeys(call)
      await requireEnrolment(call)
      await requireChallenge(call, body.verificationId, 'bind')
      const answer = { proofId: body.verificationId, credential: body.payload }
      if (!(await operations.passkeys.bind(interaction, visitor, answer))) throw failed()
      return { body: { verificationId: body.verificationId } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/web-authn/authentication',
    operationId: 'createPasskeyAuthentication',
    summary: 'Asks the browser for a passkey of the person, as a second factor.',
    status: 200,
    response: authenticationAnswer,
    problems: [...guardProblems.factor, ...guardProblems.person],
    handle(call) {
      requireFactor(call, 'WebAuthn')
      requirePerson(call)
      return optionsFor(call, 'mfa')
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/web-authn/authentication/verify',
    operationId: 'verifyPasskeyAuthentication',
    summary: 'Proves a second factor by a passkey.',
    body: z.object({ verificationId, payload: authenticationCredential }),
    status: 200,
    response: verification,
    problems: [...guardProblems.factor, ...guardProblems.person, ...attemptProblems, ...challengeProblems],
    async handle(call) {
      const { body } = call
      requireFactor(call, 'WebAuthn')
      requirePerson(call)
      await requireChallenge(call, body.verificationId, 'mfa')
      return proven(call, body.verificationId, body.payload)
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/preflight/sign-in-passkey/authentication',
    operationId: 'createPasskeySignIn',
    summary: 'Asks the browser for any passkey of this issuer.',
    status: 200,
    response: authenticationAnswer,
    problems: [...signInProblems],
    async handle(call) {
      requirePasskeySignIn(call)
      return optionsFor(call, 'sign_in')
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/sign-in-passkey/authentication',
    operationId: 'createPasskeySignInOf',
    summary: 'Asks the browser for a passkey of one account.',
    body: z.object({ identifier: anyIdentifier }),
    status: 200,
    response: authenticationAnswer,
    problems: [...signInProblems],
    async handle(call) {
      requirePasskeySignIn(call)
      return optionsFor(call, 'sign_in', identifierOf(call.body.identifier))
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/sign-in-passkey/authentication/verify',
    operationId: 'verifyPasskeySignIn',
    summary: 'Proves who it is by a passkey.',
    body: z.object({ verificationId: verificationId.optional(), payload: authenticationCredential }),
    status: 200,
    response: verification,
    problems: [...signInProblems, ...attemptProblems, ...challengeProblems],
    async handle(call) {
      const { query, interaction, body } = call
      requirePasskeySignIn(call)
      // Without an id: the challenge that was asked for last.
      const id = body.verificationId ?? (await findPendingProof(query, interaction.id, 'passkey', 'sign_in'))?.id ?? ''
      await requireChallenge(call, id, 'sign_in')
      return proven(call, id, body.payload)
    },
  }),
]
