import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { parse } from 'yaml'
import { startCaddyfile } from './caddy.ts'
import { createAuthority } from './certificates.ts'
import { freePort } from './free-port.ts'
import { type SeenRequest, startTestGateway } from './gateway.ts'
import { startHaproxy } from './haproxy.ts'
import { startNginx } from './nginx.ts'
import { startWebSocketApi } from './websocket-api.ts'

/** The files of deploy/in-front, run by the real programs; only addresses and the places of files are replaced. */

export type Front = 'nginx' | 'caddy' | 'haproxy'
export type Mode = 'proxy' | 'forward-auth'

export const host = 'api.example.test'
export const audience = 'https://api.example.test/orders'

const files = fileURLToPath(new URL('../../deploy/in-front/', import.meta.url))
export const shippedFile = (name: string): Promise<string> => readFile(join(files, name), 'utf8')

interface Places {
  port: number
  gateway: number
  api: number
  /** PEM files of the host, `both` the certificate with its key. */
  cert: string
  key: string
  both: string
  /** Of HAProxy. */
  script: string
}

/** Each text must stand there, so that a file cannot change without its test. */
const replaced = (text: string, replacements: readonly (readonly [shown: string, ours: string])[]): string =>
  replacements.reduce((current, [from, to]) => {
    if (!current.includes(from)) throw new Error(`The shipped file has no ${from}`)
    return current.replaceAll(from, to)
  }, text)

const upstreams = (mode: Mode, { gateway, api }: Places) => [
  ['127.0.0.1:3000', `127.0.0.1:${gateway}`] as const,
  ...(mode === 'forward-auth' ? [['127.0.0.1:3002', `127.0.0.1:${api}`] as const] : []),
]

const programs: Record<Front, (mode: Mode, places: Places) => Promise<{ close(): Promise<void>; output(): string }>> = {
  nginx: async (mode, places) =>
    startNginx(
      replaced(await shippedFile(`nginx/${mode}.conf`), [
        ...upstreams(mode, places),
        ['listen 443 ssl http2;', `listen 127.0.0.1:${places.port} ssl http2;`],
        ['/etc/ssl/api.example.test.pem', places.cert],
        ['/etc/ssl/api.example.test.key', places.key],
      ]),
      places.port,
    ),
  caddy: async (mode, places) =>
    startCaddyfile(
      replaced(await shippedFile(`caddy/${mode}.caddyfile`), [
        ...upstreams(mode, places),
        ['\tgrace_period 10s\n', '\tgrace_period 1s\n\tadmin off\n\tauto_https disable_redirects\n'],
        [`\n${host} {\n`, `\nhttps://${host}:${places.port} {\n\tbind 127.0.0.1\n\ttls ${places.cert} ${places.key}\n`],
      ]),
    ),
  haproxy: async (mode, places) =>
    startHaproxy(
      replaced(await shippedFile(`haproxy/${mode}.cfg`), [
        ...upstreams(mode, places),
        ['bind :443 ssl crt /etc/ssl/api.example.test.pem', `bind 127.0.0.1:${places.port} ssl crt ${places.both}`],
        ...(mode === 'forward-auth' ? [['/etc/haproxy/forward-auth.lua', places.script] as const] : []),
      ]),
      places.port,
    ),
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: string
}

interface Question {
  method?: string
  headers?: Record<string, string | string[]>
  body?: string
}

