import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildConnector, Pool } from 'undici'
import type { z } from 'zod'
import { upstream as upstreamSettings } from '../../gateway/config/settings/upstream.ts'
import type { Use } from '../../gateway/upstream/targets/shared.ts'
import { createTargets, type Targets } from '../../gateway/upstream/targets/targets.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { capturedLogger } from './captured-logger.ts'
import { startProcess } from './process.ts'

/** A server that counts what it is asked on `/`; checks go elsewhere. */
export const startTarget = async (host = '127.0.0.1', port = 0) => {
  const self = {
    /** Requests, without checks. */
    requests: 0,
    checks: 0,
    status: 200,
    checkStatus: 200,
    answer: undefined as RequestListener | undefined,
    onCheck: undefined as RequestListener | undefined,
  }
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/healthz')) {
      self.checks++
      if (self.onCheck) return self.onCheck(request, response)
      return void response.writeHead(self.checkStatus).end()
    }
    self.requests++
    if (self.answer) return self.answer(request, response)
    response.writeHead(self.status).end()
  })
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return Object.assign(self, {
    port: address.port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}

const program = `
const server = require('node:http').createServer((request, response) => response.end('from ' + process.pid))
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => console.log('listens on ' + server.address().port + '.'))
`

/** The same as a process, which can be stopped and killed. */
export const startTargetProcess = async (port = 0) => {
  const child = startProcess(process.execPath, ['-e', program], { cwd: '/', env: { PORT: String(port) } })
  const [, listening] = await child.waitFor(/listens on (\d+)\./)
  return {
    port: Number(listening),
    url: `http://127.0.0.1:${listening}`,
    signal: child.signal,
    async close() {
      child.signal('SIGCONT')
      child.signal('SIGKILL')
      await child.exited
    },
  }
}

const countingProgram = `
const { writeSync } = require('node:fs')
const server = require('node:http').createServer((request, response) => {
  if (request.method === 'POST') writeSync(1, 'got ' + request.url + '.\\n')
  request.resume().once('end', () => setTimeout(() => response.end('well'), 2))
})
server.listen(0, '127.0.0.1', () => console.log('listens on ' + server.address().port + '.'))
`

/** A process that says which POSTs began to reach it, before it answers any. */
export const startCountingProcess = async () => {
  const child = startProcess(process.execPath, ['-e', countingProgram], { cwd: '/', env: {} })
  const [, listening] = await child.waitFor(/listens on (\d+)\./)
  return {
    url: `http://127.0.0.1:${listening}`,
    signal: child.signal,
    posts: () => [...child.output().matchAll(/got (\/\d+)\./g)].map(([, path]) => path!),
    async close() {
      child.signal('SIGKILL')
      await child.exited
    },
  }
}

const openPool = (connectTimeout: number, ca: string | undefined) => (origin: string, address?: string) => {
  const connect = buildConnector({ timeout: connectTimeout, ...(ca !== undefined && { ca }) })
  return new Pool(origin, {
    pipelining: 1,
    headersTimeout: 0,
    connect: (options, callback) => connect({ ...options, ...(address && { hostname: address }) }, callback),
  })
}

/** Targets of an upstream with these settings, and a client of them that tells what came of its requests. */
export const openTargets = (
  members: z.input<typeof upstreamSettings>,
  {
    metrics = createMetrics(),
    log = capturedLogger('info'),
    use,
    ca,
  }: {
    metrics?: ReturnType<typeof createMetrics>
    log?: ReturnType<typeof capturedLogger>
    use?: Use
    /** Who is trusted to name servers. */
    ca?: string
  } = {},
) => {
  const settings = upstreamSettings.parse(members)
  const targets = createTargets({
    name: 'api',
    settings,
    openPool: openPool(settings.connectTimeout, ca),
    logger: log.logger,
    metrics,
    ...(use && { use }),
  })

  /** Resolves to the name of the target and the status, or the code of the error. */
  const send = async (choice?: Parameters<Targets['pick']>[0]) => {
    const target = targets.pick(choice)
    if (!target) return undefined
    target.begin()
    try {
      const { statusCode, body } = await target.pool.request({
        path: '/',
        method: 'GET',
        signal: AbortSignal.timeout(20_000),
      })
      await body.dump()
      target.end(statusCode >= 502 && statusCode <= 504 ? 'failed' : 'answered')
      return { name: target.name, outcome: statusCode }
    } catch (error) {
      target.end('failed')
      return { name: target.name, outcome: (error as NodeJS.ErrnoException).code }
    }
  }

  return {
    targets,
    metrics,
    lines: log.lines,
    send,
    async sendMany(count: number) {
      for (let sent = 0; sent < count; sent++) await send()
    },
    stateOf: (name: string) => targets.states().find((state) => state.name === name),
    names: () => targets.states().map(({ name }) => name),
    series: async (name: string) =>
      (await metrics.render()).text.split('\n').filter((line) => line.startsWith(`${name}{`)),
    close: () => targets.close(),
  }
}
