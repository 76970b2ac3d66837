import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { JetStreamManager, JsMsg } from '@nats-io/jetstream'
import { createBackOff } from '../platform/back-off.ts'
import type { Logger } from '../platform/logger.ts'
import { pause } from '../platform/wake-up.ts'
import type { BusMessage, EventConsumer } from './bus.ts'
import { consumerName, streamName } from './jetstream-stream.ts'

/** Events handled together, and on their way to us, at most. Each is 64 kB at most (`largestBody`). */
const batchSize = 500
/** A pull is asked for again after `expires`; two heartbeats that do not come mean that something is gone. In ms. */
const pull = { max_messages: batchSize, expires: 10_000, idle_heartbeat: 1_000, abort_on_missing_resource: true }
/** How soon a batch comes again whose earlier events another relay is ingesting, in ms. */
const deferredMs = 20

export interface ConsumeOptions {
  manager: JetStreamManager
  consumer: EventConsumer
  logger: Logger
  signal: AbortSignal
}

/**
 * Hands over what JetStream brings, in batches: one at a time, as many messages as have come meanwhile. Acknowledges
 * them afterwards. Ends when `signal` aborts, after what has arrived is handled; throws when the consumer, the stream
 * or the connection is gone.
 */
export const consumeBatches = async ({ manager, consumer, logger, signal }: ConsumeOptions): Promise<void> => {
  const pulled = await manager.jetstream().consumers.get(streamName, consumerName)
  const messages = await pulled.consume({ ...pull })
  const stop = () => messages.stop()
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const backOff = createBackOff()
  try {
    for await (const batch of batchesOf(messages)) {
      try {
        await handleBatch(batch, consumer, logger)
        backOff.reset()
      } catch (error) {
        logger.error({ err: error }, 'events could not be taken in; they come again')
        await pause(backOff.next(), signal)
        for (const message of batch) message.nak()
      }
    }
  } finally {
    signal.removeEventListener('abort', stop)
    messages.stop()
  }
}

/** What has come already, as one; waits only for the first of each. */
async function* batchesOf(messages: AsyncIterable<JsMsg>): AsyncGenerator<JsMsg[]> {
  const iterator = messages[Symbol.asyncIterator]()
  let next = iterator.next()
  for (;;) {
    const batch: JsMsg[] = []
    let result: IteratorResult<JsMsg> | undefined = await next
    while (result !== undefined && !result.done) {
      batch.push(result.value)
      next = iterator.next()
      result = batch.length < batchSize ? await Promise.race([next, setImmediate(undefined)]) : undefined
    }
    if (batch.length > 0) yield batch
    if (result?.done) return
  }
}

const handleBatch = async (messages: readonly JsMsg[], consumer: EventConsumer, logger: Logger) => {
  const quarantine = (message: JsMsg, reason: string) => {
    const { subject, seq } = message
    logger.error({ subject, seq, bytes: message.data.length, reason }, 'a message in the stream of events is no event')
    message.term()
  }
  const events = messages.flatMap((message): (BusMessage & { message: JsMsg })[] => {
    const eventId = message.headers?.get('Nats-Msg-Id').toLowerCase() ?? ''
    if (uuid.test(eventId)) return [{ eventId, digest: digestOf(message), message }]
    quarantine(message, 'it has no Nats-Msg-Id that is a UUID')
    return []
  })
  if (events.length === 0) return
  const { deferred, unknown } = await consumer.ingest(events)
  const missing = new Set(unknown)
  for (const { eventId, message } of events) {
    if (missing.has(eventId)) quarantine(message, 'the ledger does not know it')
    else if (deferred > 0) message.nak(deferredMs)
    else message.ack()
  }
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

const digestOf = ({ headers, data }: JsMsg): Buffer | null =>
  headers?.get('Surrogate-Payload') === 'omitted' ? null : hash('sha256', data, 'buffer')
