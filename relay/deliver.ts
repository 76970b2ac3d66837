import type { Clock } from '../platform/clock.ts'
import type { OutboundAgent } from '../platform/http/outbound.ts'
import { type AttemptResult, attempt } from './attempt.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { Lease, OpenDelivery } from './ledger/lane-store.ts'
import { redactResponse } from './redact-response.ts'
import { retryAfterMs, retryDelay } from './retry-schedule.ts'
import { signatureHeaders } from './signature.ts'
import type { Target } from './targets.ts'

export interface DeliverOptions {
  agent: OutboundAgent
  now: Clock
  /** In [0, 1). Default Math.random. */
  random?: () => number
  attemptTimeoutMs: number
  schedule: readonly number[]
}

export type Deliver = (lease: Lease, target: Target, delivery: OpenDelivery, signal: AbortSignal) => Promise<Attempted>

/** Without what only the lane knows. */
export type Attempted = Omit<AttemptRecord, 'changesHealth'> & { ownFault?: true }

const userAgent = 'Surrogate-Webhooks/1'

/** Signs one delivery, POSTs it, and says what that means for the delivery and its hook. */
export const createDeliver = (options: DeliverOptions): Deliver => {
  const { agent, now, random = Math.random, attemptTimeoutMs, schedule } = options
  return async (lease, target, delivery, signal) => {
    const at = now()
    if (delivery.payload === null) return { ...unsent, lease, deliveryId: delivery.id, at }
    const body = bodyOf(target.id, delivery.payload)
    const timestamp = Math.floor(at.getTime() / 1_000)
    const own = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signatureHeaders({ id: delivery.eventId, timestamp, body, keys: target.keys }),
      ...(delivery.gap ? { 'surrogate-gap': 'true' } : {}),
    }
    const custom = customHeaders(target.headers, own)
    const result = await attempt({
      agent,
      owner: target.id,
      url: target.url,
      headers: { ...custom, ...own },
      body,
      timeoutMs: attemptTimeoutMs,
      signal,
    })
    const logged = redactResponse(result, custom)
    return {
      lease,
      deliveryId: delivery.id,
      at,
      durationMs: result.durationMs,
      ...(delivery.test
        ? { state: result.succeeded ? 'succeeded' : 'dead', retryInMs: 0 }
        : consequences(result, { attempts: delivery.attempts + 1, schedule, now: now(), random: random() })),
      requestHeaders: {
        ...Object.fromEntries(Object.keys(custom).map((name) => [name, '[redacted]'])),
        ...own,
      },
      status: result.status,
      responseHeaders: logged.headers,
      responseBody: logged.body,
      error: result.error,
      address: result.address,
      ...(result.ownFault ? { ownFault: true } : {}),
    }
  }
}

/** Cannot be: events are kept while a delivery of theirs is open. */
const unsent = {
  state: 'dead',
  retryInMs: 0,
  durationMs: 0,
  requestHeaders: {},
  status: null,
  responseHeaders: null,
  responseBody: null,
  error: 'The event is no longer kept.',
  address: null,
} as const

/** Those of a hook but for what we say ourselves, however it is spelt: names are case-insensitive (RFC 9110 §5.1). */
const customHeaders = (headers: Record<string, string>, own: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !Object.hasOwn(own, name.toLowerCase())))

/**
 * `{"hookId":"<id>",` and the stored bytes after their brace: the same bytes on every retry and replay. Ids of hooks
 * are ASCII.
 */
export const bodyOf = (hookId: string, payload: string): Buffer => {
  const head = `{"hookId":${JSON.stringify(hookId)},`
  const body = Buffer.allocUnsafe(head.length - 1 + Buffer.byteLength(payload))
  // Without making the text anew: the last byte of the head takes the place of the brace.
  body.write(payload, head.length - 1)
  body.write(head, 'latin1')
  return body
}

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
