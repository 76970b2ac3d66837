import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { z } from 'zod'
import { backOffMs } from '../../platform/back-off.ts'
import { createBoundedAgent } from '../../platform/http/bounded-client.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import type { Secret } from '../../platform/secret.ts'
import { basicAuthorization } from './basic-authorization.ts'
import type { RevocationEntry } from './revocation-index.ts'

/** Of the feed, and of what is handed on. */
export const revocationEntry = z.object({
  kind: z.enum(['jti', 'sid', 'sub', 'client']),
  value: z.string(),
  issuedBefore: z.number().nullable(),
  expiresAt: z.number(),
})
const page = z.object({ entries: z.array(revocationEntry), cursor: z.number().int(), more: z.boolean() })

export interface RevocationReaderOptions {
  /** Of the feed. */
  url: string
  client: { id: string; secret: Secret }
  /** How long the issuer may wait for news, in seconds. */
  waitSeconds: number
  /**
   * `upToDate`: there is nothing more for now. `silentMs`, default 0: how old that news is, where somebody else read
   * it.
   */
  onPage: (entries: readonly RevocationEntry[], upToDate: boolean, silentMs?: number) => void
  /** `reason` is for operators; `failures` counts since the last page. */
  onFailure: (reason: string, failures: number) => void
}

/** Above this an answer is no page of a feed. In bytes. */
const maxBytes = 8_388_608
/** Beside the wait, for the call as a whole, in ms. */
const graceMs = 10_000
const retry = { first: 200, longest: 5_000, jitter: 0.25 }
/** An issuer that answers at once although it was told to wait is not asked more often than this, in ms. */
const minRoundMs = 100

class Refused extends Error {}

/** Follows a revocation feed by long polls over one connection until it is closed; whatever fails is tried again. */
export const followRevocations = ({ url, client, waitSeconds, onPage, onFailure }: RevocationReaderOptions) => {
  const dispatcher = createBoundedAgent({ connections: 1, maxBodyBytes: 2 * maxBytes })
  const closing = new AbortController()
  const headers = { accept: 'application/json', authorization: basicAuthorization(client) }
  let cursor: number | undefined
  let upToDate = false

  const read = async () => {
    const wait = upToDate ? waitSeconds : 0
    const query = new URLSearchParams({
      wait: String(wait),
      ...(cursor === undefined ? {} : { since: String(cursor) }),
    })
    const signal = AbortSignal.any([AbortSignal.timeout(wait * 1000 + graceMs), closing.signal])
    const answer = await request(`${url}?${query}`, { dispatcher, signal, headers })
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy()
      throw new Refused(refusals[answer.statusCode] ?? `it answered ${answer.statusCode}`)
    }
    const body = await readWhole(answer.body, maxBytes, () => new Refused('its answer is too large'))
    const parsed = page.safeParse(JSON.parse(body.toString()))
    if (!parsed.success) throw new Refused('its answer is no page of a revocation feed')
    return parsed.data
  }

  const run = async () => {
    for (let failures = 0; !closing.signal.aborted; ) {
      const started = performance.now()
      try {
        const { entries, more, cursor: next } = await read()
        failures = 0
        // It may be lower than before: a database that was restored from a backup counts from there.
        cursor = next
        upToDate = !more
        onPage(entries, upToDate)
        if (entries.length === 0) await pause(minRoundMs - (performance.now() - started))
      } catch (error) {
        if (closing.signal.aborted) return
        failures++
        onFailure(reasonOf(error), failures)
        // After a failure entries may be missing: the next request does not wait for new ones.
        upToDate = false
        await pause(backOffMs(failures, retry))
      }
    }
  }
  const pause = (ms: number) => (ms > 0 ? delay(ms, undefined, { signal: closing.signal }).catch(() => {}) : undefined)
  const ended = run()

  return {
    async close() {
      closing.abort()
      await ended
      await dispatcher.destroy()
    },
  }
}

const refusals: Record<number, string> = {
  401: 'it does not accept the client and its secret',
  403: 'the client lacks the management permission "revocations"',
  404: 'it has no revocation feed there',
}

const reasonOf = (error: unknown): string => {
  if (error instanceof Refused) return error.message
  if (error instanceof SyntaxError) return 'its answer is not JSON'
  if ((error as Error).name === 'TimeoutError') return 'it does not answer'
  return (error as { code?: string }).code ?? 'the connection failed'
}
