import { Socket } from 'node:net'
import { createPortlessServer, type ListenOptions, type PortlessServer } from '../../platform/http/http-server.ts'

/** From the primary process, with the handle of a connection. */
export interface Handed {
  connection: number
  /** Which listener has accepted it. Default: the public one. */
  listener?: 'extAuthz'
}

/** To the primary process: a connection has arrived. */
export interface Taken {
  taken: number
}

/** To the primary process: how many are open. */
export interface OpenConnections {
  open: number
}

/** The worker's side of `hand-out.ts`: the connections that it is handed are those of its server. */
export interface TakenConnections {
  /** The server for them; before there is one, nothing is handed over. */
  serve(options: ListenOptions): PortlessServer
  /** The same of ext_authz. */
  serveExtAuthz(server: ConnectionServer): void
  take(message: Handed, handle: object): void
}

export type ConnectionServer = Pick<PortlessServer, 'serve' | 'connections'>

/** How late the primary process may learn that connections have ended, in ms. */
const tellAfterMs = 20

export const createTakenConnections = (options: {
  /** `written` is called once the primary process will get it, even if this process ends. */
  send: (message: Taken | OpenConnections, written: () => void) => void
}): TakenConnections => {
  const { send } = options
  let server: PortlessServer | undefined
  let extAuthz: ConnectionServer | undefined
  let telling: NodeJS.Timeout | undefined

  const tell = () => {
    telling = undefined
    send({ open: (server?.connections ?? 0) + (extAuthz?.connections ?? 0) }, () => {})
  }
  const tellSoon = () => {
    if (!telling) telling = setTimeout(tell, tellAfterMs).unref()
  }

  return {
    serve(listener) {
      const created = createPortlessServer(listener)
      server = created
      return created
    },
    serveExtAuthz(created) {
      extAuthz = created
    },
    take({ connection, listener }, handle) {
      // Nothing may be read of it before: it would be missing if this process ended and another worker got it.
      send({ taken: connection }, () => {
        const taker = listener === 'extAuthz' ? extAuthz : server
        const socket = new Socket({ handle, allowHalfOpen: taker === server && isHalfOpen(server) } as object)
        socket.once('close', tellSoon)
        if (taker) taker.serve(socket)
        else socket.destroy()
      })
    },
  }
}

/**
 * As sockets are that a server accepts itself: HTTP/1.1 answers clients that have ended their side, but a session of
 * HTTP/2 that its client has left would never end.
 */
const isHalfOpen = (server: PortlessServer | undefined): boolean =>
  (server?.server as { allowHalfOpen?: boolean } | undefined)?.allowHalfOpen === true
