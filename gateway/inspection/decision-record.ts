import type { DecisionEvent } from '../logs/decision-event.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { DecisionFilter, DecisionRecord, Verdict } from './decision-answers.ts'

/** A `DecisionRecord` as JSON, and what it is found by: nothing that the masks have taken out of it. */
export interface KeptDecision {
  readonly bytes: Buffer<ArrayBuffer>
  /** ms since 1970 */
  readonly time: number
  readonly request: string
  readonly sid: string | undefined
  readonly subject: string | undefined
  readonly route: string | undefined
  readonly verdict: Verdict
}

/** A longer record is kept without input and result. In bytes. */
export const largestRecord = 524_288

export const keptDecision = ({ line, members }: DecisionEvent, context: RequestContext): KeptDecision => {
  const { id, route, upstreamRequest, response, decision, error, startedAt } = context
  const { input, result: _, ...rest } = members as { input?: unknown; result?: unknown }
  const verdict = verdictOf(context)
  const ended = {
    verdict,
    status: response.headersSent ? response.statusCode : 0,
    code: error?.code,
    // A policy's own stands in the result, where masks find it.
    detail: decision ? undefined : error?.detail,
    route: route?.id,
    target: upstreamRequest?.target,
    retries: upstreamRequest?.retries,
    duration: Math.round((performance.now() - startedAt) * 100) / 100,
  } satisfies Partial<DecisionRecord>
  const short = line.length <= largestRecord / 3 || Buffer.byteLength(line) <= largestRecord
  const text = short ? line : JSON.stringify({ ...rest, unwritable: ['input', 'result'] })
  const { token, subject } = (input ?? {}) as { token?: { sid?: unknown }; subject?: { id?: unknown } }
  return {
    bytes: Buffer.from(`${text.slice(0, -1)},${JSON.stringify(ended).slice(1)}`),
    time: Date.now(),
    request: id,
    sid: textOf(token?.sid),
    subject: textOf(subject?.id),
    route: route?.id,
    verdict,
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const verdictOf = ({ decision, error }: RequestContext): Verdict => {
  if (!error) return decision?.allow ? 'allowed' : 'denied'
  const failed = error.status >= 500 || decision?.allow || error.code === 'policy_error'
  return failed ? 'failed' : 'denied'
}

export const fits = (kept: KeptDecision, { request, sid, subject, route, verdict }: DecisionFilter): boolean =>
  (request === undefined || kept.request === request) &&
  (sid === undefined || kept.sid === sid) &&
  (subject === undefined || kept.subject === subject) &&
  (route === undefined || kept.route === route) &&
  (verdict === undefined || kept.verdict === verdict)
