import { type Clock, systemClock } from '../../platform/clock.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { CaptchaPolicy, CaptchaSettings } from './captcha-settings.ts'
import { areManyFailing, forgetFailure, noteFailure } from './captcha-store.ts'
import { createProofOfWork } from './proof-of-work.ts'
import { createTurnstile } from './turnstile.ts'

/** What a test is for: passed for one thing, it is worth nothing for another. */
export interface CaptchaUse {
  /** Such as `sign_in`, `register` or `reset`; letters and `_`. */
  purpose: string
  /** The interaction. */
  context: string
}

export interface CaptchaAnswer extends CaptchaUse {
  /** The field `captcha` of the form. */
  answer: string
  ip: string
}

/** Only `passed` and `skipped` lead on. With `unavailable` the answer is 503, with the others a new test. */
export type CaptchaOutcome = 'passed' | 'skipped' | 'missing' | 'invalid' | 'expired' | 'used' | 'unavailable'

/** Plain data, for pages and for whoever brings their own. */
export type CaptchaChallenge =
  | { provider: 'proof_of_work'; challenge: string; difficulty: number }
  | { provider: 'turnstile'; siteKey: string; action: string; data: string }

/** Why it is due. */
export type CaptchaReason = 'setting' | 'rule' | 'attack'

export interface Captcha {
  /**
   * Whether a test comes before the proof: always where the settings say so, where a rule requires it, and while
   * sign-ins of many people fail, for browsers that the person never used.
   */
  isDue(known: {
    policy: CaptchaPolicy
    /** Of the sign-in rules at the stage `prove`. */
    require: readonly string[]
    isDeviceKnown: boolean
  }): Promise<CaptchaReason | undefined>
  challenge(use: CaptchaUse): CaptchaChallenge
  /** Somebody outside is asked whether an answer is right. */
  asksOthers: boolean
  /** Uses the answer up. */
  verify(answer: Omit<CaptchaAnswer, 'answer'> & { answer: string | undefined }): Promise<CaptchaOutcome>
  /** A proof was wrong. `identifier`: canonical. */
  failed(identifier: string): Promise<void>
  /** Somebody got in with it. */
  succeeded(identifier: string): Promise<void>
  close(): Promise<void>
}

/** How old what is known of failures at other instances may be, in ms. */
const attackMemoryMs = 1_000

export const createCaptcha = ({
  query,
  hmac,
  settings,
  logger,
  metrics,
  now = systemClock,
}: {
  query: Query
  hmac: Hmac
  settings: CaptchaSettings
  logger: Logger
  metrics: Metrics
  now?: Clock
}): Captcha => {
  const { difficulty, failingIdentifiers } = settings
  const turnstile = settings.turnstile && createTurnstile({ ...settings.turnstile, logger })
  const provider = turnstile ?? createProofOfWork({ query, hmac, difficulty, now })
  const failures = metrics.counter('surrogate_sign_in_failures_total', 'Proofs of who somebody is that were wrong')
  const required = metrics.counter('surrogate_captcha_required_total', 'Tests for machines that came to be due', [
    'reason',
  ])
  const outcomes = metrics.counter('surrogate_captcha_answers_total', 'Answers to tests for machines', ['outcome'])

  const keyOf = (identifier: string) => hmac('captcha', 'identifier', identifier)

  let remembered: { at: number; areMany: Promise<boolean> } | undefined
  const isAttack = (): Promise<boolean> => {
    const at = now().getTime()
    if (remembered && Math.abs(at - remembered.at) < attackMemoryMs) return remembered.areMany
    const asked = { at, areMany: areManyFailing(query, failingIdentifiers) }
    remembered = asked
    asked.areMany.catch(() => {
      if (remembered === asked) remembered = undefined
    })
    return asked.areMany
  }

  const reasonToAsk: Captcha['isDue'] = async ({ policy, require, isDeviceKnown }) => {
    if (policy.enabled) return 'setting'
    if (require.includes('captcha')) return 'rule'
    if (isDeviceKnown || failingIdentifiers === 0) return undefined
    return (await isAttack()) ? 'attack' : undefined
  }

  return {
    async isDue(known) {
      const reason = await reasonToAsk(known)
      if (reason !== undefined) required.inc({ reason })
      return reason
    },
    challenge: (use) => provider.challenge(use),
    asksOthers: turnstile !== undefined,
    async verify({ answer, ...use }) {
      const outcome = answer === undefined || answer === '' ? 'missing' : await provider.verify({ ...use, answer })
      outcomes.inc({ outcome })
      return outcome
    },
    async failed(identifier) {
      failures.inc()
      await noteFailure(query, keyOf(identifier))
      remembered = undefined
    },
    async succeeded(identifier) {
      await forgetFailure(query, keyOf(identifier))
      remembered = undefined
    },
    async close() {
      await turnstile?.close()
    },
  }
}
