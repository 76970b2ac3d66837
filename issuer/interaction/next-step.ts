import type { SignInDecision } from '../../policies/sign-in.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import { type Acr, acrs, type Session } from '../tokens/sessions/session.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { isConsentNeeded } from './consent.ts'
import type { InteractionEventName, InteractionState, Staged } from './interaction-state.ts'
import { type PersonFacts, type SecondFactor, secondFactors } from './person-facts.ts'
import {
  authenticating,
  authenticationBy,
  identifies,
  isAtLeast,
  type Proof,
  type ProofKindName,
  purposesOf,
  reachableAcr,
  satisfiesAcr,
  weakestAcr,
} from './proofs.ts'
import { missingProfile, type ProfileField } from './required-profile.ts'
import { allows, firstFactors, recoveryFactors, registrationFactors, type SignInSettings } from './settings.ts'

/** What an interaction is about and what is known of who stands before it. */
export interface Situation {
  event: InteractionEventName
  request: AuthorizationRequest
  client: Pick<AuthorizationClient, 'type' | 'isThirdParty'>
  settings: SignInSettings
  /** Of this browser. */
  session: KnownSession | undefined
  /** Of this interaction. */
  proofs: readonly Proof[]
  staged: Staged
  /** Whom the proofs name, when they name somebody. */
  person: PersonFacts | undefined
  /** What the rules say of that person. */
  decision: SignInDecision | undefined
  /** Of the person whom `whoIsIt` names; only third-party applications need it. */
  consent: Consent | undefined
  state: InteractionState
}

/** `age`: seconds since the person authenticated, by the database's clock. */
export type KnownSession = Pick<Session, 'id' | 'userId' | 'acr'> & { age: number }

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

const step = (name: StepName, reasons: readonly Reason[] = [], options: StepOptions = {}): Step => ({
  step: name,
  reasons,
  options,
})

const denied = (error: DenialError, description: string, reasons: readonly Reason[] = []) =>
  step('denied', reasons, { error, description })

/** Whose sign-in it is: who proved it here, else who has the session. Somebody new is nobody yet. */
export const whoIsIt = ({ event, session, proofs }: Pick<Situation, 'event' | 'session' | 'proofs'>) =>
  proofs.find(identifies)?.userId ?? (event === 'Register' ? undefined : session?.userId)

/**
 * What comes next, of what is known alone. Pages show it, and `finish` asks it again, of locked rows, before anything
 * is committed: no way around a step leads to a code.
 */
export const nextStep = (situation: Situation): Step => {
  if (situation.state.isCancelled) return denied('access_denied', 'The sign-in was cancelled.')
  for (const ask of stepsOf[situation.event]) {
    const due = ask(situation)
    if (due) return due
  }
  return step('done')
}

type Ask = (situation: Situation) => Step | undefined

// An address that is nobody's may have been proven: that is a beginning of an account, and no sign-in.
const isProven = ({ proofs }: Situation): boolean => proofs.some((proof) => identifies(proof) && proof.userId !== null)

const isProvenBy = ({ proofs }: Situation, kind: ProofKindName): boolean =>
  proofs.some((proof) => identifies(proof) && proof.kind === kind)

const signIn: Ask = (situation) => {
  const isAllowed = allows(situation.settings, 'SignIn')
  if (isProven(situation)) return isAllowed ? undefined : step('blocked', ['out_of_reach'])
  const reasons = reasonsToSignIn(situation)
  if (reasons.length === 0) return undefined
  if (!isAllowed) return step('blocked', [...reasons, 'out_of_reach'])
  return step('sign_in', reasons, { proofs: firstFactors(situation.settings) })
}

const selectAccount: Ask = (situation) =>
  !isProven(situation) && situation.request.prompts.includes('select_account') && !isChosen(situation)
    ? step('select_account', ['select_account'])
    : undefined

// OpenID Connect Core §3.1.2.1, `id_token_hint`: somebody else has signed in.
const expectedPerson: Ask = (situation) => {
  const { expectedUserId } = situation.request
  return expectedUserId !== undefined && expectedUserId !== whoIsIt(situation)
    ? denied('login_required', 'Another user has signed in than the one whom the client expects.', ['hint'])
    : undefined
}

/** Only of whoever proves something here: that a session goes on was decided when it began. */
const rules: Ask = ({ decision }) =>
  decision?.allow === false
    ? step('blocked', ['denied_by_rules'], decision.reason === undefined ? {} : { description: decision.reason })
    : undefined

const captcha: Ask = ({ event, decision, state, proofs }) => {
  if (!decision?.require.includes('captcha') || state.captcha === true) return undefined
  // For browsers without scripts: whoever reads a mailbox is no program of many.
  const wanted = purposesOf[event]
  return proofs.some(({ kind, purpose }) => kind === 'email_code' && wanted.includes(purpose))
    ? undefined
    : step('captcha', ['captcha'])
}

