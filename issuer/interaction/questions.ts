import type { Acr } from '../tokens/sessions/session.ts'
import { isConsentNeeded } from './consent.ts'
import { secondFactors } from './person-facts.ts'
import {
  identifies,
  isAtLeast,
  type Proof,
  type ProofKindName,
  purposesOf,
  reachableAcr,
  satisfiesAcr,
} from './proofs.ts'
import { missingProfile } from './required-profile.ts'
import { demandedAcrs } from './second-factor-questions.ts'
import { allows, firstFactors, recoveryFactors, registrationFactors, type SignInSettings } from './settings.ts'
import { isProven, isProvenBy, newPerson, type Question, type Situation, whoIsIt } from './situation.ts'
import { denied, type Reason, step } from './step.ts'

/** The questions of `nextStep`, but for those about second factors; it says in what order they are asked. */

export const signIn: Question = (situation) => {
  const isAllowed = allows(situation.settings, 'SignIn')
  if (isProven(situation)) return isAllowed ? undefined : step('blocked', ['out_of_reach'])
  const reasons = reasonsToSignIn(situation)
  if (reasons.length === 0) return undefined
  if (!isAllowed) return step('blocked', [...reasons, 'out_of_reach'])
  return step('sign_in', reasons, { proofs: firstFactors(situation.settings) })
}

/** Only a proof in this interaction answers any of them: what another tab did is not what was asked for here. */
const reasonsToSignIn = ({ request, session, state, settings, decision }: Situation): Reason[] => {
  if (!session) return ['no_session']
  const { prompts, maxAge, expectedUserId, acrValues } = request
  const isAcrWithinReach = satisfiesAcr(strongestReachable(settings), acrValues)
  const reasons: Record<string, boolean> = {
    login: prompts.includes('login') || prompts.includes('create'),
    max_age: maxAge !== undefined && session.age >= maxAge,
    hint: expectedUserId !== undefined && expectedUserId !== session.userId,
    acr: isAcrWithinReach && !satisfiesAcr(session.acr, acrValues),
    // Who cannot reach it is told so after that.
    required: demandedAcrs({ decision }).some((wanted) => !isAtLeast(session.acr, wanted)),
    another_account: state.account === false,
  } satisfies Partial<Record<Reason, boolean>>
  return Object.keys(reasons).filter((reason): reason is Reason => reasons[reason] === true)
}

/** By anybody, with the factors that are enabled. */
const strongestReachable = (settings: SignInSettings): Acr =>
  reachableAcr([...firstFactors(settings), ...settings.mfa.factors.map((name) => secondFactors[name].proof)])

export const selectAccount: Question = (situation) =>
  !isProven(situation) && situation.request.prompts.includes('select_account') && !isChosen(situation)
    ? step('select_account', ['select_account'])
    : undefined

const isChosen = ({ session, state: { account } }: Situation): boolean =>
  typeof account === 'object' && account.sessionId === session?.id

// OpenID Connect Core §3.1.2.1, `id_token_hint`: somebody else has signed in.
export const expectedPerson: Question = (situation) => {
  const { expectedUserId } = situation.request
  return expectedUserId !== undefined && expectedUserId !== whoIsIt(situation)
    ? denied('login_required', 'Another user has signed in than the one whom the client expects.', ['hint'])
    : undefined
}

export const rules: Question = ({ decision }) =>
  decision?.allow === false
    ? step('blocked', ['denied_by_rules'], decision.reason === undefined ? {} : { description: decision.reason })
    : undefined

export const captcha: Question = ({ event, person, decision, state, proofs }) => {
  // A session went through it when it began.
  if (!person || !decision?.require.includes('captcha') || state.captcha === true) return undefined
  // For browsers without scripts: whoever reads a mailbox, or is known to a provider, is no program of many.
  const wanted = purposesOf[event]
  const shown: readonly ProofKindName[] = ['email_code', 'federated']
  return proofs.some(({ kind, purpose }) => shown.includes(kind) && wanted.includes(purpose))
    ? undefined
    : step('captcha', ['captcha'])
}

// Told only to who has proven everything.
export const suspended: Question = ({ person }) =>
  person?.isSuspended ? step('blocked', ['user_suspended']) : undefined

export const expiredPassword: Question = (situation) =>
  situation.person?.isPasswordExpired && isProvenBy(situation, 'password') && !situation.staged.password
    ? step('new_password', ['password_expired'])
    : undefined

export const profile: Question = (situation) => {
  if (!isProven(situation)) return undefined
  const missing = missingProfile(situation)
  return missing.length > 0 ? step('profile', ['missing_profile'], { missing }) : undefined
}

export const terms: Question = ({ event, settings, state, proofs }) => {
  if (state.terms === true || settings.termsOfUseUrl === null) return undefined
  const { agreeToTermsPolicy: policy } = settings
  const isAsked =
    policy === 'Manual'
      ? event === 'Register' || proofs.some(identifies)
      : policy === 'ManualRegistrationOnly' && event === 'Register'
  return isAsked ? step('terms', ['terms']) : undefined
}

export const consent: Question = (situation) => {
  const { request, client, consent: given, state } = situation
  const userId = whoIsIt(situation)
  if (state.consent !== undefined && state.consent.userId === (userId ?? newPerson)) {
    return state.consent.isAllowed ? undefined : denied('access_denied', 'The user refused.', ['consent'])
  }
  return isConsentNeeded({ request, client, consent: given }) ? step('consent', ['consent']) : undefined
}

const isRegistering = ({ purpose }: Pick<Proof, 'purpose'>): boolean => purpose === 'register'

export const register: Question = (situation) => {
  if (!allows(situation.settings, 'Register')) return step('blocked', ['create', 'out_of_reach'])
  const missing = missingProfile(situation)
  // Settings that ask for nothing do so because people come by an identity provider: nobody begins with nothing.
  const isSomebody = situation.staged.username !== undefined || situation.proofs.some(isRegistering)
  return missing.length > 0 || !isSomebody
    ? step('register', ['create'], { missing, proofs: registrationFactors(situation.settings) })
    : undefined
}

export const reset: Question = ({ settings, proofs }) =>
  proofs.some(({ purpose, userId }) => purpose === 'reset' && userId !== null)
    ? undefined
    : step('reset', ['forgot_password'], { proofs: recoveryFactors(settings) })

export const newPassword: Question = ({ staged }) =>
  staged.password ? undefined : step('new_password', ['forgot_password'])
