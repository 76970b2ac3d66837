import { constants } from 'node:http2'
import { afterAll, afterEach, expect, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

/** What a client of HTTP/2 notices of a gateway that stops. */

const files = createTlsFiles()
const ca = files.authority.certificate
const pair = files.pair('localhost')
const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})
afterAll(() => files.remove())

type Client = Awaited<ReturnType<typeof openHttp2>>

/**
 * A client as browsers are: it leaves a connection that says GOAWAY, and sends again what that says was not looked at.
 */
const persistentClient = (url: string) => {
  let connection: Promise<Client> | undefined
  const open = (): Promise<Client> => {
    const opened = openHttp2(url, { ca })
    connection = opened
    const leave = () => {
      if (connection === opened) connection = undefined
    }
    void opened.then(({ session }) => session.once('goaway', leave).once('close', leave), leave)
    return opened
  }
  return {
    async send(path: string): Promise<number> {
      for (;;) {
        const client = await (connection ?? open())
        const result = await attempt(client, path)
        if (result.status !== undefined) return result.status
        if (result.reset !== constants.NGHTTP2_REFUSED_STREAM) throw new Error(`lost: ${result.reset}`)
      }
    },
    close: async () => (await connection)?.close(),
  }
}

const attempt = ({ session }: Client, path: string): Promise<{ status?: number; reset?: number }> =>
  new Promise((resolve) => {
    if (session.closed || session.destroyed) return resolve({ reset: constants.NGHTTP2_REFUSED_STREAM })
    const stream = session.request({ ':authority': 'localhost', ':path': path, ':method': 'POST' })
    let status: number | undefined
    stream.on('response', (head) => {
      status = head[':status']
    })
    stream.on('error', () => {})
    stream.on('close', () => resolve(status === undefined ? { reset: stream.rstCode } : { status }))
    stream.resume().end('body')
  })

test('under load no request is lost and none is sent twice, from the first notice to the last answer', async () => {
  const seen: string[] = []
  const gateway = await startTestGateway({
    upstream: (request, response) => {
      seen.push(request.url!)
      request.resume().on('end', () => response.end('ok'))
    },
    config: ({ upstream }) => ({
      listen: { port: 0, tls: { certificates: [pair] } },
      drain: { delay: '1s' },
      upstreams: { api: { url: upstream.url } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())
  const client = persistentClient(gateway.url)
  cleanup.push(() => client.close())
  const answered: string[] = []
  let running = true
  const load = async (name: number) => {
    for (let count = 0; running; count++) {
      const path = `/${name}/${count}`
      expect(await client.send(path)).toBe(200)
      answered.push(path)
    }
  }
  const loads = Promise.all(Array.from({ length: 20 }, (_, name) => load(name)))
  await until(() => expect(answered.length).toBeGreaterThan(200))
  const closing = gateway.close()
  const before = answered.length
  // Long past the notice, and before `drain.delay` is over.
  await until(() => expect(answered.length).toBeGreaterThan(before + 100))
  running = false
  await loads
  await closing
  expect(new Set(answered).size).toBe(answered.length)
  expect(seen.toSorted()).toEqual(answered.toSorted())
}, 20_000)
