import { backOffMs } from '../../../platform/back-off.ts'
import { pause } from '../../../platform/wake-up.ts'
import type { GatewayClient } from './client.ts'
import { troubleOf } from './client.ts'
import { readEvents } from './events.ts'
import { type Gateway, type GatewayState, GatewayTrouble } from './gateways.ts'
import { createPosition } from './position.ts'

/** What is told of one gateway. Each is waited for: a slow reader slows the gateway's stream, and no memory fills. */
export interface Told {
  decision(record: Readonly<Record<string, unknown>>): Promise<void>
  lost(count: number): Promise<void>
  /** At the start, and when it changes. */
  state(state: GatewayState, because?: string): Promise<void>
}

const retry = { first: 200, longest: 5_000, jitter: 0.25 }

/** Follows the decisions of a gateway until `signal` aborts: over breaks, without a hole and without one told twice. */
export const followGateway = async (options: {
  gateway: Gateway
  client: GatewayClient
  filter: Readonly<Record<string, string | undefined>>
  /** RFC 3339 */
  since: string | undefined
  token(options: { isNew: boolean }): string
  told: Told
  now(): Date
  signal: AbortSignal
}): Promise<void> => {
  const { gateway, client, filter, token, told, now, signal } = options
  const position = createPosition(options.since)
  const startedAt = now()
  let shown: string | undefined
  /** The gateway took the last one no longer. */
  let needsToken = false

  const show = async (state: GatewayState, because?: string) => {
    if (`${state} ${because}` === shown) return
    shown = `${state} ${because}`
    await told.state(state, because)
  }

  /** Until its stream ends, and why it did. */
  const read = async () => {
    const query = { ...filter, since: position.since() }
    const path = ['decisions', 'stream']
    const bearer = token({ isNew: needsToken })
    needsToken = false
    const { body, openedAt } = await client.stream(gateway, { path, query, token: bearer, signal })
    position.begin(openedAt ?? now(), openedAt !== undefined)
    await show('answers')
    for await (const { name, data } of readEvents(body)) {
      if (name === 'decision' && position.take(data)) await told.decision(data)
      if (name === 'lost') await told.lost(data.lost)
      if (name === 'end') return data.because
    }
    throw new GatewayTrouble('away', 'The connection to it ended.')
  }

  for (let failures = 0; !signal.aborted; ) {
    const began = performance.now()
    try {
      const because = await read()
      needsToken = because !== 'closing'
      // A token that expires is no trouble: the next one goes on.
      if (because === 'closing') throw new GatewayTrouble('away', 'It is stopping.')
      if (because !== 'expired') throw new GatewayTrouble('refuses', 'It does not take the token any more.')
      failures = performance.now() - began < 1_000 ? failures + 1 : 0
    } catch (error) {
      if (signal.aborted) return
      failures = performance.now() - began > retry.longest ? 1 : failures + 1
      // From when on it was wanted: what it keeps since then is told when it is back.
      position.begin(startedAt, false)
      const { state, message } = troubleOf(error)
      await show(state, message)
    }
    await pause(backOffMs(failures, retry), signal)
  }
}
