import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { PostgresConnection } from './database.ts'
import { freePort } from './free-port.ts'

/**
 * What one round trip asked for: the name of the prepared statement, or the text of a simple query such as `COMMIT`. A
 * `BEGIN` that goes along with the first statement of its transaction is noted before it, as if it were one more.
 */
export type RoundTrip = string

export interface RoundTripOn {
  /** A number of its own. */
  connection: number
  /** It was sent before the one in front of it on the connection was answered: nobody waited in between. */
  isBehind: boolean
}

export interface CountingProxy {
  /** The same database, through here. */
  connection: PostgresConnection
  /** In the order they were sent, over all connections. */
  roundTrips: readonly RoundTrip[]
  /**
   * The next time that it is asked, PostgreSQL does it and answers, and the connection breaks before the answer is
   * here. Resolves then. With `after`, the next time on a connection that asked for that since: other transactions end
   * meanwhile.
   */
  loseAnswer(roundTrip: RoundTrip, options?: { after?: RoundTrip }): Promise<void>
  close(): Promise<void>
}

/**
 * Stands between a client and PostgreSQL and notes each round trip as it goes over the wire: every message that the
 * server answers with ReadyForQuery, which are Sync and Query.
 */
export const startCountingProxy = async (
  target: PostgresConnection,
  // One that is still free when it comes back there: what connects in vain meanwhile must not come by it.
  { port, onRoundTrip }: { port?: number; onRoundTrip?: (roundTrip: RoundTrip, on: RoundTripOn) => void } = {},
): Promise<CountingProxy> => {
  const roundTrips: RoundTrip[] = []
  const sockets = new Set<Socket>()
  let losing:
    | { roundTrip: RoundTrip; after: { roundTrip: RoundTrip; on?: number } | undefined; lost: () => void }
    | undefined
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    const connection = connections
    const database = createConnection(join(target.host, `.s.PGSQL.${target.port}`))
    /**
     * Answers to come, the one to the start-up included, and what to do when the last of them is to be lost and has
     * come.
     */
    let unanswered = 1
    let breakOff: { after: number; lost: () => void } | undefined
    const readRequests = readMessages({ isClient: true })
    const readAnswers = readMessages({ isClient: false })
    let bound: string[] = []
    const note = (roundTrip: RoundTrip, isBehind: boolean) => {
      roundTrips.push(roundTrip)
      onRoundTrip?.(roundTrip, { connection, isBehind })
      if (losing?.after?.roundTrip === roundTrip) losing.after.on = connection
      if (losing?.roundTrip !== roundTrip || (losing.after && losing.after.on !== connection)) return
      breakOff = { after: unanswered, lost: losing.lost }
      losing = undefined
    }
    client.on('data', (chunk) => {
      for (const { type, body } of readRequests(chunk)) {
        // Bind: the portal, then the statement, each ending with a zero byte.
        if (type === 'B') bound.push(body.toString().split('\0')[1] ?? '')
        if (type !== 'S' && type !== 'Q') continue
        const asked = type === 'S' ? bound : [body.toString('utf8', 0, body.length - 1)]
        bound = []
        const isBehind = unanswered > 0
        unanswered += 1
        for (const [place, name] of asked.entries()) note(name === 'begin' ? 'BEGIN' : name, isBehind || place > 0)
      }
    })
    client.pipe(database)
    database.on('data', (chunk) => {
      if (breakOff === undefined) client.write(chunk)
      for (const { type } of readAnswers(chunk)) {
        if (type !== 'Z') continue
        unanswered -= 1
        if (breakOff === undefined) continue
        breakOff.after -= 1
        if (breakOff.after > 0) continue
        client.destroy()
        breakOff.lost()
      }
    })
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
  const chosen = port ?? (await freePort())
  await new Promise<void>((resolve) => server.listen(chosen, '127.0.0.1', resolve))
  return {
    connection: { ...target, host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    roundTrips,
    loseAnswer: (roundTrip, { after } = {}) =>
      new Promise((lost) => {
        losing = { roundTrip, after: after === undefined ? undefined : { roundTrip: after }, lost }
      }),
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/**
 * One direction of one connection. A client's first message has no type; each other is a type, a length that counts
 * itself, and a body.
 */
const readMessages = ({ isClient }: { isClient: boolean }) => {
  let rest = Buffer.alloc(0)
  let typed = !isClient
  return (chunk: Buffer) => {
    const messages: { type: string; body: Buffer }[] = []
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = typed ? 5 : 4
      if (rest.length < head) return messages
      const end = rest.readInt32BE(head - 4) + head - 4
      if (rest.length < end) return messages
      messages.push({ type: typed ? rest.toString('latin1', 0, 1) : '', body: rest.subarray(head, end) })
      rest = rest.subarray(end)
      typed = true
    }
  }
}
