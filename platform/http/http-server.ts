import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { StartupError } from '../startup-error.ts'

export interface RunningServer {
  server: Server
  host: string
  port: number
  url: string
  /** Stops accepting, lets running requests finish for `graceMs` (default 10 000), then closes what is left. */
  close(graceMs?: number): Promise<void>
}

export interface ListenOptions {
  /** For people: "the issuer", "the gateway". */
  name: string
  handler: RequestListener
  host: string
  /** 0 picks a free port. */
  port: number
  /** The setting that moves it elsewhere, named in the error when the port is taken. */
  setting: string
  server?: ServerOptions
  /** Default: in the clear. */
  tls?: TlsOptions | undefined
}

const urlHost = (host: string) => (host.includes(':') ? `[${host}]` : host)

const startupProblem = (error: NodeJS.ErrnoException, { name, host, port, setting }: ListenOptions) => {
  const address = `${urlHost(host)}:${port}`
  const message =
    error.code === 'EADDRINUSE'
      ? `Port ${port} is in use: ${name} cannot listen on ${address}.`
      : error.code === 'EACCES'
        ? `This user may not listen on port ${port}.`
        : `${name} cannot listen on ${address} (${error.code}).`
  return new StartupError(message, { hint: `Stop what uses it, or set ${setting} to another value.`, cause: error })
}

const hostFields = ({ rawHeaders }: IncomingMessage): number => {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}

/** RFC 9112 §3.2: of several Host fields Node would take the first, and others on the way perhaps another one. */
const withOneHost =
  (handler: RequestListener): RequestListener =>
  (request, response) => {
    if (hostFields(request) < 2) return handler(request, response)
    const fields = { 'content-type': 'text/plain', connection: 'close' }
    response.writeHead(400, fields).end('The request has more than one Host field.\n')
  }

/**
 * Resolves when the server accepts connections. Requests with no Host field or several are refused, unless
 * `requireHostHeader` is false: then the handler sees to that. Throws `StartupError` when the port is taken or not
 * allowed.
 */
export const listen = async (options: ListenOptions): Promise<RunningServer> => {
  const { server: settings = {}, handler, tls } = options
  const checked = settings.requireHostHeader === false ? handler : withOneHost(handler)
  // Servers of HTTP and of HTTPS differ in their connections only.
  const server = tls
    ? (createTlsServer({ ...settings, ...tls }, checked) as unknown as Server)
    : createServer(settings, checked)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(startupProblem(error, options)))
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    server,
    host: options.host,
    port,
    url: `${tls ? 'https' : 'http'}://${urlHost(options.host)}:${port}`,
    close: (graceMs = 10_000) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => server.closeAllConnections(), graceMs)
        // A keep-alive connection becomes idle when its running request ends, which `close` alone does not notice.
        const sweep = setInterval(() => server.closeIdleConnections(), 20)
        server.close(() => {
          clearTimeout(timer)
          clearInterval(sweep)
          resolve()
        })
      }),
  }
}
