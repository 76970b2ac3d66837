import { EventEmitter } from 'node:events'
import { JetStreamApiError, type JetStreamClient, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { headers } from '@nats-io/transport-node'
import { createBackOff } from '../platform/back-off.ts'
import type { Logger } from '../platform/logger.ts'
import type { NatsLink } from '../platform/nats/nats.ts'
import { StartupError } from '../platform/startup-error.ts'
import { pause } from '../platform/wake-up.ts'
import type { BusEvent, EventBus, PublishResult } from './bus.ts'
import { consumeBatches } from './jetstream-consumer.ts'
import {
  consumerName,
  ensureConsumer,
  ensureStream,
  requireVersion,
  revocationsSubject,
  streamName,
  subjectOf,
} from './jetstream-stream.ts'

/** How long a confirmation is waited for, in ms; meanwhile the publisher's transaction stays open. */
const confirmationMs = 3_000
/**
 * In bytes. A bigger event travels by its id alone: the relay reads what it delivers from the ledger, and what is on
 * its way to a relay must fit into its memory.
 */
const largestBody = 65_536
/** The headers around a body, in bytes, at most. */
const envelopeBytes = 2_048
/** The clocks of broker and database may differ by this much, in ms. */
const clockToleranceMs = 5_000
/**
 * What stood a moment ago is being deleted: a server (2.9) that is asked to make it again meanwhile takes files from
 * under the new one, or never delivers from it. In ms.
 */
const deletionMs = 1_000

export interface JetStreamBusOptions {
  nats: NatsLink
  logger: Logger
}

/**
 * Events through a stream of NATS JetStream. Resolves when the stream stands, or without it when no server is there:
 * everything is then made when one comes. Throws `StartupError` when a server is there that cannot serve, or holds the
 * stream with other settings.
 */
export const createJetStreamBus = async ({ nats, logger }: JetStreamBusOptions): Promise<EventBus> => {
  const emitter = new EventEmitter().setMaxListeners(0)
  const broker = createBroker(nats)
  const stopForgetting = nats.onDisconnect(broker.forget)
  // Everybody who waits for the broker looks again.
  const stopWaking = nats.onConnect(() => void emitter.emit('wake'))

  try {
    if (nats.connection) await broker.stream()
  } catch (error) {
    if (error instanceof StartupError) throw error
    logger.warn({ reason: (error as Error).message }, 'NATS does not serve events now; they wait in the outbox')
  }

  /** Waits for `get` to succeed, however long that takes; undefined when `signal` aborts. */
  const eventually = async <Value>(get: () => Promise<Value>, signal: AbortSignal): Promise<Value | undefined> => {
    const backOff = createBackOff()
    let told: string | undefined
    while (!signal.aborted) {
      try {
        return await get()
      } catch (error) {
        const reason = (error as Error).message
        if (nats.connection && told !== reason) logger.error({ reason }, 'NATS does not serve events; trying again')
        told = reason
        await new Promise<void>((resolve) => {
          const stop = nats.onConnect(resolve)
          void pause(backOff.next(), signal).then(resolve).finally(stop)
        })
      }
    }
    return undefined
  }

  const publishOne = async (js: JetStreamClient, event: BusEvent, maxBytes: number): Promise<PublishResult> => {
    const head = headers()
    head.set('Surrogate-Key', encodeURIComponent(event.key))
    head.set('Surrogate-Version', String(event.version))
    const fits = event.payload.length <= Math.min(largestBody, maxBytes - envelopeBytes)
    if (!fits) head.set('Surrogate-Payload', 'omitted')
    try {
      const { duplicate } = await js.publish(subjectOf(event.type), fits ? event.payload : new Uint8Array(), {
        msgID: event.id,
        headers: head,
        timeout: confirmationMs,
        retries: 1,
      })
      return { outcome: duplicate ? 'duplicate' : 'ok' }
    } catch (error) {
      return { outcome: 'error', error: error as Error }
    }
  }

  return {
    transport: 'broker',
    async ready(signal) {
      await eventually(broker.stream, signal)
    },
    async publish(batch) {
      const results = new Array<PublishResult>(batch.length)
      let js: JetStreamClient
      try {
        js = (await broker.stream()).jetstream()
      } catch (error) {
        return results.fill({ outcome: 'error', error: error as Error })
      }
      const maxBytes = nats.connection?.info?.max_payload ?? 1_048_576
      const indexed = batch.map((event, index) => ({ event, index }))
      const lines = Map.groupBy(indexed, ({ event }) => event.key)
      await Promise.all(
        [...lines.values()].map(async (line) => {
          let failed: PublishResult | undefined
          for (const { event, index } of line) {
            const result = failed ?? (await publishOne(js, event, maxBytes))
            results[index] = result
            if (result.outcome === 'error') failed = result
          }
        }),
      )
      // The stream may be gone, or another one: look before the next batch.
      if (results.some(({ outcome }) => outcome === 'error')) broker.forget()
      return results
    },
    async consume(consumer, { signal }) {
      const backOff = createBackOff()
      while (!signal.aborted) {
        const manager = await eventually(broker.consumer, signal)
        if (manager === undefined) return
        try {
          await consumeBatches({ manager, consumer, logger, signal })
          backOff.reset()
        } catch (error) {
          logger.warn({ reason: (error as Error).message }, 'the stream of events broke off; beginning again')
        }
        broker.forget()
        if (!signal.aborted) await pause(backOff.next(), signal)
      }
    },
    async lostBefore() {
      const manager = await broker.consumer().catch(() => undefined)
      if (manager === undefined) return undefined
      const oldest = await oldestOpen(manager)
      return oldest && new Date(oldest.getTime() - clockToleranceMs)
    },
    wake: () => void emitter.emit('wake'),
    onWake(listener) {
      emitter.on('wake', listener)
      return () => void emitter.off('wake', listener)
    },
    hintRevocations: () => nats.connection?.publish(revocationsSubject),
    async health() {
      if (nats.connection === undefined)
        return { ok: true, connected: false, detail: `degraded: NATS ${nats.trouble}; events wait in the outbox` }
      const { refusal } = broker
      return refusal === undefined
        ? { ok: true, connected: true, detail: `NATS ${nats.connection.info?.version}` }
        : { ok: false, connected: true, detail: refusal }
    },
    async close() {
      stopForgetting()
      stopWaking()
      await nats.close()
    },
  }
}

/** The stream and the consumer, looked at once for each connection and again after `forget`. */
const createBroker = (nats: NatsLink) => {
  let opened: { stream?: Promise<JetStreamManager>; consumer?: Promise<JetStreamManager> } = {}
  let refusal: string | undefined
  const seen = { stream: false, consumer: false }

  const kept = (part: 'stream' | 'consumer', make: () => Promise<JetStreamManager>) => {
    const where = opened
    const promise = where[part] ?? make()
    where[part] = promise
    promise.then(
      () => {
        refusal = undefined
        seen[part] = true
      },
      (error: unknown) => {
        if (where[part] === promise) delete where[part]
        refusal = error instanceof StartupError ? error.message : undefined
      },
    )
    return promise
  }
  const stream = () =>
    kept('stream', async () => {
      const { connection } = nats
      if (connection === undefined) throw new Error(`NATS: ${nats.trouble}`)
      requireVersion(connection)
      const manager = await jetstreamManager(connection).catch(explainAbsence)
      await ensureStream(manager, seen.stream ? deletionMs : 0)
      return manager
    })
  const consumer = () =>
    kept('consumer', async () => {
      const manager = await stream()
      await ensureConsumer(manager, seen.consumer ? deletionMs : 0)
      return manager
    })
  return {
    stream,
    consumer,
    forget() {
      opened = {}
    },
    get refusal() {
      return refusal
    },
  }
}

const explainAbsence = (error: unknown): never => {
  if ((error as Error).name !== 'JetStreamNotEnabled') throw error
  throw new StartupError('This NATS server, or the account, has no JetStream.', {
    hint: 'Give nats-server a jetstream block in its configuration (or -js), or unset NATS_URL.',
    exitCode: 3,
    cause: error,
  })
}

/** When the oldest event that no relay has acknowledged was stored; now when there is none. */
const oldestOpen = async (manager: JetStreamManager): Promise<Date | undefined> => {
  const asked = new Date()
  const { num_pending, num_ack_pending, ack_floor } = await manager.consumers.info(streamName, consumerName)
  if (num_pending === 0 && num_ack_pending === 0) return asked
  const { state } = await manager.streams.info(streamName)
  const seq = Math.max(ack_floor.stream_seq + 1, state.first_seq)
  if (seq > state.last_seq) return asked
  try {
    const message = await manager.streams.getMessage(streamName, { seq })
    return message?.time
  } catch (error) {
    // Deleted by hand: nothing is known before the next look.
    if (error instanceof JetStreamApiError) return undefined
    throw error
  }
}
