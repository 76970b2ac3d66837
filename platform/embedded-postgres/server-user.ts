import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartupError } from '../startup-error.ts'

/**
 * Who PostgreSQL runs as, and where that user can reach things. PostgreSQL refuses root, so root starts it as
 * `nobody`'s number, which needs no account; anybody else runs it as themselves. A checkout under root's own 0700 home
 * is out of that user's reach, so binaries and data then live under `/var/lib/surrogate`.
 */
export interface ServerUser {
  uid: number
  /** Spawn options: empty unless we are root. */
  identity: { uid?: number; gid?: number }
}

const nobody = 65_534

export const serverUser = (): ServerUser => {
  const uid = process.getuid?.()
  if (uid === undefined)
    throw new StartupError(`There is no embedded PostgreSQL on ${process.platform}.`, {
      hint: 'Set DATABASE_URL to a PostgreSQL server.',
    })
  return uid === 0 ? { uid: nobody, identity: { uid: nobody, gid: nobody } } : { uid, identity: {} }
}

/**
 * What a program run as the server's user gave. `code` is its exit status, or the errno name when it could not be run
 * at all.
 */
export interface Outcome {
  code: number | string
  output: string
}

/**
 * Runs a program to its end as the server's user. It gets none of our environment: that holds our secrets and `PG*`
 * settings.
 */
export const runAs = (
  user: ServerUser,
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<Outcome> =>
  new Promise((settle) => {
    execFile(
      program,
      args,
      { ...user.identity, env: { ...plainEnvironment, ...environment }, cwd: '/', timeout: 120_000 },
      (error, stdout, stderr) =>
        settle({ code: error ? (error.code ?? error.signal ?? 1) : 0, output: `${stdout}${stderr}`.trim() }),
    )
  })

export const plainEnvironment = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }

/** Asks the kernel instead of reading mode bits: access lists, read-only mounts and network file systems answer too. */
const canEnter = async (user: ServerUser, folder: string) =>
  (await runAs(user, '/bin/sh', ['-c', 'cd "$0"', folder])).code === 0

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)

const checkout = fileURLToPath(new URL('../..', import.meta.url))

/** This checkout's folder for what the server's user cannot reach where it is. Only root needs it. */
export const publicFolder = async (): Promise<string> => {
  const folder = join('/var/lib/surrogate', hash(await realpath(checkout)))
  await makeFolder('/var/lib/surrogate')
  await makeFolder(folder)
  return folder
}

/** Creates the folder that holds the data, `dataDir` or its substitute, and returns its real path. */
export const placeDataFolder = async (dataDir: string, user: ServerUser): Promise<string> => {
  const wanted = await makeFolder(resolve(dataDir))
  if (await canEnter(user, wanted)) return wanted
  if (user.identity.uid !== undefined) {
    const substitute = await makeFolder(join(await publicFolder(), `data-${hash(wanted)}`))
    if (await canEnter(user, substitute)) return substitute
  }
  throw new StartupError(`The data folder ${wanted} cannot be entered by user ${user.uid}, who runs PostgreSQL.`, {
    hint: 'Choose another folder with SURROGATE_DATA_DIR, or set DATABASE_URL to a PostgreSQL server.',
  })
}

/**
 * A folder others may pass through but not list: the server's user may be another than ours. What is secret inside is
 * 0700 or 0600.
 */
const makeFolder = async (folder: string): Promise<string> => {
  try {
    await makeWithParents(folder)
    const found = await stat(folder)
    if (!found.isDirectory()) throw Object.assign(new Error('a file is in the way'), { code: 'ENOTDIR' })
    if (found.uid === process.getuid?.()) await chmod(folder, 0o711)
    return await realpath(folder)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new StartupError(`The folder ${folder} cannot be created: ${code}.`, {
      hint:
        code === 'ENOTDIR'
          ? 'A file is in its way. Choose another folder with SURROGATE_DATA_DIR.'
          : 'Make its parent writable for this user, or choose another folder with SURROGATE_DATA_DIR.',
      cause,
    })
  }
}

/**
 * Node's own `recursive` never returns where a file system answers ENOENT below a folder that is there, as `/proc`
 * does.
 */
const makeWithParents = async (folder: string): Promise<void> => {
  const attempt = () =>
    mkdir(folder).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    )
  const first = await attempt()
  if (first?.code !== 'ENOENT') return settle(first)
  await makeWithParents(dirname(folder))
  settle(await attempt())
}

const settle = (error: NodeJS.ErrnoException | undefined) => {
  if (error !== undefined && error.code !== 'EEXIST') throw error
}
