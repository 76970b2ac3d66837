import { execFile } from 'node:child_process'
import { chown, cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { createDataFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { isRunning, startProcess, type TestProcess } from '../support/process.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const leftOut = new Set(['.git', 'node_modules', '.surrogate', 'dist', 'coverage'])

/**
 * A copy of this checkout in a path with a space, as somebody else would have it. `node_modules` shares the files'
 * contents.
 */
export const createCheckout = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate e2e '))
  // Others must get through: an ordinary user starts it too.
  await promisify(execFile)('chmod', ['755', folder])
  const path = join(folder, 'my checkout')
  await cp(root, path, { recursive: true, filter: (source) => !leftOut.has(relative(root, source).split(sep)[0]!) })
  const copy = promisify(execFile)
  const modules = [join(root, 'node_modules'), join(path, 'node_modules')]
  await copy('cp', ['-al', ...modules]).catch(async () => {
    await rm(modules[1]!, { recursive: true, force: true })
    await copy('cp', ['-a', ...modules])
  })
  // Nothing is built in a fresh clone.
  await rm(join(modules[1]!, '.cache/surrogate-console'), { recursive: true, force: true })
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** `nobody`, for root to start things as somebody ordinary: PostgreSQL wants an account. */
const ordinaryUser = 65_534

export interface Settings {
  checkout: string
  dataDir: string
  env: Record<string, string>
  /** Prefix that runs a command as an ordinary user; empty when we are one. */
  asUser: readonly string[]
}

/** What a stack that has ended leaves behind, for others to begin with: `data` of `createSettings`. */
export const keepData = async ({ dataDir }: Settings) => {
  const folder = await createDataFolder('surrogate-kept-')
  await promisify(execFile)('cp', ['-a', dataDir, join(folder, 'data')])
  return { path: join(folder, 'data'), remove: () => rm(folder, { recursive: true, force: true }) }
}

interface StackOptions {
  ordinary?: boolean
  env?: Record<string, string>
  /** Default: none, as at a first start, which takes most of its time to make them. */
  data?: { path: string } | undefined
}

/** Free ports and a data folder of its own for one stack. */
export const createSettings = async (
  checkout: string,
  { ordinary = false, env = {}, data }: StackOptions = {},
): Promise<Settings> => {
  const ports = await Promise.all(Array.from({ length: 5 }, freePort))
  const [gateway, issuer, demo, web, admin] = ports
  const home = await createDataFolder('surrogate-home-')
  const dataDir = join(home, 'data folder')
  if (data) await promisify(execFile)('cp', ['-a', data.path, dataDir])
  else await mkdir(dataDir)
  await promisify(execFile)('chmod', ['711', home])
  const changeUser = ordinary && process.getuid?.() === 0
  if (changeUser) for (const folder of [home, dataDir]) await chown(folder, ordinaryUser, ordinaryUser)
  return {
    checkout,
    dataDir,
    asUser: changeUser ? ['setpriv', `--reuid=${ordinaryUser}`, `--regid=${ordinaryUser}`, '--clear-groups', '--'] : [],
    env: {
      HOME: home,
      npm_config_cache: join(home, 'npm'),
      npm_config_update_notifier: 'false',
      SURROGATE_DATA_DIR: dataDir,
      GATEWAY_PORT: String(gateway),
      PORT: String(issuer),
      DEMO_PORT: String(demo),
      DEMO_WEB_PORT: String(web),
      ADMIN_PORT: String(admin),
      ...env,
    },
  }
}

/** The console is served as it is built, to whoever opens it first: by the link that makes an owner. */
export const expectConsole = async (stack: TestProcess) => {
  const link = /(http:\/\/localhost:\d+)\/console\/setup#[\w-]{43}\n/
  await stack.waitFor(link)
  const [, origin] = link.exec(stack.output())!
  const page = await (await fetch(`${origin}/console/setup`)).text()
  const [, script] = /<script type="module"[^>]* src="(\/console\/assets\/[^"]+)"/.exec(page)!
  const { status, headers } = await fetch(`${origin}${script}`)
  expect([status, headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
}

const command = ({ asUser }: Settings, program: string, args: readonly string[]) => {
  const [first = program, ...rest] = [...asUser, program, ...args]
  return [first, rest] as const
}

const node = (settings: Settings) => join(settings.checkout, 'node_modules/.bin/node')

/** `npm start`, as a user types it. */
export const npmStart = (settings: Settings): TestProcess =>
  startProcess(...command(settings, 'npm', ['start']), { cwd: settings.checkout, env: settings.env })

/** The command line without npm in between, so that exit codes and signals are its own. */
export const startSurrogate = (settings: Settings, ...args: string[]): TestProcess =>
  startProcess(...command(settings, node(settings), ['-r', './bin/require-node.cjs', 'bin/surrogate.ts', ...args]), {
    cwd: settings.checkout,
    env: settings.env,
  })

/** What the stack prints once everything answers. */
export const ready = /Surrogate is running/

/** The database server of the stack, by the file it keeps while it runs. */
export const databasePid = async ({ dataDir }: Settings): Promise<number> =>
  Number((await readFile(join(dataDir, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[0])

export const demoOf = async ({ dataDir }: Settings): Promise<unknown> =>
  JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'))

/** Ends what a failed test left behind; after a passed one there is nothing left. */
export const cleanUp = async (settings: Settings, ...processes: TestProcess[]) => {
  for (const child of processes) {
    child.signalGroup('SIGKILL')
    await child.exited
  }
  const pid = await databasePid(settings).catch(() => undefined)
  if (pid !== undefined && isRunning(pid)) process.kill(pid, 'SIGQUIT')
  await rm(join(settings.dataDir, '..'), { recursive: true, force: true, maxRetries: 10 })
}
