import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from './process.ts'
import { waitUntilAccepting } from './until-accepting.ts'

/** Debian keeps it where the PATH of an ordinary user does not look. */
const candidates = ['nginx', '/usr/sbin/nginx', '/usr/local/sbin/nginx']

const find = (): string | undefined => {
  const found = candidates.find((command) => spawnSync(command, ['-v']).status === 0)
  if (found !== undefined) return found
  if (process.env['CI'] === 'true') throw new Error('nginx is not installed, and the tests against it must run here.')
  process.stderr.write('\n*** nginx is not installed: the tests of forward-auth against it are skipped.\n\n')
  return undefined
}

/** The nginx of this machine; undefined: none, which is an error with CI=true. */
export const nginx: string | undefined = find()

/**
 * A real nginx in the foreground, as the user who runs the tests, with everything that it writes in a folder of its
 * own.
 * @param blocks what stands within `http { }`; listens on `port`.
 */
export const startNginx = async (blocks: string, port: number) => {
  const folder = await mkdtemp(join(tmpdir(), 'nginx-'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await mkdir(join(folder, 'logs'))
  const configuration = `daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
${blocks}
}
`
  await writeFile(join(folder, 'nginx.conf'), configuration)
  const child = startProcess(nginx!, ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], { cwd: folder })
  const close = async () => {
    child.signal('SIGTERM')
    await child.exited
    await rm(folder, { recursive: true, force: true })
  }
  await waitUntilAccepting(port, child, 'nginx').catch(async (error: unknown) => {
    await close()
    throw error
  })
  return { close, output: child.output }
}
