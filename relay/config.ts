import { z } from 'zod'
import { loadConfig } from '../platform/config.ts'
import { webhookTargetSettings } from '../platform/outbound.ts'

/** The relay's own settings; database, keys and logging are those of every process. */
export const relaySettings = z.object(webhookTargetSettings)

export interface RelayConfig {
  /** CIDRs that webhooks may reach although they are not public. */
  allowedNetworks: readonly string[]
  /** Webhooks may go over plain http. */
  allowHttp: boolean
  /** POSTs to one hook at a time. Default 4: a receiver that takes 200 ms gets 20 deliveries a second from each relay. */
  perHook?: number
  /** Lanes under way at a time, over all hooks. Default 1 024. */
  maxLanes?: number
  /** For a whole exchange with a receiver, in ms. Default 15 000. */
  attemptTimeoutMs?: number
  /** Until another relay takes over what this one holds, in ms. Default 30 000; at least 5 000 above `attemptTimeoutMs`. */
  leaseMs?: number
  /** Delays before attempts 2, 3, …, in ms; after the last the delivery is dead. Default: nine, from 5 s to 24 h. */
  retrySchedule?: readonly number[]
  /** How long after publishing an event counts as lost by the broker, in ms. Default 30 000. */
  reconcileAfterMs?: number
  /** How long events, deliveries and attempts are kept, in ms. Default 14 days. */
  keepMs?: number
}

/** Reads the environment. Throws `StartupError` naming every setting that is wrong. */
export const loadRelayConfig = (source: Record<string, string | undefined> = process.env): RelayConfig => {
  const { WEBHOOK_ALLOWED_NETWORKS, WEBHOOK_ALLOW_HTTP } = loadConfig(relaySettings, source)
  return { allowedNetworks: WEBHOOK_ALLOWED_NETWORKS, allowHttp: WEBHOOK_ALLOW_HTTP }
}
