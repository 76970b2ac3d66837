import type { AttemptRecord, Lease, OpenDelivery } from '../events/lane-store.ts'
import type { Clock } from '../platform/clock.ts'
import type { OutboundAgent } from '../platform/outbound.ts'
import { type AttemptResult, attempt } from './attempt.ts'
import { withoutEchoes } from './echoes.ts'
import { retryAfterMs, retryDelay } from './retry-schedule.ts'
import { signatureHeaders } from './signature.ts'

/** Where a hook's deliveries go, opened for use. */
export interface Target {
  id: string
  url: URL
  headers: Record<string, string>
  /** Signing keys, newest first. */
  keys: readonly string[]
}

export interface DeliverOptions {
  agent: OutboundAgent
  now: Clock
  /** In [0, 1). Default Math.random. */
  random?: () => number
  attemptTimeoutMs: number
  schedule: readonly number[]
}

export type Deliver = (
  lease: Lease,
  target: Target,
  delivery: OpenDelivery,
  signal: AbortSignal,
) => Promise<AttemptRecord>

const userAgent = 'Surrogate-Webhooks/1'

/** Signs one delivery, POSTs it, and says what that means for the delivery and its hook. */
export const createDeliver = (options: DeliverOptions): Deliver => {
  const { agent, now, random = Math.random, attemptTimeoutMs, schedule } = options
  return async (lease, target, delivery, signal) => {
    const at = now()
    const body = bodyOf(target.id, delivery.payload!)
    const timestamp = Math.floor(at.getTime() / 1_000)
    const own = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signatureHeaders({ id: delivery.eventId, timestamp, body, keys: target.keys }),
      ...(delivery.gap ? { 'surrogate-gap': 'true' } : {}),
    }
    const custom = customHeaders(target.headers, own)
    const result = await attempt({
      dispatcher: agent.dispatcher,
      url: target.url,
      headers: { ...custom, ...own },
      body,
      timeoutMs: attemptTimeoutMs,
      signal,
    })
    const logged = withoutEchoes(result, custom)
    return {
      lease,
      deliveryId: delivery.id,
      at,
      durationMs: result.durationMs,
      ...consequences(result, { attempts: delivery.attempts + 1, schedule, now: now(), random: random() }),
      requestHeaders: {
        ...Object.fromEntries(Object.keys(custom).map((name) => [name, '[redacted]'])),
        ...own,
      },
      status: result.status,
      responseHeaders: logged.headers,
      responseBody: logged.body,
      error: result.error,
      address: agent.addressOf(target.url.origin) ?? null,
    }
  }
}

/** Those of a hook but for what we say ourselves, however it is spelt: names are case-insensitive (RFC 9110 §5.1). */
const customHeaders = (headers: Record<string, string>, own: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !Object.hasOwn(own, name.toLowerCase())))

/** `{"hookId":"<id>",` and the stored bytes after their brace: the same bytes on every retry and replay. */
export const bodyOf = (hookId: string, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`{"hookId":${JSON.stringify(hookId)},`), payload.subarray(1)])

interface Consequences extends Pick<AttemptRecord, 'state' | 'retryInMs' | 'pauseHookMs' | 'disableHook'> {}

export const consequences = (
  result: Pick<AttemptResult, 'succeeded' | 'status' | 'headers'>,
  { attempts, schedule, now, random }: { attempts: number; schedule: readonly number[]; now: Date; random: number },
): Consequences => {
  if (result.succeeded) return { state: 'succeeded', retryInMs: 0 }
  // Gone: nobody is there until somebody enables the hook again, and then this delivery is first.
  if (result.status === 410) return { state: 'retrying', retryInMs: 0, disableHook: 'The receiver answered 410 Gone.' }
  const asked = retryAfterMs(result.headers?.['retry-after'], now)
  const delay = retryDelay({ attempts, retryAfterMs: asked, schedule, random })
  const pauses = asked !== undefined && asked > 0 && (result.status === 429 || result.status === 503)
  return {
    ...(delay === undefined ? { state: 'dead', retryInMs: 0 } : { state: 'retrying', retryInMs: delay }),
    ...(pauses ? { pauseHookMs: asked } : {}),
  }
}
