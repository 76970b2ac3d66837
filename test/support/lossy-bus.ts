import { EventEmitter } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { BusEvent, EventBus, PublishResult } from '../../events/bus.ts'

/** A broker at its worst: it refuses, loses, repeats and reorders as told, and remembers nothing. */
export const createLossyBus = (misbehave: {
  /** This event is refused. */
  refuses?: (event: BusEvent) => boolean
  /** This event is confirmed and then lost. */
  loses?: (event: BusEvent) => boolean
  /** Batches arrive backwards, and twice. */
  scrambles?: boolean
}) => {
  const emitter = new EventEmitter().setMaxListeners(0)
  const published: BusEvent[] = []
  let queue: string[] = []
  const refusal: PublishResult = { outcome: 'error', error: new Error('refused') }
  const publishOne = (event: BusEvent): PublishResult => {
    if (misbehave.refuses?.(event)) return refusal
    published.push(event)
    if (!misbehave.loses?.(event)) queue.push(event.id)
    return { outcome: 'ok' }
  }
  const bus: EventBus = {
    transport: 'broker',
    ready: async () => {},
    lostBefore: async () => new Date(),
    publish: async (batch) => {
      const failed = new Set<string>()
      return batch.map((event) => {
        const result = failed.has(event.key) ? refusal : publishOne(event)
        if (result.outcome === 'error') failed.add(event.key)
        return result
      })
    },
    async consume(consumer, { signal }) {
      while (!signal.aborted) {
        const taken = queue
        queue = []
        if (taken.length > 0) {
          const eventIds = misbehave.scrambles ? [...taken.toReversed(), ...taken] : taken
          const { deferred } = await consumer.ingest(eventIds.map((eventId) => ({ eventId, digest: null })))
          if (deferred > 0) queue.push(...taken)
        }
        await delay(2)
      }
    },
    wake: () => void emitter.emit('wake'),
    onWake(listener) {
      emitter.on('wake', listener)
      return () => emitter.off('wake', listener)
    },
    hintRevocations: () => {},
    health: async () => ({ ok: true, connected: true }),
    close: async () => {},
  }
  return { bus, published }
}
