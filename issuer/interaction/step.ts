import type { SecondFactor } from './person-facts.ts'
import type { ProofKindName } from './proofs.ts'
import type { ProfileField } from './required-profile.ts'

export type StepName =
  | 'sign_in'
  | 'register'
  | 'reset'
  | 'mfa'
  | 'new_password'
  | 'profile'
  | 'enrol'
  | 'passkey'
  | 'terms'
  | 'captcha'
  | 'select_account'
  | 'consent'
  | 'done'
  | 'denied'
  | 'blocked'

export type Reason =
  | 'no_session'
  | 'login'
  | 'max_age'
  | 'hint'
  | 'acr'
  | 'another_account'
  /** What was proven first cannot be the second factor too, and there is no other one: another proof comes first. */
  | 'another_factor'
  | 'select_account'
  | 'consent'
  | 'create'
  | 'forgot_password'
  | 'password_expired'
  /** The rules ask for it; the shipped ones because the settings do, or because the person has a second factor. */
  | 'required'
  | 'backup_codes'
  | 'suggested'
  | 'missing_profile'
  | 'terms'
  | 'captcha'
  | 'user_suspended'
  | 'denied_by_rules'
  /** What is asked for cannot be had by this person. */
  | 'out_of_reach'

export interface StepOptions {
  /** `sign_in`, `register`, `reset`, `mfa`: the kinds of proof that lead on. */
  proofs?: readonly ProofKindName[]
  /** `enrol`: the factors that may be added. */
  factors?: readonly SecondFactor[]
  /** `enrol`, `passkey`: the person may go on without. */
  isSkippable?: boolean
  /** `passkey`: the browser may make it by itself (`mediation: 'conditional'`). */
  isConditional?: boolean
  /** `profile`, `register`: what is missing. */
  missing?: readonly ProfileField[]
  /** `denied`: what the client is told. `blocked`: what the rules say. */
  error?: DenialError
  description?: string
}

export interface Step {
  step: StepName
  /** Why; empty when `done`. */
  reasons: readonly Reason[]
  options: StepOptions
}

export type DenialError = 'access_denied' | 'login_required'

export const step = (name: StepName, reasons: readonly Reason[] = [], options: StepOptions = {}): Step => ({
  step: name,
  reasons,
  options,
})

export const denied = (error: DenialError, description: string, reasons: readonly Reason[] = []) =>
  step('denied', reasons, { error, description })

/** What a request with `prompt=none` is refused with (OpenID Connect Core §3.1.2.6). */
export interface RefusalWithoutPages {
  error: 'account_selection_required' | 'consent_required' | 'interaction_required' | DenialError
  description: string
}

const interactionRequired: RefusalWithoutPages = {
  error: 'interaction_required',
  description: 'The user has to do something first.',
}
const loginRequired: RefusalWithoutPages = { error: 'login_required', description: 'The user has to sign in.' }

export const refusalWithoutPages: Readonly<Record<Exclude<StepName, 'done'>, RefusalWithoutPages>> = {
  sign_in: loginRequired,
  register: loginRequired,
  reset: loginRequired,
  mfa: loginRequired,
  new_password: interactionRequired,
  profile: interactionRequired,
  enrol: interactionRequired,
  passkey: interactionRequired,
  terms: interactionRequired,
  captcha: interactionRequired,
  select_account: { error: 'account_selection_required', description: 'The user has to choose an account.' },
  consent: { error: 'consent_required', description: 'The user has to allow this.' },
  denied: { error: 'access_denied', description: 'The user refused.' },
  blocked: { error: 'access_denied', description: 'The user may not sign in.' },
}
