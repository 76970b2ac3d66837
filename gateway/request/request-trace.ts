import { randomHex } from '../../platform/ids.ts'
import { filterFields } from './field-list.ts'
import { type RequestHeaders, setFields } from './headers.ts'
import type { RequestContext } from './request-context.ts'
import { formatTraceparent, isTracestate, parseTraceparent, type Traceparent } from './traceparent.ts'

/** The trace that a request belongs to. Without telemetry it is the caller's, or there is none. */
export interface RequestTrace {
  readonly traceId: string
  /** Of the gateway's own span; undefined without telemetry, which makes none. */
  readonly spanId: string | undefined
  /** The caller's span. */
  readonly parentId: string | undefined
  readonly sampled: boolean
  /** `tracestate`, as it came. */
  readonly state: string | undefined
  /** When what began and ended; of sampled requests with telemetry. */
  readonly times: RequestTimes | undefined
}

/** What telemetry decides at the start of a request. */
export interface Tracing {
  /** By the id alone, so that every process and service with the same ratio agrees. */
  samples(traceId: string): boolean
}

/** Times are those of `performance.now()`; undefined = has not ended. */
export interface Period {
  readonly name: 'verify' | 'decide'
  readonly startedAt: number
  endedAt: number | undefined
}

/** One request upstream. */
export interface Attempt {
  readonly spanId: string
  readonly target: { readonly name: string; readonly origin: string }
  readonly startedAt: number
  endedAt: number | undefined
  /** Of the upstream's answer; undefined = none has begun. */
  status: number | undefined
  /** The code of what it failed with. */
  error: string | undefined
}

export class RequestTimes {
  readonly periods: Period[] = []
  readonly attempts: Attempt[] = []

  enter(name: Period['name']): void {
    this.periods.push({ name, startedAt: performance.now(), endedAt: undefined })
  }

  /** Ends the period under way, if there is one. */
  leave(): void {
    const last = this.periods.at(-1)
    if (last && last.endedAt === undefined) last.endedAt = performance.now()
  }
}

/**
 * Reads `traceparent` and `tracestate`, and drops from `forwardable` what is not valid (§3.4). A caller's ids are
 * believed; whether it is sampled only when `trusted`, since every sampled request costs.
 */
export const readTrace = (
  headers: RequestHeaders,
  trusted: boolean,
  tracing: Tracing | undefined,
): RequestTrace | undefined => {
  const { traceparent, tracestate } = headers
  const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent)
  const state = parent && tracestate !== undefined && isTracestate(tracestate) ? tracestate : undefined
  if (traceparent !== undefined && !parent) drop(headers, 'traceparent')
  if (tracestate !== undefined && state === undefined) drop(headers, 'tracestate')
  if (tracing) return newTrace(tracing, parent, state, trusted)
  return parent && { ...parent, spanId: undefined, state, times: undefined }
}

const drop = (headers: RequestHeaders, dropped: string): void => {
  headers.forwardable = filterFields(headers.forwardable, (name) => name !== dropped)
}

export const newTrace = (
  tracing: Tracing,
  parent?: Traceparent,
  state?: string | undefined,
  trusted = false,
): RequestTrace => {
  const traceId = parent?.traceId ?? randomHex(16)
  const sampled = parent && trusted ? parent.sampled : tracing.samples(parent ? randomHex(16) : traceId)
  return {
    traceId,
    spanId: randomHex(8),
    parentId: parent?.parentId,
    sampled,
    state,
    times: sampled ? new RequestTimes() : undefined,
  }
}

/** Puts the gateway's own span in the place of the caller's. */
export const setTraceparent = (flat: string[], { traceId, spanId, sampled }: RequestTrace): void => {
  if (spanId !== undefined) setFields(flat, { traceparent: formatTraceparent(traceId, spanId, sampled) })
}

/** Of a sampled request: notes that it is sent upstream now, with `fields`, which get the span of this attempt. */
export const beginAttempt = (
  { trace }: RequestContext,
  { name, origin }: Attempt['target'],
  fields: string[],
): Attempt | undefined => {
  if (!trace?.times) return undefined
  const attempt: Attempt = {
    spanId: randomHex(8),
    target: { name, origin },
    startedAt: performance.now(),
    endedAt: undefined,
    status: undefined,
    error: undefined,
  }
  trace.times.attempts.push(attempt)
  setTraceparent(fields, { ...trace, spanId: attempt.spanId })
  return attempt
}

export const endAttempt = (
  attempt: Attempt | undefined,
  { status, error }: { status?: number; error?: string },
): void => {
  if (!attempt || attempt.endedAt !== undefined) return
  attempt.endedAt = performance.now()
  if (status !== undefined) attempt.status = status
  attempt.error = error
}

/** For log lines about a request, as OpenTelemetry names them in JSON. */
export const traceFields = ({ trace }: RequestContext): { trace_id?: string; span_id?: string | undefined } =>
  trace ? { trace_id: trace.traceId, span_id: trace.spanId } : {}
