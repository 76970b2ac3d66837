import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { findOpa } from '../../policies/engine/index.ts'
import { freePort } from './free-port.ts'
import { startProcess, type TestProcess } from './process.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

/** A gateway of several processes, of the real command line, with rules of its own that a counted OPA compiles. */
export interface GatewayWorkers {
  child: TestProcess
  folder: string
  url: string
  adminUrl: string
  /** Processes of workers that run now. */
  workers(): number[]
  /** How often rules were compiled. */
  compiled(): Promise<number>
  write(config: object): Promise<void>
  /** A file beside gateway.yaml, whole at once. */
  writeFile(file: string, text: string): Promise<void>
  /** Rules that say who they are, in a header for the upstream and, with the worker, in the log. */
  writeRules(version: string): Promise<void>
  metrics(): Promise<string>
  readiness(): Promise<{ ok: boolean; checks: Record<string, { ok: boolean; detail?: string }> }>
  close(): Promise<void>
}

const rules = (version: string) => `package surrogate.gateway

# METADATA
# entrypoint: true
decision := {"allow": true, "headers": {"x-rules": "${version}"}} if print("asked", input.request.path)
`

export const startGatewayWorkers = async (config: object): Promise<GatewayWorkers> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-workers-'))
  const adminPort = await freePort()
  // Whole or not at all, as editors and Kubernetes do.
  const put = async (file: string, text: string) => {
    await writeFile(join(folder, `${file}.new`), text)
    await rename(join(folder, `${file}.new`), join(folder, file))
  }
  const write = (members: object) =>
    put(
      'gateway.yaml',
      stringify({
        version: 1,
        workers: 2,
        listen: { port: 0 },
        admin: { port: adminPort },
        policies: { path: './rules' },
        ...members,
      }),
    )
  const writeRules = (version: string) => put('rules/rules.rego', rules(version))
  await mkdir(join(folder, 'rules'))
  await writeRules('one')
  await write(config)
  const opa = await findOpa()
  await writeFile(join(folder, 'opa'), `#!/bin/sh\necho "$*" >> '${folder}/opa-runs'\nexec '${opa}' "$@"\n`)
  await chmod(join(folder, 'opa'), 0o755)

  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', join(folder, 'gateway.yaml')], {
    cwd: folder,
    env: { OPA_BIN: join(folder, 'opa') },
  })
  const close = async () => {
    child.signalGroup('SIGKILL')
    await child.exited
    await rm(folder, { recursive: true, force: true })
  }
  const adminUrl = `http://127.0.0.1:${adminPort}`
  try {
    const [, url = ''] = await child.waitFor(/"url":"(https?:[^"]+)"[^\n]*the gateway listens/)
    return {
      child,
      folder,
      url,
      adminUrl,
      write,
      writeFile: put,
      writeRules,
      close,
      workers: () => workersOf(child.pid),
      compiled: async () => {
        const runs = await readFile(join(folder, 'opa-runs'), 'utf8')
        return runs.split('\n').filter((line) => /^build .*-t wasm /.test(line)).length
      },
      metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
      readiness: async () => (await (await fetch(`${adminUrl}/readyz`)).json()) as never,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Processes of workers that run now. */
export const workersOf = (pid: number): number[] =>
  execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => new RegExp(`^\\s*\\d+\\s+${pid}\\s.*worker-process`).test(line))
    .map((line) => Number.parseInt(line, 10))
