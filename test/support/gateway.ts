import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { stringify } from 'yaml'
import { fileSource, parseGatewayConfig } from '../../gateway/config/load.ts'
import { insecureNames } from '../../gateway/config/settings/file.ts'
import { type PolicyProvider, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { type Logger, silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { startTokenIssuer, type TokenIssuer } from './token-issuer.ts'

/** What an upstream saw of a request. */
export interface SeenRequest {
  method: string
  url: string
  headers: Record<string, string>
  rawHeaders: string[]
  body: string
}

export interface TestUpstream {
  readonly url: string
  readonly port: number
  readonly seen: SeenRequest[]
  /** Answers from now on; default: 200 with what was seen. */
  answer: (request: IncomingMessage, response: ServerResponse, seen: SeenRequest) => void
  close(): Promise<void>
}

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

/** A real API that notes every request it gets. `listener` replaces it whole. */
export const startUpstream = async (listener?: RequestListener): Promise<TestUpstream> => {
  const seen: SeenRequest[] = []
  const self = {
    answer: (_request: IncomingMessage, response: ServerResponse, request: SeenRequest) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(request)),
  }
  const record: RequestListener = async (request, response) => {
    const body = await read(request).catch(() => '<aborted>')
    const { method = '', url = '', headers, rawHeaders } = request
    const entry = { method, url, headers: headers as Record<string, string>, rawHeaders, body }
    seen.push(entry)
    self.answer(request, response, entry)
  }
  const server = createServer(listener ?? record)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(self, {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  })
}

export const orders = 'https://api.test/orders'

/** Several issuers, and a route that takes the tokens of each. */
export const takenEverywhere = (...issuers: { issuer: string; [member: string]: unknown }[]) => ({
  issuers,
  routes: [
    {
      id: 'orders-read',
      path: '/orders/**',
      audience: [orders],
      issuers: issuers.map(({ issuer }) => issuer),
      scopes: ['read:orders'],
      upstream: 'orders',
    },
  ],
})

export interface TestGateway {
  url: string
  port: number
  /** With `extAuthz`. */
  extAuthzPort: number
  /** Where it is configured. */
  inspectionUrl: string | undefined
  issuer: TokenIssuer
  upstream: TestUpstream
  health: ReturnType<typeof createHealth>
  metrics: ReturnType<typeof createMetrics>
  /** `fetch` against the gateway with a good token that has `scope`; other headers replace it. */
  call(path: string, options?: RequestInit & { scope?: string; token?: string }): Promise<Response>
  reopenLogs(): void
  /** Writes `file` anew, with these members replaced, or as it is given. */
  write(config: string | Record<string, unknown>): Promise<void>
  reload(): Promise<void>
  close(): Promise<void>
}

/**
 * A gateway before a real upstream, with a real issuer and the shipped policies. `config` replaces top-level members of
 * its file.
 */
export const startTestGateway = async (
  options: {
    config?: (parts: { issuer: TokenIssuer; upstream: TestUpstream }) => Record<string, unknown>
    upstream?: RequestListener
    policies?: PolicyProvider
    logger?: Logger
    now?: () => Date
    /** Where the configuration is written and followed. Default: it is not. */
    file?: string
  } = {},
): Promise<TestGateway> => {
  const issuer = await startTokenIssuer()
  const upstream = await startUpstream(options.upstream)
  const file = {
    version: 1,
    listen: { port: 0 },
    allowInsecure: insecureNames,
    issuers: [{ issuer: issuer.issuer }],
    upstreams: { orders: { url: upstream.url } },
    routes: [
      {
        id: 'orders-read',
        path: '/orders/**',
        methods: ['GET', 'HEAD'],
        audience: [orders],
        scopes: ['read:orders'],
        upstream: 'orders',
      },
      {
        id: 'orders-write',
        path: '/orders/**',
        methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
        audience: [orders],
        scopes: ['write:orders'],
        upstream: 'orders',
      },
      { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
    ],
    ...options.config?.({ issuer, upstream }),
  }
  const { file: path } = options
  const write = (config: string | Record<string, unknown>) =>
    writeFile(path!, typeof config === 'string' ? config : stringify({ ...file, ...config }))
  if (path !== undefined) await write({})
  const health = createHealth()
  const metrics = createMetrics()
  const gateway = await startGateway({
    config: parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }),
    logger: options.logger ?? silentLogger,
    metrics,
    health,
    ...(options.policies && { policies: options.policies }),
    ...(options.now && { now: options.now }),
    ...(path !== undefined && { source: fileSource(path, {}) }),
  })
  return {
    url: gateway.url,
    port: gateway.port,
    extAuthzPort: gateway.extAuthzPort ?? 0,
    inspectionUrl: gateway.inspectionUrl,
    issuer,
    upstream,
    health,
    metrics,
    reopenLogs: gateway.reopenLogs,
    reload: gateway.reload,
    write,
    async call(path, { scope = 'read:orders write:orders', token, headers, ...init } = {}) {
      const bearer = token ?? (await issuer.sign({ scope, client_id: 'c1' }))
      return fetch(gateway.url + path, {
        redirect: 'manual',
        headers: { authorization: `Bearer ${bearer}`, ...headers },
        ...init,
      })
    },
    async close() {
      await gateway.close()
      await upstream.close()
      await issuer.close()
    },
  }
}

/** Sends bytes as they are and returns everything that comes back until the server closes (or `until` is seen). */
export const sendRaw = (port: number, text: string, { until }: { until?: RegExp } = {}): Promise<string> =>
  new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'))
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      if (until?.test(received)) socket.destroy()
    })
    socket.on('close', () => resolve(received))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' ? resolve(received) : reject(error),
    )
  })
