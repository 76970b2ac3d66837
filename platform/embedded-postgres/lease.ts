import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import type { Cluster } from './cluster.ts'
import type { Postmaster } from './postmaster.ts'

export interface ClusterConnection {
  host: string
  port: number
  user: string
  password: string
  database: string
}

export const connectionTo = (postmaster: Postmaster, cluster: Cluster): ClusterConnection => ({
  host: postmaster.socketFolder,
  port: postmaster.port,
  user: cluster.user,
  password: cluster.password,
  database: 'postgres',
})

const wrongPassword = new Set(['28P01', '28000'])
/**
 * How long a living postmaster may take, in ms: to say anything, and to recover from a crash (some GB of log at most).
 */
const patience = { silent: 20_000, recovering: 300_000 }
const startingOrEnding = '57P03'
/** No socket yet, nobody listening yet, starting, recovering or ending, ended while we connected. */
const notYet = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', startingOrEnding, '57P01', '53300'])

/** How long a release may wait for a server that is not well, in ms. Then it is stopped all the same. */
const releaseMs = 15_000

/** Connects as soon as the server answers. Undefined when the postmaster ended first. */
export const connectWhenReady = async (postmaster: Postmaster, cluster: Cluster): Promise<pg.Client | undefined> => {
  const since = Date.now()
  let pause = 5
  while (await postmaster.running()) {
    const client = new pg.Client({
      ...connectionTo(postmaster, cluster),
      application_name: 'surrogate-lease',
      connectionTimeoutMillis: 10_000,
      ssl: false,
    })
    // Broken connections are seen by their `end`; without a listener they would end the process.
    client.on('error', () => undefined)
    try {
      await client.connect()
      return client
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== undefined && wrongPassword.has(code))
        throw new StartupError(`The password kept in ${cluster.path} does not open the database there.`, {
          hint: 'Put the original file surrogate-password back, or move the folder away to begin with an empty database.',
          cause: error,
        })
      const waiting = code === undefined ? /terminated|timeout/.test(message) : notYet.has(code)
      const limit = code === startingOrEnding ? patience.recovering : patience.silent
      if (!waiting || Date.now() - since > limit)
        throw new StartupError(`The PostgreSQL in ${cluster.path} does not answer: ${code ?? message}.`, {
          hint: `Stop it (kill -INT ${postmaster.pid}) and start again; its log is ${cluster.logFile}.`,
          exitCode: 3,
          cause: error,
        })
    }
    await delay(pause)
    pause = Math.min(pause * 1.5, 250)
  }
  return undefined
}

/**
 * A session that holds a lock as long as this process lives: PostgreSQL itself says whether a found server is an orphan
 * or in use.
 */
export interface Lease {
  connection: ClusterConnection
  release(): Promise<void>
}

/** The published types of `pg` leave these two out. */
const socketOf = (client: pg.Client) => client as pg.Client & { ref(): void; unref(): void }

const tryLock = 'SELECT pg_try_advisory_lock(1400141423, 1) AS held'

export const holdLease = async (options: {
  client: pg.Client
  postmaster: Postmaster
  cluster: Cluster
  logger: Logger
  /** Called at most once, when the server is gone for good. */
  onLost?: ((error: StartupError) => void) | undefined
}): Promise<Lease> => {
  const { postmaster, cluster, logger, onLost } = options
  let client = options.client
  let released = false

  const take = async () => {
    // A process killed a moment ago may still hold it: its session ends when the server reads the closed socket.
    for (let attempt = 0; attempt < 50; attempt += 1) {
      const { rows } = await client.query<{ held: boolean }>(tryLock)
      if (rows[0]?.held) {
        client.once('end', () => void renew())
        // The lease alone does not keep our process from ending.
        socketOf(client).unref()
        return
      }
      await delay(20)
    }
    await client.end()
    throw new StartupError(`The database folder ${cluster.path} is in use by another Surrogate process.`, {
      hint: 'Stop that process, or give this one a folder of its own with SURROGATE_DATA_DIR.',
      exitCode: 3,
    })
  }

  // PostgreSQL ends all sessions when one of its processes crashes, and goes on; or it is gone for good.
  const renew = async () => {
    if (released) return
    logger.warn({ postmaster: postmaster.pid }, 'the embedded PostgreSQL ended our session')
    try {
      const next = await connectWhenReady(postmaster, cluster)
      if (released) return void (await next?.end())
      if (next) {
        client = next
        return await take()
      }
      lost('The embedded PostgreSQL has ended.')
    } catch (error) {
      lost('The embedded PostgreSQL is lost.', error)
    }
  }
  const lost = (message: string, cause?: unknown) => {
    logger.fatal({ err: cause, log: cluster.logFile }, message)
    onLost?.(
      new StartupError(message, {
        hint: `Start again: what was committed is kept. Its log, ${cluster.logFile}, says why it ended.`,
        exitCode: 3,
        cause,
      }),
    )
  }

  await take()
  return {
    connection: connectionTo(postmaster, cluster),
    async release() {
      released = true
      socketOf(client).ref()
      const settled = client.query('SELECT 1').then(
        () => client.end(),
        // PostgreSQL 18.4 never ends when a fast shutdown meets its recovery from a crash: let it recover first.
        async () => (await connectWhenReady(postmaster, cluster))?.end(),
      )
      const bound = new AbortController()
      await Promise.race([settled.catch(() => undefined), delay(releaseMs, undefined, { signal: bound.signal })])
      bound.abort()
    },
  }
}
