import { constants } from 'node:fs'
import { access, mkdtemp, realpath, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const memory = '/dev/shm'
/** What must be free there: containers often have 64 MB, and what lies there is the machine's memory. In bytes. */
const leastFree = 3 * 2 ** 30

/**
 * A new folder for the data of a PostgreSQL whose machine never crashes: in memory where there is enough, because a
 * database is a thousand files, which take ten times as long on a disk. Whoever asks removes it.
 */
export const createDataFolder = async (prefix: string): Promise<string> =>
  realpath(await mkdtemp(join((await hasRoom()) ? memory : tmpdir(), prefix)))

const hasRoom = async (): Promise<boolean> => {
  try {
    await access(memory, constants.W_OK)
    const { bavail, bsize } = await statfs(memory)
    return Math.min(bavail * bsize, process.availableMemory()) >= leastFree
  } catch {
    return false
  }
}
