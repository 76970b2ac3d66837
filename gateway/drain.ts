import { setTimeout as delay } from 'node:timers/promises'
import type { HotSwap } from './hot-swap.ts'
import type { Listener } from './listener.ts'

interface Parts {
  listeners: readonly Pick<Listener, 'endKeepAlive' | 'close'>[]
  gateways: HotSwap
  /** Nothing is built any more when this resolves. */
  reloadsEnded?: Promise<void> | undefined
}

/** Lets `drain.delay` pass, and then ends. */
export const drain = async (parts: Parts): Promise<void> => {
  const { listeners, gateways } = parts
  for (const listener of listeners) listener.endKeepAlive()
  const { delay: pause } = gateways.config.drain
  if (pause > 0) await delay(pause)
  await end(parts)
}

/** Stops accepting, ends WebSockets with 1001, gives running requests `drain.timeout`, and then releases everything. */
export const end = async ({ listeners, gateways, reloadsEnded }: Parts): Promise<void> => {
  const { timeout } = gateways.config.drain
  gateways.drain()
  await Promise.all(listeners.map((listener) => listener.close(timeout)))
  await reloadsEnded
  await gateways.close()
}
