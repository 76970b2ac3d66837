import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, open, readdir, readFile, readlink, rename, rm, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import type { Binaries } from './binaries.ts'
import type { Cluster } from './cluster.ts'
import { plainEnvironment, type ServerUser } from './server-user.ts'

/** A running postmaster, a child of ours or one left by a process of ours that was killed. */
export interface Postmaster {
  pid: number
  socketFolder: string
  port: number
  running(): Promise<boolean>
  signal(name: 'SIGINT' | 'SIGQUIT'): void
  /** The end of what it logged since this start, on one line. */
  lastWords(): Promise<string>
}

/** Part of the socket's file name, not a TCP port: nothing listens there. */
const port = 5432
const socketPrefix = 'surrogate-pg-'

const fixedSettings = (socketFolder: string) => ({
  listen_addresses: '',
  port: String(port),
  // Quoted, because the setting is a list and the path may hold spaces.
  unix_socket_directories: `"${socketFolder}"`,
  unix_socket_permissions: '0700',
})

const defaultSettings = {
  cluster_name: 'surrogate',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Only the server's own life is logged: failed statements reach us as errors, and their texts may hold personal data.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
}

/**
 * Who runs in the cluster, by its `postmaster.pid`. Undefined when nobody does; a file left by a crash is then no
 * obstacle, not even when its process id has been given to another process since.
 */
export const findPostmaster = async (cluster: Cluster, logger: Logger): Promise<Postmaster | undefined> => {
  const file = join(cluster.path, 'postmaster.pid')
  const until = Date.now() + 10_000
  while (Date.now() < until) {
    const text = await readFile(file, 'utf8').catch(() => '')
    const [pidLine, dataFolder, , portLine, socketFolder] = text.split('\n').map((line) => line.trim())
    const pid = Number(pidLine)
    if (!Number.isInteger(pid) || pid <= 1) return undefined
    if (!(await runsIn(pid, cluster.path))) {
      await forgetPostmaster(file, { pid, cluster, logger })
      if (socketFolder) await removeSocketFolder(socketFolder)
      return undefined
    }
    if (dataFolder !== cluster.path)
      throw new StartupError(
        `The database folder ${cluster.path} is used by process ${pid}, started for ${dataFolder}.`,
        {
          hint: `Stop that process first: kill -INT ${pid}`,
          exitCode: 3,
        },
      )
    if (socketFolder)
      return postmaster({
        pid,
        socketFolder,
        port: Number(portLine),
        cluster,
        running: () => runsIn(pid, cluster.path),
      })
    // It is starting at this moment: the line with the socket is written a little later than the first ones.
    await delay(10)
  }
  return undefined
}

