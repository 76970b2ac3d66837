import { z } from 'zod'
import { createOutboundAgent, createTargetPolicy, type TargetPolicyOptions } from '../../platform/http/outbound.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import { type Logger, throttledLevel } from '../../platform/logger.ts'
import type { Secret } from '../../platform/secret.ts'
import type { CaptchaAnswer, CaptchaOutcome, CaptchaUse } from './captcha.ts'

export interface TurnstileOptions {
  siteKey: string
  secretKey: Secret
  /** When Cloudflare cannot be asked: people get in, instead of nobody. */
  failOpen: boolean
  /** Default: Cloudflare's. */
  url?: string
  targets?: Pick<TargetPolicyOptions, 'allowedNetworks' | 'allowHttp'>
}

/** Cloudflare's test. A token is good once, which Cloudflare sees to. */
export interface Turnstile {
  challenge(use: CaptchaUse): { provider: 'turnstile'; siteKey: string; action: string; data: string }
  verify(answer: CaptchaAnswer): Promise<CaptchaOutcome>
  close(): Promise<void>
}

const siteverify = 'https://challenges.cloudflare.com/turnstile/v0/siteverify'
/** Of a request until its answer is read, in ms. */
const timeoutMs = 2_000
const maxAnswerBytes = 16_384
/** As documented by Cloudflare. */
const maxTokenLength = 2_048

const answerSchema = z.looseObject({
  success: z.boolean(),
  'error-codes': z.array(z.string()).default([]),
  action: z.string().optional(),
  cdata: z.string().optional(),
})

/** What is wrong with the token. Everything else is wrong with us, or with Cloudflare. */
const faultsOfTokens: Readonly<Record<string, CaptchaOutcome>> = {
  'missing-input-response': 'invalid',
  'invalid-input-response': 'invalid',
  'timeout-or-duplicate': 'used',
}

export const createTurnstile = ({
  siteKey,
  secretKey,
  failOpen,
  url = siteverify,
  targets,
  logger,
}: TurnstileOptions & { logger: Logger }): Turnstile => {
  const agent = createOutboundAgent({
    policy: createTargetPolicy(targets),
    connectTimeoutMs: timeoutMs,
    connections: 16,
    maxBodyBytes: 2 * maxAnswerBytes,
  })
  const { origin, pathname } = new URL(url)

  const ask = async ({ answer, ip }: CaptchaAnswer): Promise<z.output<typeof answerSchema>> => {
    const form = new URLSearchParams({ secret: secretKey.reveal(), response: answer, remoteip: ip })
    const sent = await agent.dispatcherOf('turnstile').request({
      origin,
      path: pathname,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: form.toString(),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const whole = await readWhole(sent.body, maxAnswerBytes, () => new Error('The answer is too large.'))
    return answerSchema.parse(JSON.parse(whole.toString()))
  }

  const outcomeOf = (
    { success, action, cdata, 'error-codes': codes }: z.output<typeof answerSchema>,
    { purpose, context }: CaptchaUse,
  ): CaptchaOutcome => {
    // Cloudflare's keys for tests tell neither.
    if (success) return (action ?? purpose) === purpose && (cdata ?? context) === context ? 'passed' : 'invalid'
    const fault = codes.map((code) => faultsOfTokens[code]).find((outcome) => outcome !== undefined)
    if (fault !== undefined) return fault
    throw new Error(`Turnstile answered ${codes.join(', ') || 'without a reason'}.`)
  }

  return {
    challenge: ({ purpose, context }) => ({ provider: 'turnstile', siteKey, action: purpose, data: context }),
    async verify(answer) {
      if (answer.answer.length > maxTokenLength) return 'invalid'
      try {
        return outcomeOf(await ask(answer), answer)
      } catch (error) {
        const level = throttledLevel(logger, 'error', 'turnstile')
        logger[level]({ err: error, failOpen }, 'Turnstile could not be asked')
        return failOpen ? 'skipped' : 'unavailable'
      }
    },
    close: () => agent.close(),
  }
}
