import { buildConnector, type Dispatcher, request } from 'undici'
import { createBoundedAgent } from '../../../platform/http/bounded-client.ts'
import { readWhole } from '../../../platform/http/read-whole.ts'
import { type Gateway, GatewayTrouble } from './gateways.ts'

/** A question to the inspection API of a gateway. */
export interface Question {
  method?: 'GET' | 'POST' | 'PUT'
  /** Decoded segments. */
  path: readonly string[]
  query?: Readonly<Record<string, string | undefined>>
  body?: unknown
  token: string
  signal?: AbortSignal | undefined
}

export interface GatewayAnswer {
  status: number
  body: Buffer
  retryAfter: string | undefined
}

export interface OpenStream {
  body: AsyncIterable<Uint8Array>
  /** Of the gateway, when it began to answer. */
  openedAt: Date | undefined
}

/** Asks gateways over HTTP. Both throw `GatewayTrouble`. */
export interface GatewayClient {
  /** JSON, whatever the status. `timeoutMs` for all of it. */
  ask(gateway: Gateway, question: Question, timeoutMs: number): Promise<GatewayAnswer>
  /** Server-sent events: 200 only. */
  stream(gateway: Gateway, question: Question): Promise<OpenStream>
  close(): Promise<void>
}

/** Of one answer, in bytes: gateways answer with at most 8 MB of decisions. */
const mostOfAnswer = 12_582_912
/** Of all answers that are being read, in bytes. */
const mostReading = 67_108_864
const connectMs = 3_000
/** A stream has a comment every 15 s. In ms. */
const silenceMs = 40_000

export const createGatewayClient = (): GatewayClient => {
  // No redirect is followed: only what the settings name is asked.
  const connect = buildConnector({ allowH2: false, timeout: connectMs })
  const asking = createBoundedAgent({ connections: 16, maxBodyBytes: 2 * mostOfAnswer, connect })
  const streaming = createBoundedAgent({ connections: 64, maxBodyBytes: Number.POSITIVE_INFINITY, connect })
  let reading = 0

  const send = async (gateway: Gateway, question: Question, options: Partial<Dispatcher.RequestOptions>) => {
    const { method = 'GET', body, token } = question
    const headers = {
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    return request(addressOf(gateway, question), {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...options,
    } as never)
  }

  /** Counted as it comes, so that many large answers at once are refused rather than kept. */
  const readCounted = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
    let counted = 0
    const chunks = async function* () {
      for await (const chunk of body) {
        counted += chunk.length
        reading += chunk.length
        if (reading > mostReading) throw new GatewayTrouble('away', 'Too many answers of gateways are being read.')
        yield chunk
      }
    }
    try {
      return await readWhole(chunks(), mostOfAnswer, () => new GatewayTrouble('refuses', 'Its answer is too large.'))
    } finally {
      reading -= counted
    }
  }

  return {
    async ask(gateway, question, timeoutMs) {
      const limit = AbortSignal.timeout(timeoutMs)
      const signal = question.signal ? AbortSignal.any([limit, question.signal]) : limit
      try {
        const answer = await send(gateway, question, {
          dispatcher: asking,
          signal,
          headersTimeout: 0,
          bodyTimeout: 0,
        } as never)
        requireType(answer, /^application\/(problem\+)?json\b/)
        const body = await readCounted(answer.body)
        return { status: answer.statusCode, body, retryAfter: textOf(answer.headers['retry-after']) }
      } catch (error) {
        throw troubleOf(error)
      }
    },

    async stream(gateway, question) {
      try {
        const options = {
          dispatcher: streaming,
          headersTimeout: 10_000,
          bodyTimeout: silenceMs,
          signal: question.signal,
        }
        const answer = await send(gateway, question, options as never)
        if (answer.statusCode !== 200) {
          requireType(answer, /^application\/(problem\+)?json\b/)
          const body = await readCounted(answer.body)
          throw refusalOf({ status: answer.statusCode, body, retryAfter: undefined })
        }
        requireType(answer, /^text\/event-stream\b/)
        const date = Date.parse(textOf(answer.headers['date']) ?? '')
        return { body: answer.body, openedAt: Number.isNaN(date) ? undefined : new Date(date) }
      } catch (error) {
        throw troubleOf(error)
      }
    },

    async close() {
      await Promise.all([asking.destroy(), streaming.destroy()])
    },
  }
}

/** Of the gateway's own origin, whatever the segments are. */
const addressOf = ({ url }: Gateway, { path, query = {} }: Question): string => {
  if (path.some((segment) => /^\.{0,2}$/.test(segment))) throw new GatewayTrouble('refuses', 'There is no such path.')
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value)
  return `${url}/${path.map(encodeURIComponent).join('/')}${search.size > 0 ? `?${search}` : ''}`
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

/** What is no inspection API must not be handed on as one, such as a page. */
const requireType = ({ headers, body }: Dispatcher.ResponseData, wanted: RegExp): void => {
  if (wanted.test(textOf(headers['content-type']) ?? '')) return
  body.on('error', () => {}).destroy()
  throw new GatewayTrouble('refuses', 'What answers there is no inspection listener of a gateway.')
}

/** Of an answer that is not what was asked for. */
export const refusalOf = ({ status, body }: GatewayAnswer): GatewayTrouble => {
  const code = codeOf(body)
  const answered = `It answers ${status}${code === undefined ? '' : ` ${code}`}`
  const state = status >= 500 ? 'away' : 'refuses'
  const reason = reasons[status]
  return new GatewayTrouble(state, reason === undefined ? `${answered}.` : `${answered}: ${reason}`, { status })
}

const reasons: Record<number, string> = {
  401: 'it does not take tokens of this issuer for this audience.',
  403: 'the permissions of this person are not enough.',
  404: 'it has no such answer, or inspection is off there.',
  503: 'it cannot answer just now.',
}

/** Of a problem document. */
export const codeOf = (body: Buffer): string | undefined => {
  try {
    const { code } = Object(JSON.parse(body.toString())) as { code?: unknown }
    return typeof code === 'string' && /^[\w.-]{1,64}$/.test(code) ? code : undefined
  } catch {
    return undefined
  }
}

/** Whatever went wrong, in words that hold nothing of the question. */
export const troubleOf = (error: unknown): GatewayTrouble => {
  if (error instanceof GatewayTrouble) return error
  const { name, code = '' } = Object(error) as { name?: string; code?: string }
  const away = (because: string) => new GatewayTrouble('away', because, { cause: error })
  if (name === 'TimeoutError' || /TIMEOUT|ETIMEDOUT/.test(code)) return away('It does not answer in time.')
  if (name === 'AbortError' || code === 'ABORT_ERR') return away('It was not waited for.')
  if (code === 'ANSWER_TOO_LARGE') return new GatewayTrouble('refuses', 'Its answer is too large.', { cause: error })
  if (/CERT|SELF_SIGNED|ERR_TLS/.test(code)) return away('Its certificate is not trusted here.')
  return away(/^[A-Z_]{1,40}$/.test(code) ? `It cannot be reached: ${code}.` : 'The connection to it failed.')
}