const [, multiFactor, strongest] = acrs

/**
 * The classes that the rules insist on. The shipped ones do what the settings say. Who has no passkey yet, and has to
 * add one, shows the second factor that there is before: a password alone must not add another.
 */
const demandedAcrs = ({ decision }: Situation): Acr[] => {
  if (decision?.require.includes('phr')) return [strongest, multiFactor]
  return decision?.require.includes('mfa') ? [multiFactor] : []
}

const mfa: Ask = (situation) => {
  const { settings, person, request } = situation
  if (!person || !isProven(situation)) return undefined
  const proven = authenticating(situation.proofs).map(({ kind }) => kind)
  const usable = settings.mfa.factors
    .filter((name) => secondFactors[name].isHeld(person))
    .map((name) => secondFactors[name].proof)
  const leadingTo = (wanted: Acr) => usable.filter((kind) => isAtLeast(reachableAcr([...proven, kind]), wanted))
  const acr = reachableAcr(proven)
  const wishes: [Acr | undefined, Reason][] = [
    ...demandedAcrs(situation).map((wanted): [Acr, Reason] => [wanted, 'required']),
    [weakestAcr(request.acrValues), 'acr'],
  ]
  // The strongest first: one proof may do for all. What the person cannot reach here is a matter of `enrol`.
  for (const [wanted, reason] of wishes.toSorted(([one], [other]) => strengthOf(other) - strengthOf(one))) {
    if (wanted === undefined || isAtLeast(acr, wanted)) continue
    const proofs = leadingTo(wanted)
    if (proofs.length > 0) return step('mfa', [reason], { proofs })
  }
  return undefined
}

const strengthOf = (acr: Acr | undefined): number => (acr === undefined ? -1 : acrs.indexOf(acr))

// Told only to who has proven everything.
const suspended: Ask = ({ person }) => (person?.isSuspended ? step('blocked', ['user_suspended']) : undefined)

const expiredPassword: Ask = (situation) =>
  situation.person?.isPasswordExpired && isProvenBy(situation, 'password') && !situation.staged.password
    ? step('new_password', ['password_expired'])
    : undefined

const profile: Ask = (situation) => {
  if (!isProven(situation) && situation.event !== 'Register') return undefined
  const missing = missingProfile(situation)
  return missing.length > 0 ? step('profile', ['missing_profile'], { missing }) : undefined
}

const bindsFactor = ({ proofs }: Situation, kind: ProofKindName): boolean =>
  proofs.some((proof) => proof.purpose === 'bind' && proof.kind === kind)

const enrol: Ask = (situation) => {
  const { event, settings, person, decision, state, proofs } = situation
  if (!person || (!isProven(situation) && event !== 'Register')) return undefined
  const { factors, policy } = settings.mfa
  const holds = (name: SecondFactor) =>
    secondFactors[name].isHeld(person) || bindsFactor(situation, secondFactors[name].proof)
  const needsPasskey = decision?.require.includes('phr') === true
  const counts = (name: SecondFactor) => (needsPasskey ? name === 'WebAuthn' : name !== 'BackupCode')
  const isDemanded = decision?.require.some((name) => name !== 'captcha') === true
  const acr = proofs.some(identifies) ? authenticationBy(authenticating(proofs)).acr : undefined
  // Who signs in with the only address there is has no second factor in it.
  const isSecond = (name: SecondFactor) =>
    bindsFactor(situation, secondFactors[name].proof) || acr === undefined || isAtLeast(acr, multiFactor)
  if (!factors.some((name) => counts(name) && holds(name) && isSecond(name))) {
    const offered = factors.filter((name) => counts(name) && !holds(name))
    if (isDemanded) {
      return offered.length > 0
        ? step('enrol', ['required'], { factors: offered, isSkippable: false })
        : step('blocked', ['required', 'out_of_reach'])
    }
    const isPrompted = promptsAt[event].includes(policy) && state.skipsMfa !== true && !person.hasSkippedMfa
    return isPrompted && offered.length > 0
      ? step('enrol', ['suggested'], { factors: offered, isSkippable: true })
      : undefined
  }
  return policy === 'Mandatory' && factors.includes('BackupCode') && !holds('BackupCode')
    ? step('enrol', ['backup_codes'], { factors: ['BackupCode'], isSkippable: false })
    : undefined
}

/**
 * A passkey instead of the password next time: one question at a time, only where it can be answered, and never in the
 * middle of a session.
 */
