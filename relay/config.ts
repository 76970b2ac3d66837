import { z } from 'zod'
import { type MessageConfig, messageConfigOf, messageSettings } from '../deliveries/messages/settings.ts'
import { loadConfig, setting } from '../platform/config.ts'
import { webhookTargetSettings } from '../platform/http/outbound.ts'

/** POSTs of one relay to one hook at a time. */
export const defaultPerHook = 4

/** The relay's own settings; database, keys and logging are those of every process. */
export const relaySettings = z.object({
  ...webhookTargetSettings,
  ...messageSettings,
  /** POSTs of one relay to one hook at a time, 1 to 64. Default 4. */
  WEBHOOK_CONCURRENCY: setting.integer(1, 64).default(defaultPerHook),
})

export interface RelayConfig {
  /** CIDRs that webhooks may reach although they are not public. */
  allowedNetworks: readonly string[]
  /** Webhooks may go over plain http. */
  allowHttp: boolean
  /**
   * POSTs to one hook at a time. Default 4: a receiver that takes 200 ms gets 20 deliveries a second from each relay.
   */
  perHook?: number
  /** Lanes under way at a time, over all hooks. Default 1 024. */
  maxLanes?: number
  /** Payloads and answers in memory, in bytes. Default 32 MiB. */
  maxBytes?: number
  /** For a whole POST, from connecting to the end of the answer, in ms. Default 15 000. */
  attemptTimeoutMs?: number
  /**
   * Until another relay takes over a lane that is not given back, in ms. Default 30 000; at least 5 000 above
   * `attemptTimeoutMs`.
   */
  leaseMs?: number
  /**
   * Without a heartbeat for so long a relay counts as dead: it stops sending, and the others take its lanes over. In
   * ms, default 5 000.
   */
  aliveMs?: number
  /**
   * How long what was read of a hook counts as fresh, in ms: a change of a hook holds for what happens after it, and
   * for what is sent so much later. Default 50.
   */
  freshMs?: number
  /** Delays before attempts 2, 3, …, in ms; after the last the delivery is dead. Default: nine, from 5 s to 24 h. */
  retrySchedule?: readonly number[]
  /**
   * Delays between POSTs to a hook whose circuit breaker is open, in ms; the last one again and again. Default: six,
   * from 30 s to 15 min.
   */
  probeSchedule?: readonly number[]
  /** POSTs a minute, over all relays, to a hook that was enabled again, until nothing is overdue. Default 3 000. */
  catchUpRate?: number
  /** How long after publishing an event counts as lost by the broker, in ms. Default 30 000. */
  reconcileAfterMs?: number
  /** How long events, deliveries and attempts are kept, in ms. Default 14 days. */
  keepMs?: number
  /** What sends messages to people besides connectors, and where connectors may lead. Default: nothing. */
  messages?: MessageConfig
  /** For a whole message, from connecting to the provider's answer, in ms. Default 20 000. */
  messageTimeoutMs?: number
  /**
   * How long a claimed message stays invisible to other relays, in ms. Must exceed `messageTimeoutMs`. Default 30 000.
   */
  messageLeaseMs?: number
  /** Delays before attempts 2, 3, … of a message, in ms; the last one again and again. Default: from 1 s to 10 min. */
  messageRetrySchedule?: readonly number[]
  /** For telling an application of a logout, in ms. Default 5 000. */
  logoutTimeoutMs?: number
  /**
   * How long a claimed logout stays invisible to other relays, in ms. Must exceed `logoutTimeoutMs`. Default 10 000.
   */
  logoutLeaseMs?: number
  /** Delays before attempts 2, 3, … of a logout, in ms; the last one again and again. Default: from 2 s to 2 min. */
  logoutRetrySchedule?: readonly number[]
}

/** Reads the environment. Throws `StartupError` naming every setting that is wrong. */
export const loadRelayConfig = (source: Record<string, string | undefined> = process.env): RelayConfig => {
  const read = loadConfig(relaySettings, source)
  return {
    allowedNetworks: read.WEBHOOK_ALLOWED_NETWORKS,
    allowHttp: read.WEBHOOK_ALLOW_HTTP,
    perHook: read.WEBHOOK_CONCURRENCY,
    messages: messageConfigOf(read),
  }
}
