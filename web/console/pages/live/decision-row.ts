import type { TailRow } from './tail.ts'

/** What of a decision stands in a line. Everything else is fetched when somebody asks why. */
export interface DecisionRow extends TailRow {
  gateway: string
  request: string
  verdict: 'allowed' | 'denied' | 'failed'
  /** 0: the client left before. */
  status: number
  /** `GET /orders/42`, as far as masks leave it. */
  what: string
  route?: string | undefined
  /** Of the refusal. */
  code?: string | undefined
  subject?: string | undefined
  actor?: string | undefined
  /** In ms. */
  duration: number
}

/** A decision as gateways tell it; masks may have taken out anything below `input`. */
export interface ToldDecision {
  gateway: string
  decision_id: string
  timestamp: string
  verdict: 'allowed' | 'denied' | 'failed'
  status: number
  code?: string | undefined
  route?: string | undefined
  duration: number
  input?: unknown
  result?: unknown
}

export const rowOf = (decision: ToldDecision): DecisionRow => {
  const { gateway, decision_id: request, timestamp, verdict, status, code, route, duration, input, result } = decision
  const method = textAt(input, 'request', 'method')
  const path = textAt(input, 'request', 'path')
  return {
    ...{ gateway, request, timestamp, verdict, status, route, duration },
    key: `${gateway} ${request}`,
    what: [method, path].filter(Boolean).join(' ') || 'A request that the masks do not name',
    // A policy's own reason says more than that it was the policy.
    code: verdict === 'allowed' ? undefined : (textAt(result, 'reason') ?? code),
    subject: textAt(input, 'subject', 'id'),
    actor: textAt(input, 'actor', 'id'),
  }
}

/** The text at a place of something unknown. */
export const textAt = (value: unknown, ...names: string[]): string | undefined => {
  const found = names.reduce<unknown>((at, name) => Object(at)[name], value)
  return typeof found === 'string' ? found : undefined
}

export const verdictKinds = { allowed: 'good', denied: 'bad', failed: 'warn' } as const
