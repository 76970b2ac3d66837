import { type Channel, channels } from '../../deliveries/messages/message.ts'
import type { Metrics } from '../../platform/metrics.ts'

export type Outcome = 'sent' | 'retried' | 'failed' | 'expired'

/** What operators see of messages; `readWaiting` is called at a scrape. */
export const createMessageMetrics = (
  metrics: Metrics,
  readWaiting: () => Promise<readonly { channel: Channel; total: number }[]>,
) => {
  const outcomes = metrics.counter(
    'surrogate_messages_total',
    'Attempts to send a message to a person, by what came of them; expired: it was not sent in time.',
    ['channel', 'outcome'],
  )
  const waiting = metrics.gauge('surrogate_messages_waiting', 'Messages to people that are still to be sent.', [
    'channel',
  ])
  const remove = metrics.onCollect(async () => {
    const totals = new Map((await readWaiting()).map(({ channel, total }) => [channel, total]))
    for (const channel of channels) waiting.set({ channel }, totals.get(channel) ?? 0)
  })
  return {
    count: (channel: Channel, outcome: Outcome) => outcomes.inc({ channel, outcome }),
    close: remove,
  }
}
