import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'

/** An API that speaks WebSocket, through `ws`: it echoes, and notes who came and how they left. */
export interface WebSocketApi {
  readonly url: string
  readonly port: number
  /** Handshakes that arrived here. */
  readonly handshakes: IncomingMessage[]
  readonly sockets: WebSocket[]
  /** `code reason` of each WebSocket that ended. */
  readonly closed: string[]
  /** TCP connections that are open now. */
  readonly connections: ReadonlySet<Socket>
  /** Takes the place of the WebSocket server for the next handshakes. */
  onUpgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined
  /** Header lines that its answers to handshakes have as well. */
  answerLines: string[]
  close(): Promise<void>
}

export const startWebSocketApi = async (plain?: RequestListener): Promise<WebSocketApi> => {
  const handshakes: IncomingMessage[] = []
  const sockets: WebSocket[] = []
  const closed: string[] = []
  const connections = new Set<Socket>()
  const server = createServer(plain ?? ((_request, response) => response.end('plain')))
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0]! })
  const self: WebSocketApi = {
    url: '',
    port: 0,
    handshakes,
    sockets,
    closed,
    connections,
    onUpgrade: undefined,
    answerLines: [],
    async close() {
      for (const socket of connections) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  webSockets.on('headers', (lines) => void lines.push(...self.answerLines))
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => connections.delete(socket))
  })
  server.on('upgrade', (request, socket, head) => {
    handshakes.push(request)
    if (self.onUpgrade) {
      // Nobody else reads it, and an end is only seen by who reads.
      socket.resume().on('end', () => socket.destroy())
      return self.onUpgrade(request, socket, head)
    }
    webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      sockets.push(webSocket)
      webSocket.on('error', () => {})
      webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary }))
      webSocket.on('close', (code, reason) => closed.push(`${code} ${reason}`))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(self, { url: `http://127.0.0.1:${port}`, port })
}

/** A client of `ws`, and what becomes of it. */
export interface TestWebSocket {
  socket: WebSocket
  received: string[]
  /** The 101. */
  answer: IncomingMessage
  /** `code reason` when it has ended. */
  ended: Promise<string>
}

/** Resolves when it is open; rejects with an error that has `status` and `body` when the answer is another one. */
export const openWebSocket = (
  url: string,
  { headers = {}, protocols = [] }: { headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<TestWebSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, { headers })
    const received: string[] = []
    socket.on('message', (data) => received.push(String(data)))
    const ended = new Promise<string>((end) => socket.on('close', (code, reason) => end(`${code} ${reason}`)))
    socket.on('upgrade', (answer) => socket.on('open', () => resolve({ socket, received, answer, ended })))
    socket.on('unexpected-response', async (_request, answer) => {
      let body = ''
      for await (const chunk of answer) body += chunk
      socket.terminate()
      reject(Object.assign(new Error(`answered ${answer.statusCode}`), { status: answer.statusCode, body, answer }))
    })
    socket.on('error', reject)
  })

/** How the gateway answered instead of opening a WebSocket. */
export const refusalOf = async (
  opening: Promise<unknown>,
): Promise<{ status: number; body: string; answer: IncomingMessage }> => {
  try {
    await opening
  } catch (error) {
    if ('status' in (error as object)) return error as never
    throw error
  }
  throw new Error('the WebSocket was opened')
}