/** An API that notes what it gets, a gateway with the shipped file, and the front before or beside it, by TLS. */
export const startFront = async (
  front: Front,
  mode: Mode,
  /** `rules`: Rego that decides, in package `front`. */
  { rules, editScript = (text) => text }: { rules?: string; editScript?: (text: string) => string } = {},
) => {
  const seen: SeenRequest[] = []
  let early = false
  const api = await startWebSocketApi(async (request, response) => {
    let body = ''
    if (early) return void request.once('data', () => response.end('early'))
    for await (const chunk of request) body += (chunk as Buffer).toString('latin1')
    const { method = '', url = '', headers, rawHeaders } = request
    seen.push({ method, url, headers: headers as Record<string, string>, rawHeaders, body })
    if (url.endsWith('/events')) {
      // Stays open.
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
    } else response.writeHead(200, { 'content-type': 'text/plain' }).end('of the API')
  })
  const folder = await mkdtemp(join(tmpdir(), 'front-'))
  const file = parse(await shippedFile(mode === 'proxy' ? 'gateway.yaml' : `${front}/gateway-forward-auth.yaml`))
  const accessLog = join(folder, 'access.jsonl')
  const policies = join(folder, 'policies')
  await mkdir(policies)
  if (rules !== undefined) await writeFile(join(policies, 'front.rego'), rules)
  const gateway = await startTestGateway({
    config: ({ issuer }) => ({
      ...file,
      listen: { ...file.listen, port: 0 },
      issuers: [{ ...file.issuers[0], issuer: issuer.issuer }],
      upstreams: mode === 'proxy' ? { orders: { ...file.upstreams.orders, url: api.url } } : {},
      ...(rules !== undefined && { policies: { path: policies, entrypoint: 'front/decision' } }),
      accessLog: { to: accessLog },
    }),
  })
  const authority = createAuthority()
  const issued = authority.issue(host)
  const port = await freePort()
  const places = {
    port,
    gateway: gateway.port,
    api: api.port,
    cert: join(folder, 'host.pem'),
    key: join(folder, 'host.key'),
    both: join(folder, 'both.pem'),
    script: join(folder, 'forward-auth.lua'),
  }
  await writeFile(places.cert, issued.cert)
  await writeFile(places.key, issued.key)
  await writeFile(places.both, issued.cert + issued.key)
  await writeFile(places.script, editScript(await shippedFile('haproxy/forward-auth.lua')))
  const releases = [() => rm(folder, { recursive: true }), async () => authority.remove(), api.close, gateway.close]
  const close = async () => {
    for (const release of releases.splice(0).reverse()) await release()
  }
  const program = await programs[front](mode, places).catch(async (error: unknown) => {
    await close()
    throw error
  })
  releases.push(program.close)
  const token = await gateway.issuer.sign({
    aud: audience,
    scope: 'read:orders',
    client_id: 'c1',
    act: { sub: 'agent' },
  })
  const tls = { host: '127.0.0.1', port, servername: host, ca: authority.certificate }
  const self = {
    seen,
    api,
    gateway,
    port,
    /** Opens a WebSocket, and answers what comes back of a message; or `answered <status>`. */
    echo: (path: string, headers: Record<string, string> = {}) =>
      new Promise<string>((resolve, reject) => {
        const socket = new WebSocket(`wss://127.0.0.1:${port}${path}`, [], {
          createConnection: () => connectTls({ ...tls, ALPNProtocols: ['http/1.1'] }),
          headers: { host, ...headers },
        })
        socket.on('open', () => socket.send('there and back'))
        socket.on('message', (data) => {
          resolve(String(data))
          socket.close()
        })
        socket.on('unexpected-response', (_request, answer) => {
          resolve(`answered ${answer.statusCode}`)
          socket.terminate()
        })
        socket.on('error', reject)
      }),
    /** Of `u1`, for whom `agent` acts; may read orders. */
    token,
    output: program.output,
    /** Whether the API answers when it has the beginning of a body. */
    answerEarly(set: boolean) {
      early = set
    },
    /** What the gateway decided on, by request id. */
    async decidedPaths(): Promise<Map<string, string>> {
      const lines = (await readFile(accessLog, 'utf8')).split('\n').filter(Boolean)
      return new Map(lines.map((line) => JSON.parse(line)).map(({ request_id, path }) => [request_id, path]))
    },
    /** Bytes as they are, by TLS; everything that comes back. */
    send: (text: string, until?: RegExp): Promise<string> =>
      new Promise((resolve, reject) => {
        let received = ''
        const socket = connectTls({ ...tls, ALPNProtocols: ['http/1.1'] }, () => socket.write(text, 'latin1'))
        socket.on('data', (chunk) => {
          received += chunk.toString('latin1')
          if (until?.test(received)) socket.destroy()
        })
        socket.on('close', () => resolve(received))
        socket.on('error', (error: NodeJS.ErrnoException) =>
          error.code === 'ECONNRESET' ? resolve(received) : reject(error),
        )
      }),
    /** By HTTP/1.1. */
    ask: (path: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const request = httpsRequest(
          { ...tls, path, method, headers: { host, ...headers }, agent: false },
          (answer) => {
            let text = ''
            answer.on('data', (chunk) => {
              text += chunk
            })
            answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, body: text }))
            answer.on('error', reject)
          },
        )
        request.on('error', reject)
        request.end(body)
      }),
    /** By HTTP/2. */
    askHttp2: (path: string, { method = 'GET', headers = {}, body }: Question = {}): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const session = connectHttp2(`https://${host}:${port}`, {
          createConnection: () => connectTls({ ...tls, ALPNProtocols: ['h2'] }),
        })
        session.on('error', reject)
        const stream = session.request(
          { ':path': path, ':method': method, ':authority': host, ...headers },
          { endStream: body === undefined },
        )
        let answer: Answer | undefined
        let text = ''
        stream.on('response', (fields) => {
          answer = { status: Number(fields[':status']), headers: fields as Answer['headers'], body: '' }
        })
        stream.on('data', (chunk) => {
          text += chunk
        })
        stream.on('error', reject)
        stream.on('close', () => {
          session.close()
          if (answer) resolve({ ...answer, body: text })
          else reject(new Error('The stream ended without an answer.'))
        })
        if (body !== undefined) stream.end(body)
      }),
    close,
  }
  return self
}

export type RunningFront = Awaited<ReturnType<typeof startFront>>
