import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { MfaFactor } from '../../directory/sign-in-experience/sign-in-experience.ts'
import type { InteractionEventName } from '../../interaction/interaction-state.ts'
import type { Interaction } from '../../interaction/interaction-store.ts'
import type { StoredPersonFacts } from '../../interaction/person-facts-store.ts'
import { hasUnshownFactor } from '../../interaction/second-factor-questions.ts'
import { allows } from '../../interaction/settings.ts'
import { newPerson } from '../../interaction/situation.ts'
import type { Standing } from '../../interaction/standing.ts'
import type { Step, StepName } from '../../interaction/step.ts'
import type { Call } from './route.ts'
import { problemOfStep, stepProblems } from './step-problems.ts'

/** What has to be so before a call does anything. What leads to a session is asked again when it is submitted. */

/** What the guards throw, each under its name. */
export const guardProblems = {
  event: ['session.invalid_interaction_type'],
  allowed: ['auth.forbidden'],
  person: ['session.identifier_not_found'],
  proven: ['session.identifier_not_found', ...stepProblems],
  enrolment: ['session.identifier_not_found', ...stepProblems],
  factor: ['session.mfa.mfa_factor_not_enabled'],
} as const satisfies Record<string, readonly ProblemCode[]>

export const requireEvent = ({ interaction }: Call, ...events: InteractionEventName[]): void => {
  if (!events.includes(interaction.event)) throw problem('session.invalid_interaction_type')
}

/** Whether the settings let people do this at all: whoever may not sign up is not told which names are taken. */
export const requireAllowed = (
  { interaction, settings }: Call,
  event: InteractionEventName = interaction.event,
): void => {
  if (!allows(settings, event)) {
    throw problem('auth.forbidden', { detail: 'The settings do not allow this (signInMode).' })
  }
}

/** `POST /identification` said who it is. */
export const isIdentified = ({ event, person, state }: Interaction): boolean =>
  state.identified !== undefined && state.identified === (event === 'Register' ? newPerson : person?.id)

/** Signing in, and somebody has proven who they are. */
export const requirePerson = ({ interaction }: Call): StoredPersonFacts => {
  const { event, person } = interaction
  if (event !== 'SignIn' || !person || !isIdentified(interaction)) throw problem('session.identifier_not_found')
  return person
}

/** Steps before which nobody may change anything of an account: it may not be theirs. */
const unproven: ReadonlySet<StepName> = new Set(['sign_in', 'mfa', 'captcha', 'blocked', 'denied', 'select_account'])

/** Whoever signs in has proven everything that is asked for, the second factor too. Answers how they stand now. */
export const requireProven = async (call: Call): Promise<Standing> => {
  requirePerson(call)
  const standing = await call.standing()
  const { step } = standing
  if (unproven.has(step.step)) {
    throw (await problemOfStep(call, standing)) ?? problem('session.identifier_not_found')
  }
  return standing
}

/**
 * It is time for a new factor: of somebody new who has been identified, or of whoever has proven everything. Answers
 * what is due of the latter.
 */
export const requireEnrolment = async (call: Call): Promise<Step | undefined> => {
  if (call.interaction.event !== 'Register') {
    const { situation, step } = await requireProven(call)
    if (hasUnshownFactor(situation)) throw problem('session.mfa.require_mfa_verification')
    return step
  }
  if (!isIdentified(call.interaction)) throw problem('session.identifier_not_found')
  return undefined
}

/** People may get a passkey, to sign in with or as a second factor. */
export const requirePasskeys = (call: Call): void => {
  if (!call.settings.passkeySignIn.enabled) requireFactor(call, 'WebAuthn')
}

export const requireFactor = ({ settings }: Call, factor: MfaFactor): void => {
  if (!settings.mfa.factors.includes(factor)) throw problem('session.mfa.mfa_factor_not_enabled')
}
