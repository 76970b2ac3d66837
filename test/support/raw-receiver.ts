import { type AddressInfo, createServer, type Socket } from 'node:net'

/**
 * A receiver that speaks TCP only: says and does what it is told when a request has arrived. `request` counts those of
 * its connection, from 1; each is taken to be whole when its body has the length that it announced.
 */
export const startRawReceiver = async (answer: (socket: Socket, request: number) => void) => {
  const sockets = new Set<Socket>()
  const seen = { connections: 0, requests: 0 }
  const server = createServer((socket) => {
    seen.connections += 1
    sockets.add(socket)
    let pending = Buffer.alloc(0)
    let request = 0
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk])
      const head = pending.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/content-length: (\d+)/i.exec(pending.toString('latin1', 0, head))?.[1] ?? 0)
      if (pending.length < head + 4 + length) return
      pending = pending.subarray(head + 4 + length)
      request += 1
      seen.requests += 1
      answer(socket, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    seen,
    sockets,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** Sends the text over and over, as fast as the other side takes it, until it has enough or `most` bytes were sent. */
export const pour = (socket: Socket, text: string, most: number): void => {
  const block = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)), 'latin1')
  const next = () => {
    while (!socket.destroyed && socket.bytesWritten < most) if (!socket.write(block)) return
  }
  socket.on('drain', next)
  next()
}
