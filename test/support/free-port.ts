import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the ports that systems give to whoever listens on 0 or connects somewhere (Linux from 32768, macOS from 49152):
 * nobody comes by one of these by chance, neither before it is taken nor while its program is down. None that webhooks
 * may not be sent to.
 */
const range = { from: 11_000, to: 27_000 }

const given = new Set<number>()

/** A port for programs that cannot choose one and tell, or that come back on the same one. Never the same twice. */
export const freePort = async (): Promise<number> => {
  for (;;) {
    const port = randomInt(range.from, range.to)
    if (given.has(port) || !(await isFree(port))) continue
    given.add(port)
    return port
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1' }, () => server.close(() => resolve(true)))
  })
