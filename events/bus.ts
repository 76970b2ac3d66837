/**
 * How events travel from the outbox to the relays (`relay/ingest.ts`). Transport only: it may lose or repeat whatever
 * it carries, because the outbox keeps every event until a relay has ingested it.
 */
export interface EventBus {
  /**
   * `ledger`: consumers read the outbox itself, so there is nothing to publish. `broker`: the publisher hands events
   * over and the reconciler repeats what never arrived.
   */
  readonly transport: 'ledger' | 'broker'
  /** Resolves when events can be handed over, or when `signal` aborts. While a broker is away it does not resolve. */
  ready(signal: AbortSignal): Promise<void>
  /**
   * Hands events over; the answers are in the order of the batch. Of one `key` an event is sent once the one before it
   * is confirmed.
   */
  publish(batch: readonly BusEvent[]): Promise<PublishResult[]>
  /**
   * Runs until `signal` aborts; resolves when the last call of the consumer has ended. What it fails to ingest comes
   * again.
   */
  consume(consumer: EventConsumer, options: { signal: AbortSignal }): Promise<void>
  /**
   * An event that was published before this time, and is not ingested yet, was lost by the broker. Undefined while that
   * cannot be told. By the broker's clock.
   */
  lostBefore(): Promise<Date | undefined>
  /** There is something new in the outbox. Call it after the commit. */
  wake(): void
  /** Runs `listener` at every wake-up. Returns what ends that. */
  onWake(listener: () => void): () => void
  /** Tells whoever listens to the broker that something was revoked. A hint to look at the feed now, no more. */
  hintRevocations(): void
  /**
   * `ok` also while a broker is away: changes go on, and events wait in the outbox. False when an operator must act.
   */
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

/** What a broker brought. */
export interface BusMessage {
  eventId: string
  /** SHA-256 of the payload; null when it came without. */
  digest: Buffer | null
}

/** Ingests events into the ledger, each call in transactions of its own. One call at a time. */
export interface EventConsumer {
  /**
   * Ingests what a broker brought, in the order in which it came; an event may come twice. The bus acknowledges the
   * messages afterwards. `deferred`: how many have to come again, because an earlier event is still missing. `unknown`:
   * ids that are not in the ledger, and need not come again.
   */
  ingest(messages: readonly BusMessage[]): Promise<{ deferred: number; unknown: readonly string[] }>
  /**
   * For a bus that is the ledger: ingests the next events of the outbox, at most `limit`. `found`: how many there were;
   * `deferred`: how many of them have to wait for events that another relay is ingesting.
   */
  ingestNext(limit: number): Promise<{ found: number; deferred: number }>
}
