import { createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import { type Channel, channels, connectorTypeOf, openMessage } from '../../deliveries/messages/message.ts'
import { type MessageConfig, noMessages } from '../../deliveries/messages/settings.ts'
import { backOffMs, createBackOff } from '../../platform/back-off.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { Resolve } from '../../platform/http/outbound.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { createWakeUp, pause, type WakeUp } from '../../platform/wake-up.ts'
import {
  type ClaimedMessage,
  claimMessages,
  expireMessages,
  messageFailed,
  messageSent,
  waitingMessages,
} from './message-claim-store.ts'
import { createMessageMetrics } from './message-metrics.ts'
import type { Sign } from './senders/http.ts'
import { failure, type SendResult } from './senders/sender.ts'
import { createSenders } from './senders.ts'

/** Sends what issuers have put into the ledger for people. Any number of relays share the work. */
export interface MessageSending {
  /** There may be new messages. */
  wake(): void
  /** Takes no more, and lets those that are being sent end. */
  close(graceMs: number): Promise<void>
}

export interface MessageSendingOptions {
  config: MessageConfig | undefined
  /** For one message, in ms. Default 20 000. */
  timeoutMs?: number | undefined
  /** Until another relay takes over, in ms. Must exceed `timeoutMs`. Default 30 000. */
  leaseMs?: number | undefined
  /** Delays before attempts 2, 3, … in ms; the last one again and again. */
  schedule?: readonly number[] | undefined
  database: Database
  envelope: Envelope
  logger: Logger
  metrics: Metrics
  /** In [0, 1), for jitter. */
  random: () => number
  resolve?: Resolve | undefined
  /** How requests to operators' own URLs are signed. */
  sign: Sign
}

const defaultSchedule = [1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000]
/** Messages of one channel that a relay sends at a time. */
const concurrency = 20
/** How often it looks without being woken, in ms. */
const pollMs = 1_000
/** A provider that does not work is left alone for so long, at most. In ms. */
const longestPauseMs = 30_000

export const startMessageSending = (options: MessageSendingOptions): MessageSending => {
  const {
    database,
    envelope,
    logger,
    random,
    timeoutMs = 20_000,
    leaseMs = 30_000,
    schedule = defaultSchedule,
  } = options
  const { query } = database
  const connectors = createConnectorStore(envelope)
  const senders = createSenders({ config: options.config ?? noMessages, resolve: options.resolve, sign: options.sign })
  const metrics = createMessageMetrics(options.metrics, () => waitingMessages(query))
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()

  /** Which provider takes the message, and under which name it is stored. */
  const providerOf = async (channel: Channel, trial: { connectorId: string; config: unknown } | undefined) => {
    if (trial) return { name: trial.connectorId, sender: senders.of(channel, '', trial), isTrial: true }
    const connector = await connectors.sender(query, connectorTypeOf[channel])
    if (connector) {
      const key = `${connector.id} ${connector.updatedAt.getTime()}`
      return { name: connector.connectorId, sender: senders.of(channel, key, connector), isTrial: false }
    }
    const sender = senders.withoutConnector(channel)
    return sender && { name: 'outbox', sender, isTrial: false }
  }

  const attempt = async (
    channel: Channel,
    { id, type, remainingMs }: ClaimedMessage,
    content: ReturnType<typeof openMessage>,
  ): Promise<{ name: string | undefined; result: SendResult }> => {
    const provider = await providerOf(channel, content.connector)
    if (provider === undefined) return { name: undefined, result: failure('provider', 'no_connector') }
    const { name, sender, isTrial } = provider
    try {
      return { name, result: await sender.send({ ...content, id, type }, Math.min(timeoutMs, remainingMs)) }
    } finally {
      if (isTrial) sender.close()
    }
  }

  /** What a failed attempt means for its message. */
  const retryAfter = ({ type, attempts }: ClaimedMessage, result: Extract<SendResult, { sent: false }>) => {
    if (result.because === 'message' || type === 'Test') return undefined
    const delay = schedule[Math.min(attempts, schedule.length) - 1] ?? 1_000
    return Math.max(delay * (0.9 + 0.2 * random()), result.retryAfterMs ?? 0)
  }

  /** The result of an attempt is lost only when the database stays away until the lease ends: it is sent again then. */
  const stored = async (store: () => Promise<void>) => {
    const until = performance.now() + leaseMs
    for (let failures = 1; ; failures++) {
      try {
        return await store()
      } catch (error) {
        if (performance.now() > until) throw error
        await pause(backOffMs(failures), AbortSignal.timeout(leaseMs))
      }
    }
  }

  const channelLoop = (channel: Channel, wakeUp: WakeUp) => {
    let busy = 0
    let providerFailures = 0
    let pausedUntil = 0

    const learn = (result: SendResult, name: string | undefined) => {
      if (result.sent || result.because !== 'provider') {
        providerFailures = 0
        pausedUntil = 0
        return
      }
      // A server may hold more than this message up.
      if (result.error === 'timeout') senders.drop(channel)
      // What was under way together failed together: that is one failure.
      if (performance.now() < pausedUntil) return
      providerFailures++
      pausedUntil = performance.now() + backOffMs(providerFailures, { first: 500, longest: longestPauseMs })
      if (providerFailures === 1)
        logger.warn({ channel, connector: name, reason: result.error }, 'messages cannot be sent now')
    }

    const send = async (message: ClaimedMessage) => {
      const content = openMessage(envelope, message.id, message.sealed)
      const { name, result } = await attempt(channel, message, content)
      if (message.type !== 'Test') learn(result, name)
      if (result.sent) {
        await stored(() => messageSent(query, message.id, name!))
        metrics.count(channel, 'sent')
        return
      }
      const retryMs = retryAfter(message, result)
      await stored(async () => {
        const isOver = await messageFailed(query, message, { error: result.error, connector: name, retryMs })
        metrics.count(channel, isOver ? 'failed' : 'retried')
        if (isOver) logger.warn({ messageId: message.id, channel, reason: result.error }, 'a message was not sent')
      })
    }

    const begin = (message: ClaimedMessage) => {
      busy++
      const work = send(message)
        // It stays claimed until its lease ends; then any relay takes it.
        .catch((error) => logger.error({ err: error, messageId: message.id }, 'a message could not be handled'))
        .finally(() => {
          busy--
          running.delete(work)
          wakeUp.wake()
        })
      running.add(work)
    }

    return async () => {
      const backOff = createBackOff()
      while (!stopping.signal.aborted) {
        const room = concurrency - busy
        const pauseLeft = pausedUntil - performance.now()
        try {
          const isPaused = pauseLeft > 0
          const limit = room > 0 ? room : 0
          const claimed = limit > 0 ? await claimMessages(query, { channel, limit, leaseMs, testsOnly: isPaused }) : []
          for (const message of claimed) begin(message)
          backOff.reset()
          if (claimed.length > 0 && claimed.length === limit) continue
          await wakeUp.wait(isPaused ? Math.min(pollMs, Math.max(pauseLeft, 10)) : pollMs, stopping.signal)
        } catch (error) {
          logger.warn({ err: error, channel }, 'messages could not be looked for; trying again')
          await pause(backOff.next(), stopping.signal)
        }
      }
    }
  }

  const expireLoop = async () => {
    while (!stopping.signal.aborted) {
      try {
        for (const channel of await expireMessages(query)) metrics.count(channel, 'expired')
      } catch (error) {
        logger.warn({ err: error }, 'messages that were not sent in time could not be erased; trying again')
      }
      await pause(pollMs, stopping.signal)
    }
  }

  const wakeUps = channels.map((channel) => ({ channel, wakeUp: createWakeUp() }))
  const loops = wakeUps.map(({ channel, wakeUp }) => channelLoop(channel, wakeUp)())
  const expiring = expireLoop()

  return {
    wake() {
      for (const { wakeUp } of wakeUps) wakeUp.wake()
    },
    async close(graceMs) {
      stopping.abort()
      await Promise.all([...loops, expiring])
      const ended = new AbortController()
      void Promise.allSettled([...running]).then(() => ended.abort())
      await pause(graceMs, ended.signal)
      await senders.close()
      // What was broken off says so, and is stored.
      await Promise.allSettled([...running])
      metrics.close()
    },
  }
}
