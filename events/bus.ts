import type { Query } from '../platform/database.ts'

/**
 * How events travel from the outbox to the relays. Transport only: it may lose or repeat whatever it carries, because the outbox
 * keeps every event until a relay has taken it in.
 */
export interface EventBus {
  /**
   * `ledger`: consumers read the outbox itself, so there is nothing to publish. `broker`: the publisher hands events over and the
   * reconciler repeats what never arrived.
   */
  readonly transport: 'ledger' | 'broker'
  /** Hands events to a broker; the answers are in the order of the batch, which holds at most one event per `key`. */
  publish(batch: readonly BusEvent[]): Promise<PublishResult[]>
  /** Runs until `signal` aborts; resolves when the last handler call has ended. A batch whose handler throws comes again. */
  consume(handler: BusHandler, options: { signal: AbortSignal }): Promise<void>
  /** There is something new in the outbox: tells this process at once and the others within milliseconds. Call it after the commit. */
  wake(): void
  /** Runs `listener` at every wake-up, wherever it came from. Returns what ends that. */
  onWake(listener: () => void): () => void
  health(): Promise<{ ok: boolean; detail?: string }>
  close(): Promise<void>
}

export interface BusEvent {
  id: string
  /** `kind:id` of the entity: events of one key stay in order. */
  key: string
  version: number
  type: string
  payload: Buffer
}

/** `ok` and `duplicate` mean that the broker has it. */
export type PublishResult = { outcome: 'ok' | 'duplicate' } | { outcome: 'error'; error: Error }

export interface BusBatch {
  /** Ids of events, in the order in which they came. */
  eventIds: readonly string[]
  /** The transaction that holds the rows of the batch, when the bus is the ledger; else the handler opens its own. */
  transaction?: Query
}

/**
 * Takes a batch in; once it resolves the bus commits its transaction, if it gave one, and acknowledges. Then it calls `committed`.
 * `deferred` events were left, because an earlier one is still missing: they come again.
 */
export type BusHandler = (batch: BusBatch) => Promise<{ deferred: number; committed?: (() => void) | undefined }>