export const launchPostmaster = async (options: {
  cluster: Cluster
  user: ServerUser
  binaries: Binaries
  settings: Record<string, string>
}): Promise<Postmaster> => {
  const { cluster, user, binaries } = options
  const socketFolder = await makeSocketFolder(user)
  const settings = { ...defaultSettings, ...options.settings, ...fixedSettings(socketFolder) }
  await rename(cluster.logFile, `${cluster.logFile}.1`).catch(() => undefined)
  const log = await open(cluster.logFile, 'a', 0o600)
  try {
    const child = spawn(
      binaries.postgres,
      ['-D', cluster.path, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
      {
        ...user.identity,
        cwd: '/',
        env: { ...plainEnvironment, ...binaries.environment },
        // A session of its own: Ctrl-C in the terminal must not end the database before we have drained.
        detached: true,
        stdio: ['ignore', log.fd, log.fd],
      },
    )
    await once(child, 'spawn')
    child.unref()
    const running = async () => child.exitCode === null && child.signalCode === null
    return postmaster({ pid: child.pid!, socketFolder, port, cluster, running })
  } catch (error) {
    await removeSocketFolder(socketFolder)
    throw error
  } finally {
    await log.close()
  }
}

const postmaster = (options: {
  pid: number
  socketFolder: string
  port: number
  cluster: Cluster
  running: () => Promise<boolean>
}): Postmaster => ({
  pid: options.pid,
  socketFolder: options.socketFolder,
  port: options.port,
  running: options.running,
  signal: (name) => {
    try {
      process.kill(options.pid, name)
    } catch {
      // It is gone already.
    }
  },
  async lastWords() {
    const text = await readFile(options.cluster.logFile, 'utf8').catch(() => '')
    return text.trim().split('\n').slice(-5).join(' | ').slice(-1000)
  },
})

/** Fast shutdown (SIGINT): sessions end, a checkpoint is written. Immediate shutdown (SIGQUIT) only after `fastMs`. */
export const stopPostmaster = async (
  running: Postmaster,
  { logger, fastMs = 30_000, immediateMs = 10_000 }: { logger: Logger; fastMs?: number; immediateMs?: number },
): Promise<void> => {
  running.signal('SIGINT')
  if (await ended(running, fastMs)) return
  logger.error(
    { postmaster: running.pid },
    'embedded PostgreSQL did not stop in time; it will recover at its next start',
  )
  running.signal('SIGQUIT')
  if (await ended(running, immediateMs)) return
  throw new Error(`The embedded PostgreSQL (process ${running.pid}) does not stop.`)
}

const ended = async (running: Postmaster, withinMs: number) => {
  const until = Date.now() + withinMs
  while (await running.running()) {
    if (Date.now() > until) return false
    await delay(5)
  }
  return true
}

/** Short, because a socket path of 107 bytes or more is fatal; ours alone, because it is the door to every secret. */
const makeSocketFolder = async (user: ServerUser): Promise<string> => {
  const parent = Buffer.byteLength(tmpdir()) <= 70 ? tmpdir() : '/tmp'
  const folder = await mkdtemp(join(parent, socketPrefix))
  await chmod(folder, 0o700)
  if (user.identity.uid !== undefined) await chown(folder, user.uid, user.uid)
  return folder
}

/** Takes away what PostgreSQL leaves in it when killed, and nothing else. */
export const removeSocketFolder = async (folder: string): Promise<void> => {
  if (!basename(folder).startsWith(socketPrefix)) return
  for (const name of [`.s.PGSQL.${port}`, `.s.PGSQL.${port}.lock`]) await rm(join(folder, name), { force: true })
  await rmdir(folder).catch(() => undefined)
}

const alive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Whether the process lives and works in the folder, which is every PostgreSQL process's working directory. Where
 * `/proc` tells, neither a reused process id nor a zombie nobody waits for passes; elsewhere a living process has to
 * do.
 */
const runsIn = async (pid: number, folder: string): Promise<boolean> => {
  if (!alive(pid)) return false
  if (process.platform !== 'linux') return true
  // Unreadable is somebody else's: our own server's processes we may look at.
  return readlink(`/proc/${pid}/cwd`).then(
    (path) => path === folder,
    () => false,
  )
}

const anybodyIn = async (folder: string) => {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  return (await Promise.all(processes.map((pid) => runsIn(pid, folder)))).includes(true)
}

/**
 * PostgreSQL itself would refuse to start while processes of a killed postmaster still use its shared memory, or while
 * the process id in its file lives, whoever that is, which is common after a container restarts.
 */
const forgetPostmaster = async (
  file: string,
  { pid, cluster, logger }: { pid: number; cluster: Cluster; logger: Logger },
) => {
  if (process.platform !== 'linux') return
  // Session processes outlive a killed postmaster for a moment, on a busy machine for a longer one, still writing.
  // Should they stay, PostgreSQL's own check of the shared memory needs the file.
  const until = Date.now() + 10_000
  while (await anybodyIn(cluster.path)) {
    if (Date.now() > until) return
    await delay(10)
  }
  if (!alive(pid)) return
  logger.warn(
    { file, named: pid },
    'postmaster.pid names a process that is not its PostgreSQL any more; removing the file',
  )
  await rm(file, { force: true })
}
