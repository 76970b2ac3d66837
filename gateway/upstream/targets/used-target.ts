import type { Pool } from 'undici'
import type { EjectionSettings } from '../../config/settings/targets.ts'
import type { Candidate } from './balance/balancer.ts'
import type { Changes } from './group.ts'
import type { HealthChecks } from './health-checks.ts'
import type { TargetRecord } from './record.ts'
import type { Outcome, Target, TargetState } from './target.ts'

export interface UsedTargetOptions {
  name: string
  url: URL
  address: string | undefined
  labels: Readonly<Record<string, string>>
  weight: number
  pool: Pool
  record: TargetRecord
  checks: HealthChecks | undefined
  ejection: EjectionSettings | undefined
  /** ms */
  slowStart: number
  changes: Changes
  now: () => number
  onEjected: (forMs: number) => void
}

/** What a target gets at once when it comes. */
const smallestShare = 0.1

/** A target as one configuration uses it. A class: its methods are called for every request. */
export class UsedTarget implements Target, Candidate {
  readonly name: string
  readonly origin: string
  readonly address: string | undefined
  readonly basePath: string
  readonly labels: Readonly<Record<string, string>>
  readonly pool: Pool
  currentWeight: number
  /** Called once, when the last request has ended. */
  onIdle: (() => void) | undefined
  readonly #options: UsedTargetOptions
  readonly #record: TargetRecord
  /** Requests of this configuration. */
  #own = 0

  constructor(options: UsedTargetOptions) {
    const { name, url, address, labels, weight, pool, record } = options
    this.name = name
    this.origin = url.origin
    this.address = address
    this.basePath = url.pathname.replace(/\/$/, '')
    this.labels = labels
    this.pool = pool
    this.currentWeight = weight
    this.#options = options
    this.#record = record
  }

  get running(): number {
    return this.#record.running
  }

  get idle(): boolean {
    return this.#own === 0
  }

  begin(): void {
    this.#record.running++
    this.#own++
  }

  end(outcome: Outcome): void {
    const record = this.#record
    record.running--
    record.outcomes[outcome]++
    if (outcome === 'answered') record.ejection.answered()
    else if (outcome === 'failed') this.#failed()
    if (--this.#own > 0 || this.onIdle === undefined) return
    const { onIdle } = this
    this.onIdle = undefined
    onIdle()
  }

  #failed(): void {
    const { ejection, changes, now, onEjected } = this.#options
    if (!ejection) return
    const at = now()
    if (!this.#record.ejection.failed(ejection, at)) return
    changes.count++
    onEjected(Math.round(this.#record.ejection.until - at))
  }

  /** Infinity when nobody knows. */
  outUntil(at: number): number {
    const { checks, ejection } = this.#options
    if (checks?.state === 'unhealthy') return Number.POSITIVE_INFINITY
    return ejection ? this.#record.ejection.until : at
  }

  /** Sets its weight as of now; returns the share of its full one. */
  grow(at: number): number {
    const { slowStart, weight } = this.#options
    const { since, ejection } = this.#record
    const came = ejection.until > at ? since : Math.max(since, ejection.until)
    const share = slowStart === 0 ? 1 : Math.min(Math.max((at - came) / slowStart, smallestShare), 1)
    this.currentWeight = weight * share
    return share
  }

  state(at: number, overdrawn: boolean): TargetState {
    const { checks, weight, ejection } = this.#options
    const record = this.#record
    const out = this.outUntil(at) > at
    const share = this.grow(at)
    return {
      name: this.name,
      labels: this.labels,
      weight,
      state: out ? (overdrawn ? 'used' : 'out') : 'in',
      health: checks?.state ?? 'unknown',
      ...(checks?.reason !== undefined && { reason: checks.reason }),
      ...(ejection && record.ejection.until > at && { ejectedForMs: Math.round(record.ejection.until - at) }),
      ejections: record.ejection.count,
      share: Math.round(share * 100) / 100,
      running: record.running,
      ...record.outcomes,
    }
  }
}
