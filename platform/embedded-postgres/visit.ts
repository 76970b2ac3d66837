import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import { prepareBinaries } from './binaries.ts'
import { prepareCluster } from './cluster.ts'
import { startEmbeddedPostgres } from './index.ts'
import { type ClusterConnection, connectionTo, connectWhenReady } from './lease.ts'
import { findPostmaster } from './postmaster.ts'
import { placeDataFolder, serverUser } from './server-user.ts'

/** The database of a data folder, for a short command. */
export interface Visit {
  connection: ClusterConnection
  /** Where the data really is (`EmbeddedPostgres`). */
  folder: string
  /** Leaves it as it was found: running, or stopped. */
  release(): Promise<void>
}

/**
 * Connects to the database in `dataDir` beside the process that runs it, or runs it for the length of the visit.
 * @throws StartupError when there is none yet, or with `exclusive` when another process runs it.
 */
export const visitEmbeddedPostgres = async (options: {
  dataDir: string
  logger: Logger
  exclusive?: boolean
}): Promise<Visit> => {
  const { dataDir, logger, exclusive = false } = options
  const user = serverUser()
  const folder = await placeDataFolder(dataDir, user)
  const isThere = await access(join(folder, 'cluster')).then(
    () => true,
    () => false,
  )
  if (!isThere)
    throw new StartupError(`There is no database in ${folder} yet.`, {
      hint: 'The first start makes it. To name another one, set SURROGATE_DATA_DIR, or DATABASE_URL for a server of your own.',
    })

  if (!exclusive) {
    const binaries = await prepareBinaries({ folder, user })
    const cluster = await prepareCluster({ folder, user, binaries, sync: true })
    const running = await findPostmaster(cluster, logger)
    const client = running && (await connectWhenReady(running, cluster))
    if (client) {
      await client.end()
      return { connection: connectionTo(running, cluster), folder, release: async () => undefined }
    }
  }
  const own = await startEmbeddedPostgres({ dataDir, logger })
  return { connection: own.connection, folder: own.folder, release: () => own.stop() }
}
