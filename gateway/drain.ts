import { setTimeout as delay } from 'node:timers/promises'
import type { HotSwap } from './hot-swap.ts'
import type { Listener } from './listener.ts'

/**
 * Lets `drain.delay` pass, stops accepting, ends WebSockets with 1001, gives running requests `drain.timeout`, and then
 * releases everything.
 */
export const drain = async (parts: {
  listener: Listener
  gateways: HotSwap
  /** Nothing is built any more when this resolves. */
  reloadsEnded?: Promise<void> | undefined
}): Promise<void> => {
  const { listener, gateways, reloadsEnded } = parts
  listener.endKeepAlive()
  const { delay: pause, timeout } = gateways.config.drain
  if (pause > 0) await delay(pause)
  gateways.drain()
  await listener.close(timeout)
  await reloadsEnded
  await gateways.close()
}
