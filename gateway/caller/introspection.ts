import type { Clock } from '../../platform/clock.ts'
import type { HealthResult } from '../../platform/health.ts'
import { discoverIntrospectionEndpoint } from '../../platform/jwt/discovery.ts'
import type { JsonFetcher } from '../../platform/jwt/fetch-json.ts'
import { type Logger, throttledLevel } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { AppError } from '../../platform/problem.ts'
import { invalidToken } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import type { Principal } from '../request/principal.ts'
import { introspectedPrincipal, RefusedToken } from './introspected-principal.ts'
import type { IntrospectionAnswer, IntrospectionQuestions } from './introspection-questions.ts'
import { createTokenAnswers, type TokenAnswer } from './token-answers.ts'
import { tokenKey } from './verified-token-cache.ts'

/** Opaque tokens of one issuer, known by asking it (RFC 7662). */
export interface Introspection {
  readonly issuer: string
  /**
   * Who the token speaks for, at once when that is known; its audience is for the caller to compare. Throws 401
   * `invalid_token` for a token that is not active or not usable, 503 `issuer_unavailable` when the issuer cannot be
   * asked, does not let this gateway ask, or answers what no issuer should. `key` is `tokenKey(token)`.
   */
  principal(token: string, key?: string): Principal | Promise<Principal>
  /** For `/readyz`: always ok, since other tokens are served whatever becomes of this issuer. */
  status(): HealthResult
  close(): Promise<void>
}

export interface IntrospectionOptions {
  issuer: string
  /** Of the endpoint. Default: by discovery. */
  url?: string | undefined
  clockSkewSeconds: number
  questions: IntrospectionQuestions
  /** For discovery. */
  fetch: JsonFetcher
  logger: Logger
  metrics: Metrics
  now: Clock
}

/** How long an answer counts since the question, in ms: by then a revoked token is refused. */
export const keepMs = 60_000
/** How long "not active" counts, so that whoever keeps trying asks the issuer no more than this often. In ms. */
export const keepInactiveMs = 5_000

const notActive = 'The token is not active.'
const unavailable = () => problem('issuer_unavailable', { headers: { 'retry-after': '1' } })

/** Looks for the endpoint at once; everything else waits for the first token. */
export const createIntrospection = (options: IntrospectionOptions): Introspection => {
  const { issuer, clockSkewSeconds, questions, fetch, logger, metrics, now } = options
  const answers = createTokenAnswers<Principal>({ now })
  const remembered = metrics.counter(
    'surrogate_gateway_introspections_remembered_total',
    'Requests with opaque tokens for which the issuer was not asked again',
    ['issuer'],
  )
  const cached = metrics.gauge(
    'surrogate_gateway_introspected_tokens',
    'Opaque tokens that were active when last asked about',
    ['issuer'],
  )
  const stopCollecting = metrics.onCollect(() => cached.set({ issuer }, answers.size))
  let trouble: string | undefined
  let endpoint: Promise<string> | undefined
  let closed = false

  const failed = (error: unknown): AppError => {
    const reason = (error as Error).message
    trouble = reason
    const level = closed ? 'debug' : throttledLevel(logger, 'error', `introspection ${issuer} ${reason}`)
    logger[level]({ issuer, reason }, 'an issuer cannot be asked about opaque tokens')
    return unavailable()
  }

  const find = (): Promise<string> => {
    endpoint ??= options.url === undefined ? discoverIntrospectionEndpoint(issuer, fetch) : Promise.resolve(options.url)
    return endpoint
  }

  const ask = async (token: string): Promise<TokenAnswer<Principal>> => {
    try {
      const answer = await questions.ask(await find(), token)
      const read = readAnswer(answer)
      trouble = undefined
      return read
    } catch (error) {
      // Whatever was discovered may be what is wrong.
      endpoint = undefined
      throw failed(error)
    }
  }

  const readAnswer = ({ members, askedAt, size }: IntrospectionAnswer): TokenAnswer<Principal> => {
    const refused = (refusal: string) => ({ answer: undefined, refusal, until: askedAt + keepInactiveMs, size: 0 })
    if (!members) return refused(notActive)
    try {
      const until = askedAt + keepMs
      const answer = introspectedPrincipal(members, { issuer, clockSkewSeconds, now: now(), until })
      return { answer, until: answer.askAgainAt ?? until, size }
    } catch (error) {
      if (!(error instanceof RefusedToken)) throw error
      const reason = error.message
      const level = throttledLevel(logger, 'warn', `introspection ${issuer} ${reason}`)
      logger[level]({ issuer, reason }, 'an opaque token is active and cannot be used here')
      return refused(reason)
    }
  }

  if (options.url === undefined) {
    find().catch((error: unknown) => {
      endpoint = undefined
      failed(error)
    })
  }

  return {
    issuer,
    principal(token, key = tokenKey(token)) {
      const told = answers.get(key, () => ask(token))
      if (told instanceof Promise) return told.then(principalOf)
      remembered.inc({ issuer })
      return principalOf(told)
    },
    status: () =>
      trouble === undefined ? { ok: true } : { ok: true, detail: `${issuer} cannot be asked: ${trouble}` },
    async close() {
      closed = true
      stopCollecting()
      cached.remove({ issuer })
      await Promise.all([questions.close(), fetch.close()])
    },
  }
}

const principalOf = ({ answer, refusal = notActive }: TokenAnswer<Principal>): Principal => {
  if (!answer) throw invalidToken(refusal)
  return answer
}