const passkey: Ask = (situation) => {
  const { settings, session, person, state, proofs } = situation
  const isPossible = settings.passkeySignIn.enabled && state.makesPasskeys === true
  if (!isPossible || !person || !proofs.some(identifies)) return undefined
  if (person.passkeys > 0 || person.hasSkippedPasskey || session?.userId === person.id) return undefined
  if (state.skipsPasskey || state.skipsMfa || proofs.some(({ purpose }) => purpose === 'bind')) return undefined
  // A password manager makes one for the password that it has just filled in. Where there are second factors, which
  // that would take the place of, people decide it themselves.
  const isByPasswordAlone = authenticating(proofs).every(({ kind }) => kind === 'password')
  const isConditional = isByPasswordAlone && !settings.mfa.factors.includes('WebAuthn')
  return step('passkey', ['suggested'], { isSkippable: true, isConditional })
}

/** The policies under which people are asked whether they want a second factor. */
const promptsAt: Readonly<Record<InteractionEventName, readonly SignInSettings['mfa']['policy'][]>> = {
  SignIn: ['PromptAtSignInAndSignUp', 'PromptOnlyAtSignIn'],
  Register: ['PromptAtSignInAndSignUp'],
  ForgotPassword: [],
}

const terms: Ask = ({ event, settings, state, proofs }) => {
  if (state.terms === true || settings.termsOfUseUrl === null) return undefined
  const { agreeToTermsPolicy: policy } = settings
  const isAsked =
    policy === 'Manual'
      ? event === 'Register' || proofs.some(identifies)
      : policy === 'ManualRegistrationOnly' && event === 'Register'
  return isAsked ? step('terms', ['terms']) : undefined
}

const consent: Ask = (situation) => {
  const { request, client, consent: given, state } = situation
  const userId = whoIsIt(situation)
  if (state.consent !== undefined && state.consent.userId === (userId ?? newPerson)) {
    return state.consent.isAllowed ? undefined : denied('access_denied', 'The user refused.', ['consent'])
  }
  return isConsentNeeded({ request, client, consent: given }) ? step('consent', ['consent']) : undefined
}

/** Stands for the id of somebody who gets one when the interaction finishes. */
export const newPerson = 'new'

const register: Ask = (situation) => {
  if (!allows(situation.settings, 'Register')) return step('blocked', ['create', 'out_of_reach'])
  const missing = missingProfile(situation)
  return missing.length > 0
    ? step('register', ['create'], { missing, proofs: registrationFactors(situation.settings) })
    : undefined
}

const reset: Ask = ({ settings, proofs }) =>
  proofs.some(({ purpose, userId }) => purpose === 'reset' && userId !== null)
    ? undefined
    : step('reset', ['forgot_password'], { proofs: recoveryFactors(settings) })

const newPassword: Ask = ({ staged }) => (staged.password ? undefined : step('new_password', ['forgot_password']))

/** The order of questions. Each answers only while something is missing for it. */
const stepsOf: Readonly<Record<InteractionEventName, readonly Ask[]>> = {
  SignIn: [
    signIn,
    selectAccount,
    expectedPerson,
    rules,
    captcha,
    mfa,
    suspended,
    expiredPassword,
    profile,
    enrol,
    passkey,
    terms,
    consent,
  ],
  // Somebody new is never whom the client expects.
  Register: [expectedPerson, register, rules, captcha, enrol, terms, consent],
  // It leads to a new password, and to nothing else: whoever has set one signs in with it.
  ForgotPassword: [captcha, reset, newPassword],
}

/** Only a proof in this interaction answers any of them: what another tab did is not what was asked for here. */
const reasonsToSignIn = ({ request, session, state, settings }: Situation): Reason[] => {
  if (!session) return ['no_session']
  const { prompts, maxAge, expectedUserId, acrValues } = request
  const isAcrWithinReach = satisfiesAcr(strongestReachable(settings), acrValues)
  const reasons: Record<string, boolean> = {
    login: prompts.includes('login') || prompts.includes('create'),
    max_age: maxAge !== undefined && session.age >= maxAge,
    hint: expectedUserId !== undefined && expectedUserId !== session.userId,
    acr: isAcrWithinReach && !satisfiesAcr(session.acr, acrValues),
    another_account: state.account === false,
  } satisfies Partial<Record<Reason, boolean>>
  return Object.keys(reasons).filter((reason): reason is Reason => reasons[reason] === true)
}

/** By anybody, with the factors that are enabled. */
const strongestReachable = (settings: SignInSettings): Acr =>
  reachableAcr([...firstFactors(settings), ...settings.mfa.factors.map((name) => secondFactors[name].proof)])

const isChosen = ({ session, state: { account } }: Situation): boolean =>
  typeof account === 'object' && account.sessionId === session?.id

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
