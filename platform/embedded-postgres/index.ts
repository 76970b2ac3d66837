import type pg from 'pg'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import { prepareBinaries } from './binaries.ts'
import { type Cluster, prepareCluster } from './cluster.ts'
import { type ClusterConnection, connectWhenReady, holdLease } from './lease.ts'
import { findPostmaster, launchPostmaster, type Postmaster, removeSocketFolder, stopPostmaster } from './postmaster.ts'
import { placeDataFolder, serverUser } from './server-user.ts'

export interface EmbeddedPostgres {
  /** `host` is the folder of the Unix socket; nothing listens on TCP. */
  connection: ClusterConnection
  /** It was found running after a crash of ours, and taken over. */
  adopted: boolean
  /** Process id of the postmaster. */
  pid: number
  /** Where the data really is: `dataDir`, or for root a folder under `/var/lib/surrogate`. */
  folder: string
  /**
   * Fast shutdown: ends sessions, writes a checkpoint, waits for the process. Immediate after 30 s; a minute at most.
   * Idempotent.
   */
  stop(): Promise<void>
}

export interface EmbeddedPostgresOptions {
  /** A folder of ours, created if missing. Two of our processes never share one: the second is refused. */
  dataDir: string
  logger: Logger
  /** Called when the server has ended although nobody asked for it; a crash that it survives is not that. */
  onLost?: (error: StartupError) => void
  /** Server settings on top of ours, for example `{ fsync: 'off' }` in tests. Default none: commits are durable. */
  settings?: Record<string, string>
}

/**
 * Runs a real PostgreSQL from the binaries that npm brought, on a Unix socket only we can open. It is a process of its
 * own and outlives a `kill -9` of ours, to be adopted by the next start. It does not share our terminal's Ctrl-C: we
 * drain first.
 * @throws StartupError when the operator must act: binaries missing, folder not ours, in use, other major version,
 * wrong password.
 */
export const startEmbeddedPostgres = async ({
  dataDir,
  logger,
  onLost,
  settings = {},
}: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => {
  const user = serverUser()
  const folder = await placeDataFolder(dataDir, user)
  const binaries = await prepareBinaries({ folder, user })
  const cluster = await prepareCluster({ folder, user, binaries, sync: settings['fsync'] !== 'off' })

  // Twice, because a postmaster that is found may be ending, and another process of ours may launch one at the same
  // moment.
  let lastWords = ''
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const found = await findPostmaster(cluster, logger)
    const adopted = found && (await connectWhenReady(found, cluster))
    if (adopted) return supervise(found, { client: adopted, cluster, folder, adopted: true, logger, onLost })

    const launched = await launchPostmaster({ cluster, user, binaries, settings })
    const client = await connectWhenReady(launched, cluster).catch(async (error: unknown) => {
      await stopPostmaster(launched, { logger })
      await removeSocketFolder(launched.socketFolder)
      throw error
    })
    if (client) return supervise(launched, { client, cluster, folder, adopted: false, logger, onLost })
    lastWords = await launched.lastWords()
    await removeSocketFolder(launched.socketFolder)
  }
  throw new StartupError(`The embedded PostgreSQL did not start. ${lastWords}`, {
    hint: `Its log is ${cluster.logFile}. To use a PostgreSQL server of your own, set DATABASE_URL.`,
    exitCode: 3,
  })
}

interface Supervision {
  client: pg.Client
  cluster: Cluster
  folder: string
  adopted: boolean
  logger: Logger
  onLost: EmbeddedPostgresOptions['onLost']
}

const supervise = async (
  postmaster: Postmaster,
  { adopted, client, cluster, folder, logger, onLost }: Supervision,
): Promise<EmbeddedPostgres> => {
  // Refused, we leave even a postmaster we launched: the process that holds the lease has adopted it.
  const lease = await holdLease({ client, postmaster, cluster, logger, onLost })
  // The net under a process that ends without stop(): an exit handler cannot wait, but a signal is enough.
  const interrupt = () => postmaster.signal('SIGINT')
  process.once('exit', interrupt)
  logger.info({ folder, postmaster: postmaster.pid, adopted }, 'embedded PostgreSQL is ready')

  let stopped: Promise<void> | undefined
  const stop = async () => {
    process.off('exit', interrupt)
    await lease.release()
    await stopPostmaster(postmaster, { logger })
    await removeSocketFolder(postmaster.socketFolder)
  }
  return {
    connection: lease.connection,
    adopted,
    pid: postmaster.pid,
    folder,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
