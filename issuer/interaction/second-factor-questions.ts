import { type Acr, acrs } from '../tokens/sessions/session.ts'
import type { InteractionEventName } from './interaction-state.ts'
import { canProve, type PersonFacts, type SecondFactor, secondFactors } from './person-facts.ts'
import {
  authenticating,
  authenticationBy,
  identifies,
  isAtLeast,
  type ProofKindName,
  reachableAcr,
  weakestAcr,
} from './proofs.ts'
import { firstFactors, recoveryFactors, type SignInSettings } from './settings.ts'
import { isProven, type Question, type Situation } from './situation.ts'
import { type Reason, step } from './step.ts'

const [, multiFactor, strongest] = acrs

/**
 * The classes that the rules insist on. The shipped ones do what the settings say. Who has no passkey yet, and has to
 * add one, shows the second factor that there is before: a password alone must not add another.
 */
export const demandedAcrs = ({ decision }: Pick<Situation, 'decision'>): Acr[] => {
  if (decision?.require.includes('phr')) return [strongest, multiFactor]
  return decision?.require.includes('mfa') ? [multiFactor] : []
}

export const mfa: Question = (situation) => {
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

/** Those that the rules take for a second factor: backup codes alone are none. */
const countingFactors = ({ settings, decision }: Situation): SecondFactor[] =>
  settings.mfa.factors.filter((name) =>
    decision?.require.includes('phr') ? name === 'WebAuthn' : name !== 'BackupCode',
  )

const isDemanded = ({ decision }: Situation): boolean => decision?.require.some((name) => name !== 'captcha') === true

const isSecondTo = (first: ProofKindName, name: SecondFactor): boolean =>
  isAtLeast(reachableAcr([first, secondFactors[name].proof]), multiFactor)

/**
 * The person has a second factor and has not shown it, since no rule demanded it. Whoever knows the password alone adds
 * no other one: it would open what the first is there to guard.
 */
export const hasUnshownFactor = ({ settings, person, proofs }: Situation): boolean => {
  const first = proofs.find(identifies)
  if (!first || !person || isAtLeast(authenticationBy(authenticating(proofs)).acr, multiFactor)) return false
  return settings.mfa.factors.some(
    (name) => name !== 'BackupCode' && secondFactors[name].isHeld(person) && isSecondTo(first.kind, name),
  )
}

/**
 * What told who it is cannot be the second factor too. Who has no other one, and can add none, begins with another
 * proof of who they are: then it can.
 */
export const anotherFactor: Question = (situation) => {
  const { settings, person, proofs } = situation
  const first = proofs.find(identifies)
  if (!first || !person || !isDemanded(situation)) return undefined
  if (isAtLeast(authenticationBy(authenticating(proofs)).acr, multiFactor)) return undefined
  const counting = countingFactors(situation)
  if (!counting.every((name) => secondFactors[name].isHeld(person))) return undefined
  const ways = firstFactors(settings).filter(
    (kind) =>
      kind !== first.kind && canBeginWith(kind, person, settings) && counting.some((name) => isSecondTo(kind, name)),
  )
  return ways.length > 0 ? step('sign_in', ['another_factor'], { proofs: ways }) : undefined
}

/** Who has no password sets one by a code. */
const canBeginWith = (kind: ProofKindName, person: PersonFacts, settings: SignInSettings): boolean =>
  canProve(kind, person) || (kind === 'password' && recoveryFactors(settings).length > 0)

const bindsFactor = ({ proofs }: Situation, name: SecondFactor): boolean =>
  proofs.some(({ purpose, kind }) => purpose === 'bind' && kind === secondFactors[name].proof)

export const enrol: Question = (situation) => {
  const { event, settings, person, state, proofs } = situation
  if (!person || (!isProven(situation) && event !== 'Register')) return undefined
  const { factors, policy } = settings.mfa
  const holds = (name: SecondFactor) => secondFactors[name].isHeld(person) || bindsFactor(situation, name)
  const first = proofs.find(identifies)
  // Who signs in with the only address there is has no second factor in it.
  const isSecond = (name: SecondFactor) => bindsFactor(situation, name) || !first || isSecondTo(first.kind, name)
  const counting = countingFactors(situation)
  if (!counting.some((name) => holds(name) && isSecond(name))) {
    const offered = counting.filter((name) => !holds(name))
    if (isDemanded(situation)) {
      return offered.length > 0
        ? step('enrol', ['required'], { factors: offered, isSkippable: false })
        : step('blocked', ['required', 'out_of_reach'])
    }
    const isPrompted = promptsAt[event].includes(policy) && state.skipsMfa !== true && !person.hasSkippedMfa
    return isPrompted && offered.length > 0
      ? step('enrol', ['suggested'], { factors: offered, isSkippable: true })
      : undefined
  }
  const lacksCodes = policy === 'Mandatory' && factors.includes('BackupCode') && !holds('BackupCode')
  return lacksCodes && !hasUnshownFactor(situation)
    ? step('enrol', ['backup_codes'], { factors: ['BackupCode'], isSkippable: false })
    : undefined
}

/** The policies under which people are asked whether they want a second factor. */
const promptsAt: Readonly<Record<InteractionEventName, readonly SignInSettings['mfa']['policy'][]>> = {
  SignIn: ['PromptAtSignInAndSignUp', 'PromptOnlyAtSignIn'],
  Register: ['PromptAtSignInAndSignUp'],
  ForgotPassword: [],
}

/**
 * A passkey instead of the password next time: one question at a time, only where it can be answered, and never in the
 * middle of a session.
 */
export const passkey: Question = (situation) => {
  const { settings, session, person, state, proofs } = situation
  const isPossible = settings.passkeySignIn.enabled && state.makesPasskeys === true
  if (!isPossible || !person || !proofs.some(identifies)) return undefined
  if (person.passkeys > 0 || person.hasSkippedPasskey || session?.userId === person.id) return undefined
  if (hasUnshownFactor(situation)) return undefined
  if (state.skipsPasskey || state.skipsMfa || proofs.some(({ purpose }) => purpose === 'bind')) return undefined
  // A password manager makes one for the password that it has just filled in. Where there are second factors, which
  // that would take the place of, people decide it themselves.
  const isByPasswordAlone = authenticating(proofs).every(({ kind }) => kind === 'password')
  const isConditional = isByPasswordAlone && !settings.mfa.factors.includes('WebAuthn')
  return step('passkey', ['suggested'], { isSkippable: true, isConditional })
}
