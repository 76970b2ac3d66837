import type { Query } from '../../platform/database/database.ts'
import type { Captcha, CaptchaChallenge, CaptchaOutcome } from '../captcha/captcha.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import { keepDecision } from './interaction-changes-store.ts'
import type { Interaction } from './interaction-store.ts'
import type { SignInPolicy } from './sign-in-policy.ts'
import type { Visitor } from './visitor.ts'

/** What people are about to do when they are tested. */
export type CaptchaPurpose = 'sign_in' | 'register' | 'reset'

/** The test for machines before anything is verified or sent. Passed once, it is passed for the whole interaction. */
export interface CaptchaGate {
  isDue(interaction: Interaction, visitor: Visitor, known?: { isDeviceKnown: boolean }): Promise<boolean>
  challenge(interaction: Interaction): CaptchaChallenge
  /** Somebody outside is asked whether an answer is right. */
  asksOthers: boolean
  /** Uses an answer up, and keeps that it was right. */
  answer(interaction: Interaction, visitor: Visitor, answer: string | undefined): Promise<CaptchaOutcome>
  /** Who somebody is was proven wrongly. */
  failed(identifier: string): Promise<void>
  /** Somebody got in after failures. */
  succeeded(identifier: string): Promise<void>
}

const purposes: Readonly<Record<Interaction['event'], CaptchaPurpose>> = {
  SignIn: 'sign_in',
  Register: 'register',
  ForgotPassword: 'reset',
}

export const createCaptchaGate = ({
  query,
  captcha,
  policy,
  settings,
  now,
}: {
  query: Query
  captcha: Captcha
  policy: SignInPolicy
  settings: () => SignInExperience
  now: () => Date
}): CaptchaGate => {
  /** What the operator's rules ask for before anybody is known; the shipped ones ask for nothing then. */
  const requiredBy = (
    client: AuthorizationClient,
    { origin, signInContext: { country } }: Visitor,
    isKnown: boolean,
  ) => {
    if (!policy.asksOwnRules()) return []
    const { id, name, type, isThirdParty } = client
    const {
      factors,
      policy: mfaPolicy,
      organizationRequiredMfaPolicy: organizationPolicy = 'NoPrompt',
    } = settings().mfa
    return policy.decideSignIn({
      stage: 'prove',
      client: { id, name, type, isThirdParty },
      factors: { available: [], used: [] },
      amr: [],
      ip: origin.ip,
      ...(country !== undefined && { country }),
      device: { known: isKnown },
      failures: 0,
      now: Math.floor(now().getTime() / 1_000),
      settings: { mfa: { policy: mfaPolicy, factors: [...factors], organizationPolicy, organizations: [] } },
    }).require
  }

  return {
    async isDue({ state, client }, visitor, { isDeviceKnown } = { isDeviceKnown: false }) {
      if (state.captcha) return false
      const require = requiredBy(client, visitor, isDeviceKnown)
      return (await captcha.isDue({ policy: settings().captchaPolicy, require, isDeviceKnown })) !== undefined
    },
    challenge: ({ id, event }) => captcha.challenge({ purpose: purposes[event], context: id }),
    asksOthers: captcha.asksOthers,
    async answer({ id, event }, { origin }, answer) {
      const outcome = await captcha.verify({ purpose: purposes[event], context: id, answer, ip: origin.ip })
      if (outcome === 'passed' || outcome === 'skipped') await keepDecision(query, id, { captcha: true })
      return outcome
    },
    failed: (identifier) => captcha.failed(identifier),
    succeeded: (identifier) => captcha.succeeded(identifier),
  }
}
