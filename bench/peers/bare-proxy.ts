import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { listen, runServer } from '../harness/server.ts'

/**
 * The floor: the least a correct HTTP/1.1 proxy on `node:http` and undici can do. It re-frames, removes hop-by-hop headers
 * and streams both ways with back-pressure. It routes, verifies and decides nothing.
 */
runServer(({ upstream }: { upstream: string }) => {
  const pool = new Pool(upstream, { connections: 128, pipelining: 1 })
  const server = createServer((request, response) => forward(pool, request, response))
  return listen(server, () => pool.destroy())
})

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
