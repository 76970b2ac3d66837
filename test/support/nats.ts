import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { NatsServers } from '../../platform/nats/nats-url.ts'
import { freePort } from './free-port.ts'
import { startProcess, type TestProcess } from './process.ts'

export interface TestNats {
  url: string
  servers: NatsServers
  port: number
  pid(): number
  /** Another process on the same port and store. */
  start(): Promise<void>
  /** Default SIGKILL. Resolves when it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Removes all that JetStream has stored. Stop it first. */
  wipe(): Promise<void>
  close(): Promise<void>
}

/** Why tests with a broker cannot run here; undefined when they can. With CI=true it throws. */
export const natsMissing = (): string | undefined => {
  try {
    execFileSync('nats-server', ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    const reason = 'nats-server is not installed (apt-get install nats-server): NOTHING about the broker is tested'
    if (process.env['CI'] === 'true') throw new Error(reason)
    console.warn(reason)
    return reason
  }
}

export const natsServers = (port: number, credentials: NatsServers['credentials'] = {}, tls = false): NatsServers => ({
  addresses: [`127.0.0.1:${port}`],
  tls,
  credentials,
})

/**
 * A real nats-server on a free port of 127.0.0.1 with a store of its own. `config`: lines of its configuration, instead
 * of JetStream alone.
 */
export const startTestNats = async ({ config = '', jetstream = true, running = true } = {}): Promise<TestNats> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-nats-'))
  const port = await freePort()
  const store = join(folder, 'store')
  const file = join(folder, 'nats.conf')
  await writeFile(
    file,
    `listen: "127.0.0.1:${port}"\n${jetstream ? `jetstream { store_dir: "${store}" }\n` : ''}${config}\n`,
  )
  let server: TestProcess | undefined

  const nats: TestNats = {
    url: `nats://127.0.0.1:${port}`,
    servers: natsServers(port),
    port,
    pid: () => server!.pid,
    async start() {
      server = startProcess('nats-server', ['-c', file], { cwd: folder })
      await accepts(port, server)
    },
    async stop(signal = 'SIGKILL') {
      server?.signal(signal)
      await server?.exited
      server = undefined
    },
    signal: (signal) => server?.signal(signal),
    wipe: () => rm(store, { recursive: true, force: true }),
    async close() {
      server?.signal('SIGCONT')
      await nats.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  if (running) await nats.start()
  return nats
}

/** Ready: it says so, and takes connections. */
const accepts = async (port: number, server: TestProcess): Promise<void> => {
  await server.waitFor(/Server is ready/)
  for (;;) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1')
      socket.once('connect', () => {
        socket.destroy()
        resolve(true)
      })
      socket.once('error', () => resolve(false))
    })
    if (connected) return
    await delay(10)
  }
}
