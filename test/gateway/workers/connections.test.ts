import { once as onceOf } from 'node:events'
import { readdirSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { isRunning } from '../../support/process.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'
import { openWebSocket, startWebSocketApi } from '../../support/websocket-api.ts'

/** How connections come from the public port to workers. */

const start = async (more: object = {}) => {
  const upstream = await startWebSocketApi((incoming, response) =>
    response.end(JSON.stringify({ client: incoming.headers['x-forwarded-for'] ?? null })),
  )
  onTestFinished(() => upstream.close())
  const gateway = await startGatewayWorkers({
    allowInsecure: ['public-by-default'],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'a', path: '/**', auth: 'none', upstream: 'api', websocket: true }],
    ...more,
  })
  onTestFinished(() => gateway.close())
  return gateway
}

/** A request on a connection of its own. */
const once = (url: string, options: object = {}) =>
  new Promise<{ outcome: string; text: string }>((resolve) => {
    const outgoing = request(`${url}/x`, { agent: false, timeout: 8_000, ...options }, (response: IncomingMessage) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ outcome: String(response.statusCode), text }))
      response.on('error', () => resolve({ outcome: 'broken', text }))
    })
    outgoing.on('timeout', () => {
      resolve({ outcome: 'hangs', text: '' })
      outgoing.destroy()
    })
    outgoing.on('error', () => resolve({ outcome: 'broken', text: '' }))
    outgoing.end()
  })

test('no new connection hangs while workers are killed again and again', async () => {
  const { url, workers } = await start()
  const outcomes: string[] = []
  let stopped = false
  const clients = Array.from({ length: 8 }, async () => {
    while (!stopped) outcomes.push((await once(url)).outcome)
  })
  // The oldest, as one that dies again and again is replaced later each time.
  let running = workers()
  for (let kills = 0; kills < 4; kills++) {
    const before = outcomes.length
    const [oldest = 0, ...others] = running
    process.kill(oldest, 'SIGKILL')
    await until(() => {
      const fresh = workers().filter((pid) => !running.includes(pid))
      expect(fresh).toHaveLength(1)
      running = [...others, ...fresh]
    })
    await until(() => expect(outcomes.length).toBeGreaterThan(before + 50))
  }
  stopped = true
  await Promise.all(clients)
  expect(outcomes.filter((outcome) => outcome === 'hangs')).toEqual([])
  expect(new Set(outcomes.filter((outcome) => outcome !== '200' && outcome !== 'broken'))).toEqual(new Set())
  // Of each client no more than the request that the worker had.
  expect(outcomes.filter((outcome) => outcome === 'broken').length).toBeLessThanOrEqual(4 * 8)
})

test('a worker that stands still delays no other connection, and when it dies others get those that were for it', async () => {
  const { url, workers } = await start()
  const [pid = 0] = workers()
  process.kill(pid, 'SIGSTOP')
  let answered = 0
  const asked = Array.from({ length: 40 }, async () => {
    const { outcome } = await once(url)
    if (outcome === '200') answered++
    return outcome
  })
  // All but the few that are on their way to it.
  await until(() => expect(answered).toBe(36))
  process.kill(pid, 'SIGKILL')
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['200']))
})

test.each([0, 1])(
  'a connection that comes while the death of a worker is half known waits for nobody (%i)',
  async (one) => {
    const { url, workers, child } = await start()
    const open = async () => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => {})
      await onceOf(socket, 'connect')
      return socket
    }
    const ask = (socket: Socket) => socket.write('GET /x HTTP/1.1\r\nhost: x\r\n\r\n')
    const answered = async (socket: Socket) => {
      const [answer] = await onceOf(socket, 'data', { signal: AbortSignal.timeout(10_000) })
      expect(String(answer)).toMatch(/^HTTP\/1.1 200 /)
    }
    // Whoever has the first has the third, too; the second waits where the other one is stopped.
    const first = await open()
    ask(first)
    await answered(first)
    const pid = workers()[one]!
    process.kill(pid, 'SIGSTOP')
    const [second, third] = [await open(), await open()]
    const both = [second, third].map((socket) => {
      ask(socket)
      return answered(socket)
    })
    await Promise.race(both)

    // What comes now lies in the kernel, behind the end of the channel and before the end of the process.
    child.signal('SIGSTOP')
    process.kill(pid, 'SIGKILL')
    // Its channel ends with the last of its threads.
    await until(() => expect([isRunning(pid), readdirSync(`/proc/${pid}/task`).length]).toEqual([false, 1]))
    const late = await open()
    child.signal('SIGCONT')
    ask(late)
    await Promise.all([...both, answered(late)])
  },
)

