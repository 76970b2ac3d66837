import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'

const start = async (options: Parameters<typeof startTestGateway>[0] = {}) => {
  const gateway = await startTestGateway({
    ...options,
    config: (parts) => ({ inspection: { port: 0, audience: inspectionAudience }, ...options.config?.(parts) }),
  })
  onTestFinished(() => gateway.close())
  return { gateway, client: inspectionClient(() => gateway.inspectionUrl!, gateway.issuer) }
}

test('decisions come as they are made, by the same filters', async () => {
  const { gateway, client } = await start()
  const all = await client.stream()
  const denied = await client.stream('/decisions/stream?verdict=denied')
  expect(all.answer.headers.get('content-type')).toBe('text/event-stream')
  expect(all.answer.headers.get('cache-control')).toBe('no-store')
  await gateway.call('/orders/1')
  await gateway.call('/orders/2', { scope: '' })
  await expect
    .poll(() => all.events.map(({ event, data }) => [event, data['verdict']]))
    .toEqual([
      ['decision', 'allowed'],
      ['decision', 'denied'],
    ])
  await expect.poll(() => denied.events.length).toBe(1)
  all.close()
  denied.close()
})

test('a stream ends when its token expires', async () => {
  const { client } = await start()
  const stream = await client.stream('/decisions/stream', { exp: Math.floor(Date.now() / 1000) + 2 })
  await stream.ended
  expect(stream.events).toEqual([{ event: 'end', data: { because: 'expired' } }])
})

test('a stream ends at once when its session is revoked, and the token opens no other', async () => {
  const entries: object[] = []
  let wake = () => {}
  const feed = createServer(async (incoming, response) => {
    const since = Number(new URL(incoming.url!, 'http://feed').searchParams.get('since') ?? 0)
    if (since === entries.length && incoming.url!.includes('since'))
      await new Promise<void>((resolve) => (wake = resolve))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ entries: entries.slice(since), cursor: entries.length, more: false }))
  })
  await new Promise<void>((resolve) => feed.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void feed.close().closeAllConnections())
  const { gateway, client } = await start({
    config: ({ issuer }) => ({
      issuers: [
        {
          issuer: issuer.issuer,
          client: { id: 'gateway', secret: 'secret' },
          revocations: { mode: 'feed', url: `http://127.0.0.1:${(feed.address() as AddressInfo).port}/revocations` },
        },
      ],
    }),
  })
  await expect.poll(async () => (await gateway.health.ready()).ok).toBe(true)
  const claims = { sid: 'ps_1' }
  const [ended, other] = [await client.stream('/decisions/stream', claims), await client.stream()]
  expect([ended.answer.status, other.answer.status]).toEqual([200, 200])
  entries.push({ kind: 'sid', value: 'ps_1', issuedBefore: null, expiresAt: Math.floor(Date.now() / 1000) + 600 })
  wake()
  await ended.ended
  expect(ended.events).toEqual([{ event: 'end', data: { because: 'revoked' } }])
  expect((await client.call('/decisions', { claims })).status).toBe(401)
  await gateway.call('/orders/1')
  await expect.poll(() => other.events.length).toBe(1)
  other.close()
})

