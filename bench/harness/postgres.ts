import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { silentLogger } from '../../platform/logger.ts'
import { answerCalls } from './calls.ts'

/**
 * A PostgreSQL of its own for one comparison, as a process on the supporting CPU: its backends inherit the pinning.
 * Settings as shipped, `fsync` on; the data folder is new and removed afterwards.
 */
let release = async (): Promise<void> => {}

answerCalls({
  start: async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
    release = () => rm(dataDir, { recursive: true, force: true })
    const postgres = await startEmbeddedPostgres({ dataDir, logger: silentLogger })
    release = async () => {
      await postgres.stop()
      // Another folder than `dataDir` when PostgreSQL's user could not reach that one.
      for (const folder of [postgres.folder, dataDir]) await rm(folder, { recursive: true, force: true })
    }
    return postgres.connection
  },
  stop: () => release(),
})
