import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls } from './calls.ts'

/** A server as a process of its own: `start(settings)` answers with the port it listens on. */
export type Started = { server: Server; stop?: () => Promise<unknown> }

export const runServer = <Settings>(start: (settings: Settings) => Promise<Started> | Started): void => {
  let started: Started | undefined
  answerCalls({
    start: async (settings: Settings) => {
      started = await start(settings)
      return listen(started.server)
    },
    stop: async () => {
      started?.server.closeAllConnections()
      started?.server.close()
      await started?.stop?.()
    },
  })
}

/** Listens on a free loopback port. No socket of the generator may be closed between two rounds of requests. */
const listen = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.keepAliveTimeout = 60_000
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