test('the primary process keeps nothing of the connections that it has handed out', async () => {
  const { url, child } = await start()
  const { port } = new URL(url)
  const descriptors = () => readdirSync(`/proc/${child.pid}/fd`).length
  expect((await once(url)).outcome).toBe('200')
  const before = descriptors()
  for (let round = 0; round < 50; round++) {
    const resets = Array.from(
      { length: 50 },
      () =>
        new Promise<void>((resolve) => {
          const socket = connect(Number(port), '127.0.0.1', () => socket.resetAndDestroy())
          socket.on('error', () => {})
          socket.on('close', () => resolve())
        }),
    )
    const answers = Array.from({ length: 50 }, () => once(url))
    expect(new Set((await Promise.all(answers)).map(({ outcome }) => outcome))).toEqual(new Set(['200']))
    await Promise.all(resets)
  }
  await until(() => expect(descriptors()).toBeLessThanOrEqual(before))
}, 60_000)

test('clients that have gone keep no place from those that come after them', async () => {
  const { url, workers } = await start()
  const { port } = new URL(url)
  for (const pid of workers()) process.kill(pid, 'SIGSTOP')
  const open = () =>
    new Promise<ReturnType<typeof connect>>((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () => resolve(socket))
      socket.on('error', reject)
    })
  // More than may wait.
  for (let round = 0; round < 12; round++)
    for (const socket of await Promise.all(Array.from({ length: 100 }, open))) socket.resetAndDestroy()
  const answers = Array.from({ length: 20 }, () => once(url))
  for (const pid of workers()) process.kill(pid, 'SIGCONT')
  expect(new Set((await Promise.all(answers)).map(({ outcome }) => outcome))).toEqual(new Set(['200']))
})

test('connections are spread over all workers', async () => {
  const { url, child } = await start()
  const workers: number[] = []
  for (let at = 0; at < 10; at++) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`GET /kept-${at} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    // One after the other: of several at once a worker that is slow gets fewer, as only so many may be on their way.
    const [, worker] = await child.waitFor(new RegExp(`"worker":(\\d+)[^\\n]*"asked /kept-${at}"`))
    workers.push(Number(worker))
  }
  expect(workers.sort()).toEqual([1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
})

test('a worker sees the address of the client', async () => {
  const { url } = await start()
  const { outcome, text } = await once(url, { localAddress: '127.0.0.9' })
  expect({ outcome, ...JSON.parse(text) }).toEqual({ outcome: '200', client: '127.0.0.9' })
})

test('what a server does for its connections is done: slow heads are refused, WebSockets opened', async () => {
  const { url } = await start({ limits: { headersTimeout: '300ms' } })
  const { port } = new URL(url)
  const talk = (act: (socket: ReturnType<typeof connect>) => void) =>
    new Promise<string>((resolve) => {
      let text = ''
      const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true }, () => act(socket))
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('end', () => socket.end())
      socket.on('close', () => resolve(text))
    })
  expect(await talk((socket) => socket.write('GET /x HTTP/1.1\r\n'))).toMatch(/^HTTP\/1.1 408 /)
  const webSocket = await openWebSocket(`${url}/x`)
  webSocket.socket.close()
})

test('TLS and HTTP/2 are spoken by the workers', async () => {
  const files = createTlsFiles()
  onTestFinished(() => files.remove())
  const { url, child } = await start({ listen: { port: 0, tls: { certificates: [files.pair('localhost')] } } })
  expect(url).toMatch(/^https:/)
  const outcomes = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const session = await openHttp2(url, { ca: files.authority.certificate })
      const { status } = await session.send({ ':path': '/x' })
      session.close()
      return status
    }),
  )
  expect(outcomes).toEqual([200, 200, 200, 200, 200, 200])
  await child.waitFor(/"worker":1[^\n]*"asked \/x"/)
  await child.waitFor(/"worker":2[^\n]*"asked \/x"/)
})
