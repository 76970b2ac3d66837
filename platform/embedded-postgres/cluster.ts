import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartupError } from '../startup-error.ts'
import type { Binaries } from './binaries.ts'
import { runAs, type ServerUser } from './server-user.ts'

/** A database cluster on disk, and the password of its only role. */
export interface Cluster {
  /** PostgreSQL's data folder. Real path, as it stands in `postmaster.pid`. */
  path: string
  logFile: string
  user: string
  password: string
}

const roleName = 'surrogate'
/**
 * Lies inside the data folder, so that cluster and password come and go together. PostgreSQL ignores names it does not
 * know.
 */
const passwordFile = 'surrogate-password'

/** The cluster of this folder: checked if there is one, created if not. */
export const prepareCluster = async (options: {
  folder: string
  user: ServerUser
  binaries: Binaries
  /** Whether a new cluster is flushed to disk. */
  sync: boolean
}): Promise<Cluster> => {
  const path = join(options.folder, 'cluster')
  const existing = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw unusable(path, `it cannot be read (${error.code})`, error)
  })
  if (!existing) await createCluster(path, options)
  const password = await checkCluster(path, options)
  return { path, logFile: join(options.folder, 'postgres.log'), user: roleName, password }
}

const unusable = (path: string, reason: string, cause?: unknown, hint?: string) =>
  new StartupError(`The database folder ${path} cannot be used: ${reason}.`, {
    hint:
      hint ??
      'Start as the user who created it, or choose another folder with SURROGATE_DATA_DIR, or set DATABASE_URL to a PostgreSQL server.',
    cause,
  })

const checkCluster = async (path: string, { user, binaries }: { user: ServerUser; binaries: Binaries }) => {
  const { uid } = await stat(path)
  if (uid !== user.uid) throw unusable(path, `it belongs to user ${uid}, and PostgreSQL would run as user ${user.uid}`)
  const read = (name: string) =>
    readFile(join(path, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw unusable(path, `its file ${name} cannot be read (${error.code})`, error)
    })
  const version = (await read('PG_VERSION')).trim()
  if (version !== binaries.major)
    throw unusable(
      path,
      `it was written by PostgreSQL ${version}, and the installed binaries are version ${binaries.major}`,
      undefined,
      `Dump it with PostgreSQL ${version} and load the dump into a new folder (SURROGATE_DATA_DIR), or install the binaries of version ${version} again.`,
    )
  return (await read(passwordFile)).trim()
}

/** Made aside and renamed when complete: an interrupted first start leaves nothing that looks like a cluster. */
const createCluster = async (
  path: string,
  { folder, user, binaries, sync }: { folder: string; user: ServerUser; binaries: Binaries; sync: boolean },
) => {
  const aside = await mkdtemp(join(folder, 'new-')).catch((error: NodeJS.ErrnoException) => {
    throw unusable(folder, `it cannot be written (${error.code})`, error)
  })
  try {
    const password = randomBytes(32).toString('base64url')
    const data = join(aside, 'cluster')
    const secret = join(aside, passwordFile)
    await writeFile(secret, password, { mode: 0o600 })
    if (user.identity.uid !== undefined) {
      await chown(secret, user.uid, user.uid)
      await chown(aside, user.uid, user.uid)
    }
    await chmod(aside, 0o700)
    const { code, output } = await runAs(
      user,
      binaries.initdb,
      [
        ...['-D', data, '--username', roleName, '--pwfile', secret, '--auth', 'scram-sha-256'],
        // The builtin provider sorts and folds case the same on every machine, whatever locales it has.
        ...['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'],
        ...['--no-instructions', ...(sync ? [] : ['--no-sync'])],
      ],
      binaries.environment,
    )
    if (output.includes('could not look up effective user ID'))
      throw unusable(
        folder,
        `user ${user.uid} has no account on this machine, and PostgreSQL needs one`,
        undefined,
        'Add the user to /etc/passwd, start as another user, or set DATABASE_URL to a PostgreSQL server.',
      )
    if (code !== 0)
      throw unusable(folder, `initdb failed (${code}): ${output.split('\n').findLast((line) => line !== '')}`)
    await rename(secret, join(data, passwordFile))
    await rename(data, path).catch((error: NodeJS.ErrnoException) => {
      // Another first start was faster; its cluster is as good as ours.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}
