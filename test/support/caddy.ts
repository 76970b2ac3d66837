import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from './process.ts'

const find = (): string | undefined => {
  if (spawnSync('caddy', ['version']).status === 0) return 'caddy'
  if (process.env['CI'] === 'true') throw new Error('caddy is not installed, and the tests against it must run here.')
  process.stderr.write('\n*** caddy is not installed: the tests of forward-auth against it are skipped.\n\n')
  return undefined
}

/** The Caddy of this machine; undefined: none, which is an error with CI=true. */
export const caddy: string | undefined = find()

/** A real Caddy with these sites, which name their own addresses; without its admin port and without certificates. */
export const startCaddy = (sites: string) => startCaddyfile(`{\n\tadmin off\n\tauto_https off\n}\n${sites}`)

/** A real Caddy with a whole Caddyfile. */
export const startCaddyfile = async (text: string) => {
  const folder = await mkdtemp(join(tmpdir(), 'caddy-'))
  const file = join(folder, 'Caddyfile')
  await writeFile(file, text)
  const child = startProcess(caddy!, ['run', '--config', file, '--adapter', 'caddyfile'], {
    cwd: folder,
    env: { HOME: folder },
  })
  const close = async () => {
    child.signal('SIGTERM')
    await child.exited
    await rm(folder, { recursive: true, force: true })
  }
  await child.waitFor(/serving initial configuration/).catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { close, output: child.output }
}
