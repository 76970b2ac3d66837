import { request } from 'undici'
import { z } from 'zod'
import type { Clock } from '../../platform/clock.ts'
import { createBoundedAgent } from '../../platform/http/bounded-client.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import { parseJsonObject } from '../../platform/jwt/json-object.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Secret } from '../../platform/secret.ts'
import { basicAuthorization } from './basic-authorization.ts'

/** What an issuer said about a token (RFC 7662 §2.2), not yet believed. Holds nothing but JSON. */
export const introspectionAnswer = z.object({
  /** The members of the answer but for `active`; undefined: not active. */
  members: z.record(z.string(), z.unknown()).optional(),
  /** When the question was sent, in ms since the epoch. */
  askedAt: z.number(),
  /** Of the answer, in bytes. */
  size: z.number(),
})
export type IntrospectionAnswer = z.output<typeof introspectionAnswer>

/** Asks the introspection endpoint of one issuer. */
export interface IntrospectionQuestions {
  /** Rejects with a message for operators that never quotes the token or the answer. */
  ask(url: string, token: string): Promise<IntrospectionAnswer>
  close(): Promise<void>
}

export interface IntrospectionQuestionsOptions {
  /** For metrics. */
  issuer: string
  /** How the gateway shows itself. */
  client: { id: string; secret: Secret }
  metrics: Metrics
  now: Clock
}

/** For one question as a whole, in ms. */
export const questionTimeoutMs = 5_000
/** Of an answer. */
const maxBytes = 65_536

class Failed extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export const createIntrospectionQuestions = (options: IntrospectionQuestionsOptions): IntrospectionQuestions => {
  const { issuer, client, metrics, now } = options
  const dispatcher = createBoundedAgent({ connections: 32, maxBodyBytes: 2 * maxBytes })
  const asked = metrics.counter(
    'surrogate_gateway_introspections_total',
    'Questions to issuers about opaque tokens, by outcome',
    ['issuer', 'outcome'],
  )
  const seconds = metrics.histogram(
    'surrogate_gateway_introspection_seconds',
    'From the question about an opaque token to its answer',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ['issuer'],
  )

  const send = async (url: string, token: string): Promise<IntrospectionAnswer> => {
    const askedAt = now().getTime()
    const answer = await request(url, {
      dispatcher,
      method: 'POST',
      signal: AbortSignal.timeout(questionTimeoutMs),
      headers: {
        accept: 'application/json',
        authorization: basicAuthorization(client),
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy()
      throw new Failed(reasons[answer.statusCode] ?? `it answered ${answer.statusCode}`)
    }
    const body = await readWhole(answer.body, maxBytes, () => new Failed('its answer is too large'))
    return { members: membersOf(answer.headers['content-type'], body), askedAt, size: body.length }
  }

  return {
    async ask(url, token) {
      const startedAt = performance.now()
      try {
        const answer = await send(url, token)
        asked.inc({ issuer, outcome: answer.members ? 'active' : 'inactive' })
        return answer
      } catch (error) {
        asked.inc({ issuer, outcome: 'failed' })
        throw new Error(reasonOf(error))
      } finally {
        seconds.observe({ issuer }, (performance.now() - startedAt) / 1000)
      }
    },
    close: () => dispatcher.destroy(),
  }
}

const textOf = (body: Buffer): string => {
  try {
    return utf8.decode(body)
  } catch {
    throw new Failed('its answer is not UTF-8')
  }
}

const membersOf = (type: string | string[] | undefined, body: Buffer): IntrospectionAnswer['members'] => {
  if (typeof type !== 'string' || !/^application\/json *(?:;|$)/i.test(type)) throw new Failed('its answer is not JSON')
  const answer = parseJsonObject(textOf(body))
  if (!answer) throw new Failed('its answer is not an unambiguous JSON object')
  const { active, ...members } = answer
  if (typeof active !== 'boolean') throw new Failed('its answer does not say whether the token is active')
  return active ? members : undefined
}

const reasons: Record<number, string> = {
  401: 'it does not accept the client and its secret',
  403: 'it does not let the client ask',
  404: 'there is no introspection endpoint',
}

const reasonOf = (error: unknown): string => {
  if (error instanceof Failed) return error.message
  if ((error as Error).name === 'TimeoutError') return `it did not answer within ${questionTimeoutMs} ms`
  return (error as { code?: string }).code ?? 'the connection failed'
}
