import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A server that notes every head that arrives, and does as `behave` says once it is there. */
export const startRawTarget = async (behave: (socket: Socket, head: string) => void) => {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    // The other end has gone.
    socket.on('end', () => socket.end())
    let received = ''
    let noted = 0
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const all = received.match(/(?:GET|HEAD|PUT|POST|DELETE) [\s\S]*?\r\n\r\n/g) ?? []
      for (const head of all.slice(noted)) {
        noted++
        heads.push(head)
        behave(socket, head)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heads,
    /** Open connections. */
    sockets,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

export const wellAnswer = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell'
