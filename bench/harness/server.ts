import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls, type Handlers, ownCpuMicros, ownMemory } from './calls.ts'

/** A server under test as a process of its own. */
export type Listening = {
  port: number
  stop: () => Promise<unknown>
  /** CPU microseconds so far, where another process than this one does the work. */
  cpu?: () => number
  /** Likewise: bytes. */
  memory?: () => { rss: number }
}

/** The body of such a process: `start(settings)` when the benchmark says so. It offers `handlers` as well. */
export const runServer = <Settings>(
  start: (settings: Settings) => Promise<Listening>,
  handlers: Handlers = {},
): void => {
  let listening: Listening | undefined
  answerCalls({
    ...handlers,
    start: async (settings: Settings) => {
      listening = await start(settings)
      return listening.port
    },
    cpu: () => listening?.cpu?.() ?? ownCpuMicros(),
    memory: () => listening?.memory?.() ?? ownMemory(),
    stop: () => listening?.stop(),
  })
}

/** Listens on a free loopback port. `release` is run after the server was closed. */
export const listen = (server: Server, release: () => Promise<unknown> = async () => {}): Promise<Listening> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve({ port: (server.address() as AddressInfo).port, stop }))
    const stop = () => {
      server.close()
      server.closeAllConnections()
      return release()
    }
  })
