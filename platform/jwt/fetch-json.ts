import { request } from 'undici'
import { createBoundedAgent } from '../http/bounded-client.ts'
import { readWhole } from '../http/read-whole.ts'

export interface Fetched {
  body: unknown
  cacheControl: string
  /** How long ago somebody else asked for it, in ms, where the answer is shared. Undefined: it was asked for now. */
  ageMs?: number | undefined
}

/** GETs JSON documents. `get` throws with a message for operators: status, size, time, or what the network said. */
export interface JsonFetcher {
  get(url: string): Promise<Fetched>
  close(): Promise<void>
}

export class UnexpectedStatus extends Error {
  override readonly name = 'UnexpectedStatus'
  readonly status: number

  constructor(url: string, status: number) {
    super(`${url} answered ${status}`)
    this.status = status
  }
}

const reasonOf = (error: unknown, url: string, timeoutMs: number): string => {
  if (!(error instanceof Error)) return `${url} failed`
  if (error.name === 'TimeoutError') return `${url} did not answer within ${timeoutMs} ms`
  if (error instanceof SyntaxError) return `${url} did not answer with JSON`
  return `${url}: ${(error as { code?: string }).code ?? error.message}`
}

/**
 * Redirects are not followed: whoever could redirect the key set could replace it.
 * @param timeoutMs for request and answer, default 5 000. @param maxBytes of the body, default 262 144.
 */
export const fetchJson = ({ timeoutMs = 5_000, maxBytes = 262_144 } = {}): JsonFetcher => {
  const dispatcher = createBoundedAgent({ connections: 1, keepAliveTimeout: 1_000, maxBodyBytes: 2 * maxBytes })
  const closing = new AbortController()

  const read = async (url: string): Promise<Fetched> => {
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), closing.signal])
    const answer = await request(url, { dispatcher, signal, headers: { accept: 'application/json' } })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy()
      throw new UnexpectedStatus(url, answer.statusCode)
    }
    const body = await readWhole(answer.body, maxBytes, () => new Error(`the answer is larger than ${maxBytes} bytes`))
    const header = answer.headers['cache-control']
    return {
      body: JSON.parse(body.toString()),
      cacheControl: Array.isArray(header) ? header.join(',') : (header ?? ''),
    }
  }

  return {
    async get(url) {
      try {
        return await read(url)
      } catch (error) {
        if (error instanceof UnexpectedStatus) throw error
        throw new Error(reasonOf(error, url, timeoutMs), { cause: error })
      }
    },
    async close() {
      closing.abort()
      await dispatcher.destroy()
    },
  }
}
