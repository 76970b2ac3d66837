import type { Query } from '../../../platform/database/database.ts'
import type { AppError } from '../../../platform/problem.ts'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { Interaction } from '../../interaction/interaction-store.ts'
import { personAddress } from '../../interaction/person-store.ts'
import type { Standing } from '../../interaction/standing.ts'
import type { Step, StepName } from '../../interaction/step.ts'
import { factorsOf, masked } from './factor-names.ts'
import type { Call } from './route.ts'

interface Due {
  query: Query
  interaction: Interaction
  step: Step
}

type AnswerTo = (due: Due) => AppError | Promise<AppError>

const answers: Readonly<Record<StepName, AnswerTo | undefined>> = {
  sign_in: () => problem('session.identifier_not_found'),
  register: ({ interaction: { state }, step: { options } }) =>
    state.identified === undefined
      ? problem('session.identifier_not_found')
      : problem('user.missing_profile', { data: { missingProfile: options.missing ?? [] } }),
  reset: () => problem('session.identifier_not_found'),
  mfa: async (due) =>
    problem('session.mfa.require_mfa_verification', {
      data: {
        availableFactors: factorsOf(due.step.options.proofs ?? []),
        maskedIdentifiers: await maskedIdentifiers(due),
      },
    }),
  new_password: ({ step: { reasons } }) =>
    reasons.includes('password_expired')
      ? problem('password.expired')
      : problem('user.new_password_required_in_profile'),
  profile: ({ step: { options } }) =>
    problem('user.missing_profile', { data: { missingProfile: options.missing ?? [] } }),
  enrol: ({ step: { options, reasons } }) =>
    reasons.includes('backup_codes')
      ? problem('session.mfa.backup_code_required')
      : problem('user.missing_mfa', {
          data: { availableFactors: options.factors ?? [], skippable: options.isSkippable === true },
        }),
  passkey: () => problem('user.passkey_preferred'),
  terms: () => problem('session.terms_of_use_required'),
  captcha: () => problem('session.captcha_required'),
  blocked: ({ step: { reasons, options } }) => {
    if (reasons.includes('user_suspended'))
      return problem('user.suspended', { status: experienceStatuses['user.suspended'] })
    if (!reasons.includes('denied_by_rules') && !reasons.includes('required')) {
      return problem('auth.forbidden', { detail: 'The settings do not allow this.' })
    }
    return problem('session.denied', { data: { reason: options.description ?? null } })
  },
  select_account: undefined,
  consent: undefined,
  denied: undefined,
  done: undefined,
}

/** What `problemOfStep` may say. */
export const stepProblems: readonly ProblemCode[] = [
  'session.identifier_not_found',
  'user.missing_profile',
  'session.mfa.require_mfa_verification',
  'password.expired',
  'user.new_password_required_in_profile',
  'session.mfa.backup_code_required',
  'user.missing_mfa',
  'user.passkey_preferred',
  'session.terms_of_use_required',
  'session.captcha_required',
  'user.suspended',
  'auth.forbidden',
  'session.denied',
]

/** Logto's, where it is not that of the problem table. */
export const experienceStatuses: Readonly<Partial<Record<ProblemCode, number>>> = { 'user.suspended': 401 }

/**
 * What existing clients are told of a step that is due. Undefined: there is nothing to be told, the browser goes on to
 * `/oidc/auth/<id>` and to pages of ours. Who does not get on is noted for the operator.
 */
export const problemOfStep = async (
  { query, operations, visitor, requestId, ...call }: Call,
  standing: Standing,
  interaction = call.interaction,
): Promise<AppError | undefined> => {
  const { step } = standing
  if (step.step === 'blocked') operations.noteBlocked(interaction, visitor, standing, requestId)
  return answers[step.step]?.({ query, interaction, step })
}

const maskedFactors = { EmailVerificationCode: 'email', PhoneVerificationCode: 'phone' } as const

/** Where codes would go, by factor. */
const maskedIdentifiers = async ({ query, interaction: { person }, step }: Due): Promise<Record<string, string>> => {
  const told: Record<string, string> = {}
  for (const name of factorsOf(step.options.proofs ?? [])) {
    if (!person || (name !== 'EmailVerificationCode' && name !== 'PhoneVerificationCode')) continue
    const address = await personAddress(query, person.id, maskedFactors[name])
    if (address !== undefined) told[name] = masked(address)
  }
  return told
}
