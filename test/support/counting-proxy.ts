import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { PostgresConnection } from './database.ts'

/** What one round trip asked for: the name of the prepared statement, or the text of a simple query such as `BEGIN`. */
export type RoundTrip = string

export interface CountingProxy {
  /** The same database, through here. */
  connection: PostgresConnection
  /** In the order they were sent, over all connections. */
  roundTrips: readonly RoundTrip[]
  close(): Promise<void>
}

/**
 * Stands between a client and PostgreSQL and notes each round trip as it goes over the wire: every message that the server answers with
 * ReadyForQuery, which are Sync and Query.
 */
export const startCountingProxy = async (
  target: PostgresConnection,
  { port = 0 }: { port?: number } = {},
): Promise<CountingProxy> => {
  const roundTrips: RoundTrip[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const database = createConnection(join(target.host, `.s.PGSQL.${target.port}`))
    const read = readMessages(roundTrips)
    client.on('data', read)
    client.pipe(database).pipe(client)
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        database.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    connection: { ...target, host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    roundTrips,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** One connection, client to server. Its first message has no type; each other is a type, a length that counts itself, and a body. */
const readMessages = (roundTrips: RoundTrip[]) => {
  let rest = Buffer.alloc(0)
  let started = false
  let bound = ''
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = started ? 5 : 4
      if (rest.length < head) return
      const end = rest.readInt32BE(head - 4) + head - 4
      if (rest.length < end) return
      const [type, body] = [started ? rest.toString('latin1', 0, 1) : '', rest.subarray(head, end)]
      // Bind: the portal, then the statement, each ending with a zero byte.
      if (type === 'B') bound = body.toString().split('\0')[1] ?? ''
      if (type === 'S') roundTrips.push(bound)
      if (type === 'Q') roundTrips.push(body.toString('utf8', 0, body.length - 1))
      rest = rest.subarray(end)
      started = true
    }
  }
}
