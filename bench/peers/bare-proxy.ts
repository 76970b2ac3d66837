import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { listen, runServer } from '../harness/server.ts'

/**
 * The floor: the least a correct HTTP/1.1 proxy on `node:http` and undici can do. It re-frames, removes hop-by-hop
 * headers and streams both ways with back-pressure. It routes, verifies and decides nothing.
 */
export type BareProxySettings = {
  upstream: string
  /**
   * Also makes one bare `crypto.verify` of each request's token with this key, and nothing else of it: what cold tokens
   * are measured by.
   */
  verifyWith?: JsonWebKey
}

runServer(({ upstream, verifyWith }: BareProxySettings) => {
  const pool = new Pool(upstream, { connections: 128, pipelining: 1 })
  const key = verifyWith && createPublicKey({ key: verifyWith, format: 'jwk' })
  const server = createServer((request, response) => {
    if (key && !verifiesToken(key, request.headers.authorization ?? '')) response.writeHead(401).end()
    else forward(pool, request, response)
  })
  return listen(server, () => pool.destroy())
})

const verifiesToken = (key: KeyObject, authorization: string): boolean => {
  const end = authorization.lastIndexOf('.')
  const input = Buffer.from(authorization.slice('Bearer '.length, end))
  const signature = Buffer.from(authorization.slice(end + 1), 'base64url')
  return verify('sha256', input, { key, dsaEncoding: 'ieee-p1363' }, signature)
}

/** RFC 9110 §7.6.1. `host` goes too: undici writes the upstream's own. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const forward = (pool: Pool, request: IncomingMessage, response: ServerResponse): void => {
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  const dropped = listedIn(request.headers.connection)
  const headers: string[] = []
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = (request.rawHeaders[index] as string).toLowerCase()
    if (hopByHop.has(name) || name === 'host' || dropped?.has(name)) continue
    headers.push(name, request.rawHeaders[index + 1] as string)
  }
  const options: Dispatcher.DispatchOptions = {
    path: request.url ?? '/',
    method: request.method as Dispatcher.HttpMethod,
    headers,
    body: hasBody ? request : null,
  }
  pool.dispatch(options, answerTo(response))
}

const answerTo = (response: ServerResponse): Dispatcher.DispatchHandler => ({
  onRequestStart: (controller) => {
    response.once('close', () => {
      if (!response.writableFinished) controller.abort(new Error('the client went away'))
    })
  },
  onResponseStart: (_controller, status, headers) => {
    const dropped = listedIn(headers.connection)
    for (const name in headers) {
      const value = headers[name]
      if (value !== undefined && !hopByHop.has(name) && !dropped?.has(name)) response.setHeader(name, value)
    }
    response.writeHead(status)
  },
  onResponseData: (controller, chunk) => {
    if (response.write(chunk)) return
    controller.pause()
    response.once('drain', () => controller.resume())
  },
  onResponseEnd: () => void response.end(),
  onResponseError: () => {
    if (response.headersSent) response.destroy()
    else response.writeHead(502).end()
  },
})

/** The headers a `Connection` header names, or undefined for the usual plain `keep-alive`. */
const listedIn = (connection: string | string[] | undefined): Set<string> | undefined => {
  if (connection === undefined || connection === 'keep-alive') return undefined
  return new Set(
    String(connection)
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  )
}
