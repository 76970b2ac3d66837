import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Health } from '../platform/health.ts'
import type { GatewayConfig } from './config/load.ts'
import type { Gateway } from './gateway.ts'

/**
 * One gateway for each configuration: the current one, and earlier ones until their last request and WebSocket has
 * ended. A request ends under the configuration it began with.
 */
export interface HotSwap {
  readonly current: Gateway
  /** Of `current`. */
  readonly config: GatewayConfig
  /**
   * Builds a gateway for `config`, which takes over once it is ready: when it has the keys and revocations of its
   * issuers. Resolves to whether it took over: not when `signal` came first. Rejects, and changes nothing, when it
   * cannot be built.
   */
  replace(config: GatewayConfig, signal: AbortSignal): Promise<boolean>
  /**
   * The first half of `replace`: everything but taking over. Undefined when `signal` came first. `settleMs`: how long
   * to wait for keys and revocations; default: until they are there.
   */
  prepare(config: GatewayConfig, signal: AbortSignal, settleMs?: number): Promise<Successor | undefined>
  /** New requests wait from now on, until `release`; they begin with whoever is the current one then. */
  hold(): void
  release(): void
  /** Of all of them. */
  reopenLogs(): void
  drain(): void
  close(): Promise<void>
}

/** A gateway that is ready to take over. One of both is called. */
export interface Successor {
  takeOver(): void
  discard(): Promise<void>
}

/** Rejects when the first one cannot be built. */
export const createHotSwap = async (options: {
  config: GatewayConfig
  build: (config: GatewayConfig) => Promise<Gateway>
  /** Shows the checks of the current one. */
  health: Health
}): Promise<HotSwap> => {
  const { build, health } = options
  let { config } = options
  let current = await build(config)
  const retired = new Set<Gateway>()
  const all = () => [current, ...retired]
  let waiting: (() => void)[] | undefined

  const showChecks = ({ checks }: Gateway) => {
    for (const [name, check] of Object.entries(checks)) health.addCheck(`gateway ${name}`, check)
  }
  showChecks(current)

  const retire = (gateway: Gateway) => {
    for (const name of Object.keys(gateway.checks)) health.removeCheck(`gateway ${name}`)
    retired.add(gateway)
    void gateway
      .idle()
      .then(() => gateway.close())
      .finally(() => retired.delete(gateway))
  }

  const prepare: HotSwap['prepare'] = async (nextConfig, signal, settleMs) => {
    const next = await build(nextConfig)
    const superseded = once(signal, 'abort')
    const settled = settleMs === undefined ? [] : [delay(settleMs, undefined, { ref: false })]
    if (!signal.aborted) await Promise.race([next.ready, superseded, ...settled])
    if (signal.aborted) {
      await next.close()
      return undefined
    }
    return {
      takeOver() {
        retire(current)
        current = next
        config = nextConfig
        showChecks(next)
      },
      discard: () => next.close(),
    }
  }

  /** Stands before the current gateway while requests wait. */
  const waitingRoom = (queue: (() => void)[]): Gateway => ({
    ...current,
    handler: (incoming, response) => void queue.push(() => current.handler(incoming, response)),
    upgrade: (incoming, socket, head) => void queue.push(() => current.upgrade(incoming, socket, head)),
    check: (request, answer) => void queue.push(() => current.check(request, answer)),
  })

  return {
    get current() {
      return waiting ? waitingRoom(waiting) : current
    },
    get config() {
      return config
    },
    prepare,
    async replace(nextConfig, signal) {
      const successor = await prepare(nextConfig, signal)
      successor?.takeOver()
      return successor !== undefined
    },
    hold() {
      waiting ??= []
    },
    release() {
      const begun = waiting ?? []
      waiting = undefined
      for (const begin of begun) begin()
    },
    reopenLogs() {
      for (const gateway of all()) gateway.reopenLogs()
    },
    drain() {
      for (const gateway of all()) gateway.drain()
    },
    async close() {
      await Promise.all(all().map((gateway) => gateway.close()))
    },
  }
}
