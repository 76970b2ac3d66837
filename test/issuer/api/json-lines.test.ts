import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { sendJsonLines } from '../../../issuer/api/json-lines.ts'
import { settled, until } from '../../support/until.ts'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** A server that answers every request with these lines, and breaks the connection as the Management API does. */
const serve = async (lines: () => AsyncIterable<unknown>) => {
  const server = createServer((_request, response: ServerResponse) => {
    sendJsonLines(response, lines()).catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(503).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return (server.address() as AddressInfo).port
}

test('a failure before the first line is answered, one after it breaks the connection', async () => {
  let first = true
  const port = await serve(async function* () {
    if (!first) yield { id: 1 }
    first = false
    throw new Error('the database is gone')
  })
  expect((await fetch(`http://127.0.0.1:${port}`)).status).toBe(503)
  await expect(fetch(`http://127.0.0.1:${port}`).then((broken) => broken.text())).rejects.toThrow()
})

test('a reader that stops holds the source up, and one that leaves ends it', async () => {
  let produced = 0
  let ended = false
  const port = await serve(async function* () {
    try {
      for (; ; produced++) yield { text: 'x'.repeat(10_000) }
    } finally {
      ended = true
    }
  })
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  socket.on('error', () => {})
  stops.push(async () => void socket.destroy())
  await new Promise((resolve) => socket.once('data', resolve))
  socket.pause()
  // Until the buffers in between are full; the source is endless.
  await settled(() => produced)
  expect(produced).toBeGreaterThan(0)
  expect(ended).toBe(false)
  socket.destroy()
  await until(() => expect(ended).toBe(true))
})
