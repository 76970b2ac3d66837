import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from './process.ts'
import { waitUntilAccepting } from './until-accepting.ts'

/** Debian keeps it where the PATH of an ordinary user does not look. */
const candidates = ['haproxy', '/usr/sbin/haproxy', '/usr/local/sbin/haproxy']

const find = (): string | undefined => {
  const found = candidates.find((command) => spawnSync(command, ['-v']).status === 0)
  if (found !== undefined) return found
  if (process.env['CI'] === 'true') throw new Error('haproxy is not installed, and the tests against it must run here.')
  process.stderr.write('\n*** haproxy is not installed: the tests of the gateway behind it are skipped.\n\n')
  return undefined
}

/** The HAProxy of this machine; undefined: none, which is an error with CI=true. */
export const haproxy: string | undefined = find()

/** A real HAProxy in the foreground with this configuration, which listens on `port` of 127.0.0.1. */
export const startHaproxy = async (configuration: string, port: number) => {
  const folder = await mkdtemp(join(tmpdir(), 'haproxy-'))
  const file = join(folder, 'haproxy.cfg')
  await writeFile(file, configuration)
  const child = startProcess(haproxy!, ['-db', '-f', file], { cwd: folder })
  const close = async () => {
    child.signal('SIGTERM')
    await child.exited
    await rm(folder, { recursive: true, force: true })
  }
  await waitUntilAccepting(port, child, 'haproxy').catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { close, output: child.output }
}
