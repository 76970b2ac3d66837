import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, credsAuthenticator, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import type { NatsServers } from './nats-url.ts'

/** A connection to NATS that is made again for ever, whatever happened to it. */
export interface NatsLink {
  /** Undefined while there is none that works. */
  readonly connection: NatsConnection | undefined
  /** Why there is none; undefined while there is. */
  readonly trouble: string | undefined
  /** Runs at every new connection. Returns what ends that. */
  onConnect(listener: () => void): () => void
  /** Runs when the connection breaks. Returns what ends that. */
  onDisconnect(listener: () => void): () => void
  /** Sends what is still to be sent (2 s at most), then ends the connection. */
  close(): Promise<void>
}

export interface NatsOptions {
  servers: NatsServers
  /** A credentials file (JWT and seed); read at every connect, so it may be renewed meanwhile. */
  credsFile?: string | undefined
  /** How the connection is called in the server's lists. */
  name: string
  logger: Logger
  /** How long the first connection is waited for, in ms; then it goes on trying in the background. Default 3 000. */
  patienceMs?: number
}

/** Two missed answers end a connection, so a server that hangs is noticed after 15 s at most. */
const pingIntervalMs = 5_000
const retryMs = { from: 250, to: 2_000 }

/**
 * Connects; resolves also when no server answered in time, because the process can do without for now. Throws
 * `StartupError` when the credentials file cannot be read. A wrong password is tried again for ever: it may be put
 * right on the server.
 */
export const connectNats = async ({
  servers,
  credsFile,
  name,
  logger,
  patienceMs = 3_000,
}: NatsOptions): Promise<NatsLink> => {
  const listeners = { connect: new Set<() => void>(), disconnect: new Set<() => void>() }
  const stopping = new AbortController()
  let current: NatsConnection | undefined
  let usable = false
  let trouble: string | undefined = 'not connected yet'

  const up = (connection: NatsConnection) => {
    usable = true
    trouble = undefined
    logger.info({ server: connection.getServer(), version: connection.info?.version }, 'connected to NATS')
    for (const listener of listeners.connect) listener()
  }
  const down = (reason: string) => {
    const was = usable
    usable = false
    trouble = reason
    if (!was || stopping.signal.aborted) return
    logger.warn({ reason }, 'the connection to NATS is lost; events wait until it is back')
    for (const listener of listeners.disconnect) listener()
  }

  const follow = async (connection: NatsConnection) => {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') down('disconnected')
      else if (status.type === 'reconnect') up(connection)
      else if (status.type === 'error') logger.warn({ reason: status.error.message }, 'NATS reports an error')
    }
  }

  const options = connectionOptions({ servers, credsFile, name })
  const run = async () => {
    let wait = retryMs.from
    while (!stopping.signal.aborted) {
      try {
        const connection = await connect(options)
        if (stopping.signal.aborted) return await connection.close()
        current = connection
        wait = retryMs.from
        const following = follow(connection)
        up(connection)
        const error = await connection.closed()
        await following
        down(error ? error.message : 'closed')
      } catch (error) {
        const reason = (error as Error).message
        if (trouble !== reason) logger.warn({ reason }, 'NATS cannot be reached; trying on')
        trouble = reason
      }
      current = undefined
      await delay(wait, undefined, { signal: stopping.signal }).catch(() => {})
      wait = Math.min(wait * 2, retryMs.to)
    }
  }
  const ended = run()

  const link: NatsLink = {
    get connection() {
      return usable ? current : undefined
    },
    get trouble() {
      return trouble
    },
    onConnect: (listener) => subscribe(listeners.connect, listener),
    onDisconnect: (listener) => subscribe(listeners.disconnect, listener),
    async close() {
      stopping.abort()
      const connection = current
      if (connection && usable)
        await Promise.race([connection.drain().catch(() => {}), delay(2_000, undefined, { ref: false })])
      await connection?.close().catch(() => {})
      await ended
    },
  }
  await firstConnection(link, patienceMs)
  return link
}

const subscribe = (listeners: Set<() => void>, listener: () => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const firstConnection = (link: NatsLink, patienceMs: number) =>
  new Promise<void>((resolve) => {
    const finish = () => {
      clearTimeout(timer)
      stop()
      resolve()
    }
    const timer = setTimeout(finish, patienceMs)
    const stop = link.onConnect(finish)
    if (link.connection) finish()
  })

const connectionOptions = ({
  servers,
  credsFile,
  name,
}: Pick<NatsOptions, 'servers' | 'credsFile' | 'name'>): NodeConnectionOptions => {
  const { user, password, token } = servers.credentials
  return {
    servers: [...servers.addresses],
    name,
    timeout: 5_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: retryMs.from,
    // Many processes lose the same server at the same moment.
    reconnectJitter: retryMs.from,
    ignoreAuthErrorAbort: true,
    pingInterval: pingIntervalMs,
    maxPingOut: 2,
    // Requests are many, and their traces are of no use.
    noAsyncTraces: true,
    ...(servers.tls && { tls: {} }),
    ...(user !== undefined && { user, pass: password?.reveal() ?? '' }),
    ...(token !== undefined && { token: token.reveal() }),
    ...(credsFile !== undefined && { authenticator: credentialsOf(credsFile) }),
  }
}

const credentialsOf = (file: string) => {
  const read = () => readFileSync(file)
  try {
    credsAuthenticator(read)()
  } catch (cause) {
    throw new StartupError(`The NATS credentials ${file} cannot be used.`, {
      hint: 'NATS_CREDS_FILE names a file as nsc makes it, with a JWT and a seed, readable by this process.',
      cause,
    })
  }
  return credsAuthenticator(read)
}
