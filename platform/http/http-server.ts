import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'
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

interface Address {
  /** For people: "the issuer", "the gateway". */
  name: string
  host: string
  /** 0 picks a free port. */
  port: number
  /** The setting that moves it elsewhere, named in the error when the port is taken. */
  setting: string
}

export interface ListenOptions extends Address {
  handler: RequestListener
  server?: ServerOptions
  /** Default: in the clear. */
  tls?: TlsOptions | undefined
}

const urlHost = (host: string) => (host.includes(':') ? `[${host}]` : host)

const startupProblem = (error: NodeJS.ErrnoException, { name, host, port, setting }: Address) => {
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

const createHttpServer = ({ server: settings = {}, handler, tls }: ListenOptions): Server => {
  const checked = settings.requireHostHeader === false ? handler : withOneHost(handler)
  // Servers of HTTP and of HTTPS differ in their connections only.
  return tls
    ? (createTlsServer({ ...settings, ...tls }, checked) as unknown as Server)
    : createServer(settings, checked)
}

/** Takes the port. Throws `StartupError` when it is taken or not allowed. */
export const openPort = async (
  server: NetServer,
  options: Address & { tls?: object | undefined },
): Promise<Pick<RunningServer, 'host' | 'port' | 'url'>> => {
  const { host, tls } = options
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(startupProblem(error, options)))
    server.listen(options.port, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return { host, port, url: `${tls ? 'https' : 'http'}://${urlHost(host)}:${port}` }
}

/** `stop` calls back when all connections have ended. */
const closeAfter = (server: Server, graceMs: number, stop: (done: () => void) => void): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), graceMs)
    // A keep-alive connection becomes idle when its running request ends, which `close` alone does not notice.
    const sweep = setInterval(() => server.closeIdleConnections(), 20)
    stop(() => {
      clearTimeout(timer)
      clearInterval(sweep)
      resolve()
    })
  })

/**
 * Resolves when the server accepts connections. Requests with no Host field or several are refused, unless
 * `requireHostHeader` is false: then the handler sees to that. Throws `StartupError` when the port is taken or not
 * allowed.
 */
export const listen = async (options: ListenOptions): Promise<RunningServer> => {
  const server = createHttpServer(options)
  const address = await openPort(server, options)
  return {
    server,
    ...address,
    close: (graceMs = 10_000) => closeAfter(server, graceMs, (done) => server.close(done)),
  }
}

export interface PortlessServer extends Pick<RunningServer, 'server' | 'close'> {
  /** Serves a connection that nobody has read from. */
  serve(socket: Socket): void
  /** Connections that are open. */
  readonly connections: number
}

/** The same server without its port, for connections that another process has accepted. */
export const createPortlessServer = (options: ListenOptions): PortlessServer => {
  const server = createHttpServer(options)
  const open = new Set<Socket>()
  let whenEmpty = () => {}
  // Node begins to watch over the timeouts of connections when its server listens.
  server.emit('listening')
  return {
    server,
    get connections() {
      return open.size
    },
    serve(socket) {
      open.add(socket)
      socket.once('close', () => {
        open.delete(socket)
        if (open.size === 0) whenEmpty()
      })
      if (options.server?.noDelay) socket.setNoDelay(true)
      server.emit('connection', socket)
    },
    close: (graceMs = 10_000) =>
      closeAfter(server, graceMs, (done) => {
        server.close()
        whenEmpty = done
        if (open.size === 0) done()
      }),
  }
}
