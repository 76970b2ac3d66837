import { type IncomingHttpHeaders, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { findOpa } from '../../policies/engine/index.ts'
import { freePort } from './free-port.ts'
import { startProcess, type TestProcess } from './process.ts'
import { until } from './until.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))

export interface PolicyServer extends TestProcess {
  url: string
  port: number
  stop(): Promise<{ code: number | null }>
}

const stoppable = (child: TestProcess, url: string): PolicyServer => ({
  ...child,
  url,
  port: Number(new URL(url).port),
  stop() {
    child.signal('SIGTERM')
    return child.exited
  },
})

/** `surrogate policy serve` as people run it, on a free port. */
export const startPolicyServer = async (source: string, args: readonly string[] = []): Promise<PolicyServer> => {
  const all = [surrogate, 'policy', 'serve', source, ...(args.includes('--addr') ? [] : ['--addr', '127.0.0.1:0'])]
  const child = startProcess(process.execPath, [...all, ...args], { cwd: process.cwd() })
  const [, url] = await child.waitFor(/"url":"([^"]+)".*policy server listening/)
  return stoppable(child, url!)
}

/** The same rules in OPA's own server. */
export const startOpaServer = async (folder: string, args: readonly string[] = []): Promise<PolicyServer> => {
  const url = `http://127.0.0.1:${await freePort()}`
  const opa = await findOpa()
  const child = startProcess(opa, ['run', '--server', '--addr', url, '--log-level', 'error', ...args, folder], {
    cwd: process.cwd(),
  })
  await until(async () => {
    const { status } = await ask(url, { path: '/health' })
    if (status >= 500) throw new Error(`not healthy: ${status}`)
  })
  return stoppable(child, url)
}

/** A command of the real command line. */
export const runPolicyCommand = async (args: readonly string[], env: Record<string, string> = {}) => {
  const child = startProcess(process.execPath, [surrogate, 'policy', ...args], { cwd: process.cwd(), env })
  const { code } = await child.exited
  return { code, output: child.output() }
}

export interface Asked {
  /** Sent as it stands. */
  path: string
  /** Default: POST with a body, else GET. */
  method?: string
  body?: string | Buffer
  headers?: Record<string, string | string[]>
}

export interface Answered {
  status: number
  headers: IncomingHttpHeaders
  bytes: Buffer
  /** JSON where it is some, else text. */
  body: unknown
}

/** Asks on a connection of its own; nothing is added to the path, followed or unpacked. */
export const ask = (url: string, { path, body, method, headers = {} }: Asked): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const framing = 'transfer-encoding' in headers ? {} : length
    const sent = request(
      {
        hostname,
        port,
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { ...framing, ...headers },
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          resolve({ status: response.statusCode!, headers: response.headers, bytes, body: parsed(bytes) })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })

const parsed = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return bytes.toString()
  }
}
