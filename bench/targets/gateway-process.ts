import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { freePort } from '../../test/support/free-port.ts'
import { type GatewayFileSettings, gatewayFile } from '../harness/gateway-file.ts'
import { cpuMicros, residentBytes } from '../harness/installed.ts'
import { runServer } from '../harness/server.ts'

/** Our gateway as the command runs it, with all of its processes. */
runServer(async (settings: GatewayFileSettings) => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
  const port = await freePort()
  const file = join(folder, 'gateway.yaml')
  await writeFile(file, stringify(gatewayFile({ ...settings, port })))
  const command = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))
  const child = spawn(process.execPath, [command, 'gateway', '--config', file], {
    stdio: ['ignore', process.stderr, 'inherit'],
    env: { ...process.env, LOG_LEVEL: 'warn' },
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  const processes = () => [child.pid!, ...childrenOf(child.pid!)]
  await serves(port, child)
  return {
    port,
    cpu: () => processes().reduce((sum, pid) => sum + cpuMicros(pid), 0),
    memory: () => ({ rss: processes().reduce((sum, pid) => sum + residentBytes(pid), 0) }),
    stop: async () => {
      child.kill()
      await gone
      await rm(folder, { recursive: true })
    },
  }
})

const serves = async (port: number, child: ChildProcess): Promise<void> => {
  for (let attempt = 0; attempt < 400 && child.exitCode === null; attempt++) {
    // 401 as soon as there are keys: before, 503.
    const answer = await fetch(`http://127.0.0.1:${port}/orders/1`).catch(() => undefined)
    if (answer?.status === 401) return
    await delay(25)
  }
  throw new Error('the gateway does not serve')
}

/** By the fourth field of proc(5), the parent. */
const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
      } catch {
        return false
      }
    })
