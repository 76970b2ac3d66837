import type { Query } from '../platform/database.ts'
import type { LockedEvent, Locking } from './ledger-store.ts'

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
  /** Resolves when events can be handed over, or when `signal` aborts. While a broker is away it does not resolve. */
  ready(signal: AbortSignal): Promise<void>
  /** Hands events over; the answers are in the order of the batch. Of one `key` an event is sent once the one before it is confirmed. */
  publish(batch: readonly BusEvent[]): Promise<PublishResult[]>
  /** Runs until `signal` aborts; resolves when the last handler call has ended. A batch whose handler throws comes again. */
  consume(handler: BusHandler, options: { signal: AbortSignal }): Promise<void>
  /**
   * What was published before this and is not taken in yet never will be: the broker lost it. Undefined while that cannot be told.
   * By the broker's clock.
   */
  settledBefore(): Promise<Date | undefined>
  /** There is something new in the outbox. Call it after the commit. */
  wake(): void
  /** Runs `listener` at every wake-up. Returns what ends that. */
  onWake(listener: () => void): () => void
  /** Tells whoever listens to the broker that something was revoked. A hint to look at the feed now, no more. */
  hintRevocations(): void
  /** `ok` also while a broker is away: changes go on, and events wait in the outbox. False when an operator must act. */
  health(): Promise<{ ok: boolean; detail?: string; connected: boolean }>
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
  /** What a broker brought: ids of events, in the order in which they came; one may come twice. */
  eventIds: readonly string[]
  /** From a broker: the SHA-256 of what came with each id, null when it came without its bytes. */
  digests?: readonly (Buffer | null)[]
  /** The bus is the ledger, and brings nothing: this locks what comes next there, in the transaction that takes it in. */
  lockNext?(query: Query, locking: Locking): Promise<LockedEvent[]>
}

/**
 * Takes a batch in, in a transaction of its own; the bus acknowledges once it resolves. When events were `deferred`, because an earlier one
 * is still missing, the batch comes again. `unknown` events are not in the ledger: they do not come again. A bus hands over up to
 * `batchesAtOnce` at the same time.
 */
export type BusHandler = (batch: BusBatch) => Promise<{ deferred: number; unknown?: readonly string[] }>

/** One is stored while the events of the other are sent. */
export const batchesAtOnce = 2