test('a slow reader loses events, is told how many, and costs no more memory', async () => {
  const { gateway, client } = await start({ config: () => ({ limits: { targetLength: 16_384 } }) })
  const { hostname, port } = new URL(gateway.inspectionUrl!)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const token = await client.token()
  socket.write(`GET /decisions/stream HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  let received = ''
  await new Promise<void>((resolve) =>
    socket.once('data', (chunk) => {
      received += chunk
      socket.pause()
      resolve()
    }),
  )
  // More than the buffers of the connection and what may wait: some 20 MB.
  const long = 'x'.repeat(15_000)
  const total = 500
  for (let sent = 0; sent < total; sent += 50) {
    await Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(`${gateway.url}/public/${long}`)).arrayBuffer()),
    )
  }
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.resume()
  const lost = () => [...received.matchAll(/event: lost\ndata: \{"lost":(\d+)\}/g)].map(([, count]) => Number(count))
  const told = () => received.split('event: decision\n').length - 1
  await expect.poll(() => told() + lost().reduce((sum, count) => sum + count, 0)).toBe(total)
  expect(lost()[0]).toBeGreaterThan(0)
})

test('there are no more streams than the bound, and one that ends makes room', async () => {
  const { client } = await start()
  const streams = await Promise.all(Array.from({ length: 16 }, () => client.stream()))
  expect((await client.call('/decisions/stream')).status).toBe(503)
  streams[0]!.close()
  await expect
    .poll(async () => {
      const abort = new AbortController()
      const { status } = await client.call('/decisions/stream', { signal: abort.signal })
      abort.abort()
      return status
    })
    .toBe(200)
  for (const stream of streams) stream.close()
})

test('streams and what is kept go on over a reload; another audience ends them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'inspection-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { gateway, client } = await start({ file: join(folder, 'gateway.yaml') })
  const stream = await client.stream()
  await gateway.call('/orders/1')
  await expect.poll(() => stream.events.length).toBe(1)
  const before = await client.get('configuration')
  await gateway.write({ accessLog: { to: join(folder, 'access.log') } })
  await gateway.reload()
  await gateway.call('/orders/2')
  await expect.poll(() => stream.events.length).toBe(2)
  expect((await client.get('decisions')).decisions).toHaveLength(2)
  const after = await client.get('configuration')
  expect(after.revision).not.toBe(before.revision)
  expect(after.configuration['accessLog']).toMatchObject({ to: join(folder, 'access.log') })

  await gateway.write({ inspection: { port: 0, audience: 'https://gateway.test/other' } })
  await gateway.reload()
  await stream.ended
  expect(stream.events.at(-1)).toEqual({ event: 'end', data: { because: 'refused' } })
  expect((await client.call('/routes')).status).toBe(401)
  expect((await client.call('/routes', { claims: { aud: 'https://gateway.test/other' } })).status).toBe(200)
})

test('when the gateway stops, streams are told and end', async () => {
  const gateway = await startTestGateway({ config: () => ({ inspection: { port: 0, audience: inspectionAudience } }) })
  const client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
  const stream = await client.stream()
  await gateway.close()
  await stream.ended
  expect(stream.events).toEqual([{ event: 'end', data: { because: 'closing' } }])
})

test('a reader who comes back with since misses nothing and is told what is no longer kept', async () => {
  const { gateway, client } = await start({
    config: () => ({ inspection: { port: 0, audience: inspectionAudience, keep: '1MB' } }),
  })
  const before = new Date().toISOString()
  const id = async (path: string) => {
    const answer = await gateway.call(path)
    await answer.text()
    return answer.headers.get('x-request-id')!
  }
  const kept = [await id('/orders/1'), await id('/orders/2')]
  await expect.poll(async () => (await client.get('decisions')).decisions).toHaveLength(2)
  const stream = await client.stream(`/decisions/stream?since=${before}`)
  const ids = () => stream.events.map(({ data }) => data['decision_id'])
  kept.push(await id('/orders/3'))
  await expect.poll(ids).toEqual(kept)
  stream.close()

  const after = await client.stream(`/decisions/stream?since=${new Date(Date.now() + 60_000).toISOString()}`)
  kept.push(await id('/orders/4'))
  await expect.poll(() => after.events.map(({ data }) => data['decision_id'])).toEqual(kept.slice(-1))
  after.close()
  expect((await client.call('/decisions/stream?since=yesterday')).status).toBe(400)

  // More than is kept: the oldest are gone.
  const long = 'x'.repeat(6_000)
  for (let sent = 0; sent < 120; sent += 20)
    await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`${gateway.url}/public/${long}`)).text()))
  const late = await client.stream(`/decisions/stream?since=${before}`)
  await expect.poll(() => late.events.length).toBeGreaterThan(20)
  expect(late.events[0]).toEqual({ event: 'lost', data: { lost: expect.any(Number) } })
  expect(late.events.slice(1).every(({ event }) => event === 'decision')).toBe(true)
  late.close()
})

test('what was kept is handed to a slow reader as it reads, and nothing of it is lost', async () => {
  const { gateway, client } = await start()
  const since = new Date().toISOString()
  const long = 'x'.repeat(6_000)
  const total = 300
  for (let sent = 0; sent < total; sent += 50)
    await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${gateway.url}/public/${long}`)).text()))
  const { hostname, port } = new URL(gateway.inspectionUrl!)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  const head = `Host: gateway\r\nAuthorization: Bearer ${await client.token()}\r\n\r\n`
  socket.write(`GET /decisions/stream?since=${since} HTTP/1.1\r\n${head}`)
  let received = ''
  await new Promise<void>((resolve) =>
    socket.once('data', (chunk) => {
      received += chunk
      resolve(void socket.pause())
    }),
  )
  // It is made while the others wait for the reader.
  await (await fetch(`${gateway.url}/public/last`)).text()
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.resume()
  await expect.poll(() => received.split('event: decision\n').length - 1).toBe(total + 1)
  expect(received).not.toContain('event: lost')
})
