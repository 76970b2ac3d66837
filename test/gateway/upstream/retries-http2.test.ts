import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startRawTarget, wellAnswer } from '../../support/raw-targets.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const files = createTlsFiles()
const cleanup: (() => Promise<unknown> | unknown)[] = [() => files.remove()]
afterAll(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

let gateway: TestGateway
let resetting: Awaited<ReturnType<typeof startRawTarget>>
let good: typeof resetting
let send: Awaited<ReturnType<typeof openHttp2>>['send']
let session: Awaited<ReturnType<typeof openHttp2>>['session']

beforeAll(async () => {
  resetting = await startRawTarget((socket) => void socket.resetAndDestroy())
  good = await startRawTarget((socket) => void socket.write(wellAnswer))
  cleanup.push(resetting.close, good.close)
  gateway = await startTestGateway({
    config: () => ({
      listen: { port: 0, tls: { certificates: [files.pair('localhost')] }, http2: true },
      upstreams: {
        api: {
          targets: [{ url: resetting.url }, { url: good.url }],
          balance: 'round-robin',
          retries: {},
          slowStart: '0s',
        },
      },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())
  const client = await openHttp2(`https://127.0.0.1:${gateway.port}`, { ca: files.authority.certificate })
  cleanup.push(() => client.session.destroy())
  ;({ send, session } = client)
})

test('requests over HTTP/2 that share a connection are repeated each by itself', async () => {
  const sent = Array.from({ length: 10 }, () => send({ ':path': '/' }))
  const answers = await Promise.all(sent)
  expect(answers.map(({ status, body }) => [status, body])).toEqual(Array.from({ length: 10 }, () => [200, 'well']))
  expect(good.heads).toHaveLength(10)
  expect(resetting.heads.length).toBeGreaterThan(0)
})

test('a POST over HTTP/2 that was sent is not', async () => {
  const before = good.heads.length + resetting.heads.length
  const answers = await Promise.all([0, 1].map(() => send({ ':path': '/', ':method': 'POST' }, 'order')))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 502])
  expect(good.heads.length + resetting.heads.length).toBe(before + 2)
})

test('streams that are cancelled at once leave no slot and no failure behind', async () => {
  const figures = async (line: RegExp) =>
    [...(await gateway.metrics.render()).text.matchAll(line)].map(([, value]) => Number(value))
  const failures = () => figures(/target_requests_total\{.*outcome="failed"\} (\d+)/g)
  const before = await failures()
  for (let count = 0; count < 50; count++) session.request({ ':authority': 'localhost', ':path': '/held' }).close(8)
  await until(async () => expect((await send({ ':path': '/' })).status).toBe(200))
  await until(async () => {
    expect(await figures(/upstream_running\{.*\} (\d+)/g)).toEqual([0])
    expect(await figures(/target_running\{.*\} (\d+)/g)).toEqual([0, 0])
  })
  expect((await failures())[1]).toBe(before[1])
})
