import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP connection to somewhere that a test can break, in place of the address itself. */
export interface BreakableLine {
  url: string
  /** Breaks every connection that there is; new ones are taken. */
  break(): void
  /** From now on nothing goes through, as when a host is gone: false lets everything through again. */
  cut(isCut: boolean): void
  /** Of connections, so far. */
  readonly count: number
  close(): Promise<void>
}

export const startBreakableLine = async (target: string): Promise<BreakableLine> => {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let isCut = false
  let count = 0
  const server = createServer((client) => {
    if (isCut) return void client.destroy()
    count++
    const other = connect(Number(port), hostname)
    for (const [from, to] of [
      [client, other],
      [other, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    break: breakAll,
    cut(value) {
      isCut = value
      if (value) breakAll()
    },
    get count() {
      return count
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        breakAll()
      }),
  }
}
