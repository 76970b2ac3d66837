import { z } from 'zod'
import { setting } from '../../platform/config.ts'
import type { Secret } from '../../platform/secret.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { TurnstileOptions } from './turnstile.ts'

export interface CaptchaSettings {
  /** Zero bits that a proof of work has; each more takes twice as long. 17: about half a second on a laptop. */
  difficulty: number
  /** As many identifiers failing within ten minutes are an attack; 0: none are. */
  failingIdentifiers: number
  /** Instead of proof of work. */
  turnstile?: TurnstileOptions | undefined
}

export const captchaDefaults: CaptchaSettings = { difficulty: 17, failingIdentifiers: 200 }

/** The settings behind `CaptchaSettings`. */
export const captchaEnvironment = {
  CAPTCHA_DIFFICULTY: setting.integer(1, 24).default(captchaDefaults.difficulty),
  CAPTCHA_FAILING_IDENTIFIERS: setting.integer(0, 1_000_000).default(captchaDefaults.failingIdentifiers),
  TURNSTILE_SITE_KEY: setting.text().optional(),
  TURNSTILE_SECRET_KEY: setting.secret().optional(),
  TURNSTILE_FAIL_OPEN: setting.flag().default(false),
} satisfies z.ZodRawShape

/** Throws `StartupError` when one key of Turnstile is set without the other. */
export const captchaSettingsOf = (environment: {
  CAPTCHA_DIFFICULTY: number
  CAPTCHA_FAILING_IDENTIFIERS: number
  TURNSTILE_SITE_KEY?: string | undefined
  TURNSTILE_SECRET_KEY?: Secret | undefined
  TURNSTILE_FAIL_OPEN: boolean
}): CaptchaSettings => {
  const { TURNSTILE_SITE_KEY: siteKey, TURNSTILE_SECRET_KEY: secretKey, TURNSTILE_FAIL_OPEN: failOpen } = environment
  if ((siteKey === undefined) !== (secretKey === undefined)) {
    throw new StartupError('TURNSTILE_SITE_KEY and TURNSTILE_SECRET_KEY belong together.', {
      hint: 'Set both, or neither: then people prove their work, and no third party is asked.',
    })
  }
  return {
    difficulty: environment.CAPTCHA_DIFFICULTY,
    failingIdentifiers: environment.CAPTCHA_FAILING_IDENTIFIERS,
    ...(siteKey !== undefined && secretKey !== undefined && { turnstile: { siteKey, secretKey, failOpen } }),
  }
}

export interface CaptchaPolicy {
  /** Everybody is tested, every time. */
  enabled: boolean
}

const policySchema = z.looseObject({ enabled: z.boolean().default(false) })

/** `captchaPolicy` of the sign-in experience, as stored. Throws for what is not one. */
export const readCaptchaPolicy = (stored: unknown): CaptchaPolicy => {
  const { enabled } = policySchema.parse(stored ?? {})
  return { enabled }
}
