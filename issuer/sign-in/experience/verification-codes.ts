import { z } from 'zod'
import type { AppError } from '../../../platform/problem.ts'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'
import type { CodeRefusal, CodeRequest } from '../../interaction/code-proof.ts'
import { type InteractionEventName, interactionEvents } from '../../interaction/interaction-state.ts'
import { codeKindOf, firstFactors, recoveryFactors, registrationFactors } from '../../interaction/settings.ts'
import { verification } from './answers.ts'
import { attemptProblems, provenBy } from './attempt-problems.ts'
import { guardProblems, isIdentified, requireAllowed, requireFactor, requirePerson, requireProven } from './guards.ts'
import { addressIdentifier, addressOf, identifierOf } from './identifier-body.ts'
import { type Call, experienceRoute } from './route.ts'

/** Codes by mail and text message: who somebody is, what somebody new or somebody known gets, and second factors. */

const code = z.string().min(1).max(32)
const verificationId = z.string().max(64)

const purposes = { SignIn: 'sign_in', Register: 'register', ForgotPassword: 'reset' } as const satisfies Record<
  InteractionEventName,
  CodeRequest['purpose']
>

/** Whoever has been identified gets one more address by it. */
const purposeOf = async (call: Call, type: 'email' | 'phone'): Promise<CodeRequest['purpose']> => {
  const { interaction } = call
  if (interaction.event !== 'SignIn' || !isIdentified(interaction)) return purposes[interaction.event]
  await requireProven(call)
  const has = { email: interaction.person?.hasEmail, phone: interaction.person?.hasPhone }
  if (has[type]) throw problem(`user.${type}_exists_in_profile`)
  return 'bind'
}

const isWanted = ({ settings }: Call, purpose: CodeRequest['purpose'], type: 'email' | 'phone'): boolean => {
  const kind = codeKindOf(type)
  if (purpose === 'reset') return recoveryFactors(settings).includes(kind)
  if (purpose === 'sign_in') return firstFactors(settings).includes(kind)
  return purpose === 'bind' || registrationFactors(settings).includes(kind)
}

const sendProblems: readonly ProblemCode[] = [
  'request.message_rate_limited',
  'connector.not_found',
  'session.email_blocklist.email_not_allowed',
  'session.email_blocklist.email_subaddressing_not_allowed',
  'session.captcha_required',
]

const send = async (call: Call, asked: Omit<CodeRequest, 'locale' | 'tellsOwner'>): Promise<string> => {
  const { operations, interaction, visitor, request, locale } = call
  // Whoever has the mailbox is told that the address is somebody's, by the answer to the right code.
  const sent = await operations.codes.send(interaction, visitor, { ...asked, locale, tellsOwner: false }, request)
  switch (sent.outcome) {
    case 'sent':
      await sent.afterCommit()
      return sent.proofId
    case 'limited':
      throw problem('request.message_rate_limited')
    case 'no_connector':
      throw problem('connector.not_found')
    case 'invalid_recipient':
      if (sent.refusal) throw problem(sent.refusal)
      throw problem('guard.invalid_input', { detail: 'identifier: no message can be sent there' })
    case 'captcha_required':
      throw problem('session.captcha_required')
    case 'over':
      throw problem('session.not_found')
  }
}

const refusals: Readonly<Record<CodeRefusal, (type: 'email' | 'phone') => AppError>> = {
  not_found: () => problem('verification_code.not_found'),
  used: () => problem('session.verification_failed'),
  expired: () => problem('verification_code.expired'),
  exceeded: () => problem('verification_code.exceed_max_try'),
  wrong_code: () => problem('verification_code.code_mismatch'),
  wrong_address: (type) => problem(`verification_code.${type}_mismatch`),
}

const refusalProblems: readonly ProblemCode[] = [
  'verification_code.not_found',
  'session.verification_failed',
  'verification_code.expired',
  'verification_code.exceed_max_try',
  'verification_code.code_mismatch',
  'verification_code.email_mismatch',
  'verification_code.phone_mismatch',
]

const verified = (
  { count }: Call,
  type: 'email' | 'phone',
  attempt: AttemptOutcome & { refusal?: CodeRefusal | undefined },
): string => {
  count(codeKindOf(type), attempt.outcome)
  return provenBy(attempt, () => refusals[attempt.refusal ?? 'wrong_code'](type))
}

const mfaFactors = { email: 'EmailVerificationCode', phone: 'PhoneVerificationCode' } as const
const identifierType = z.enum(['email', 'phone'])

export const codeRoutes = [
  experienceRoute({
    method: 'POST',
    path: '/verification/verification-code',
    operationId: 'sendVerificationCode',
    summary: 'Sends a code to an address, or tells nobody that none was sent.',
    body: z.object({ identifier: addressIdentifier, interactionEvent: z.enum(interactionEvents) }),
    status: 200,
    response: verification,
    problems: [
      'session.invalid_interaction_type',
      ...guardProblems.allowed,
      ...guardProblems.proven,
      'user.email_exists_in_profile',
      'user.phone_exists_in_profile',
      'user.sign_in_method_not_enabled',
      ...sendProblems,
    ],
    async handle(call) {
      const { interaction, body } = call
      if (body.interactionEvent !== interaction.event) throw problem('session.invalid_interaction_type')
      const identifier = addressOf(body.identifier)
      const { type } = body.identifier
      requireAllowed(call)
      const purpose = await purposeOf(call, type)
      if (!isWanted(call, purpose, type)) throw problem('user.sign_in_method_not_enabled')
      return { body: { verificationId: await send(call, { purpose, identifier }) } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/verification-code/verify',
    operationId: 'verifyVerificationCode',
    summary: 'Proves an address by the code that was sent there.',
    body: z.object({ identifier: addressIdentifier, verificationId, code }),
    status: 200,
    response: verification,
    problems: [...attemptProblems, ...refusalProblems],
    async handle(call) {
      const { operations, interaction, visitor, body, request } = call
      const answer = {
        proofId: body.verificationId,
        code: body.code,
        identifier: identifierOf(body.identifier),
      }
      const attempt = await operations.codes.verify(interaction, visitor, answer, request)
      return { body: { verificationId: verified(call, body.identifier.type, attempt) } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/mfa-verification-code',
    operationId: 'sendMfaVerificationCode',
    summary: 'Sends a code to the address of the person.',
    body: z.object({ identifierType }),
    status: 200,
    response: verification,
    problems: [...guardProblems.person, ...guardProblems.factor, ...sendProblems],
    async handle(call) {
      requirePerson(call)
      const type = call.body.identifierType
      requireFactor(call, mfaFactors[type])
      return { body: { verificationId: await send(call, { purpose: 'mfa', identifier: { type } }) } }
    },
  }),

  experienceRoute({
    method: 'POST',
    path: '/verification/mfa-verification-code/verify',
    operationId: 'verifyMfaVerificationCode',
    summary: 'Proves a second factor by the code that was sent.',
    body: z.object({ verificationId, code, identifierType }),
    status: 200,
    response: verification,
    problems: [...guardProblems.person, ...guardProblems.factor, ...attemptProblems, ...refusalProblems],
    async handle(call) {
      const { operations, interaction, visitor, body, request } = call
      requirePerson(call)
      requireFactor(call, mfaFactors[body.identifierType])
      const answer = { proofId: body.verificationId, code: body.code }
      const attempt = await operations.codes.verify(interaction, visitor, answer, request)
      return { body: { verificationId: verified(call, body.identifierType, attempt) } }
    },
  }),
]
