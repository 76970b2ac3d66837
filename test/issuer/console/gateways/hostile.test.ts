import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Browser } from '../../../support/browser.ts'
import { type ConsoleWithGateways, startConsoleWithGateways } from '../../../support/console-gateways.ts'
import { startUpstream } from '../../../support/gateway.ts'
import { settled, until } from '../../../support/until.ts'

/** What stands at the address of a gateway and is none, or a bad one. */

let all: ConsoleWithGateways
let owner: Browser

beforeAll(async () => {
  all = await startConsoleWithGateways()
  owner = await all.home.browserOf(await all.home.createMember('owner'))
})
beforeEach(() => {
  all.asked.length = 0
})
afterAll(() => all.close())

/** Something that is asked as the gateway `odd`. */
const stand = async (listener: RequestListener): Promise<{ asked: string[] }> => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  all.asked.push({ name: 'odd', url, audience: all.audience })
  return { asked }
}

const get = (path: string) => all.home.call(owner, 'GET', `/gateways${path}`)
const json = { 'content-type': 'application/json' }

test('a page of it is no answer: it would be one of the console', async () => {
  await stand((_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'surrogate-console=x' })
      .end('<script>1</script>'),
  )
  const answer = await get('/odd/routes')
  expect(answer).toMatchObject({
    status: 502,
    body: {
      code: 'console.gateway_unavailable',
      data: { gateway: 'odd' },
      details: expect.stringMatching(/no inspection listener/),
    },
  })
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect((await get('')).body.gateways).toMatchObject([{ name: 'odd', state: 'refuses' }])
})

test('no redirect is followed, and nothing else is asked than what the settings name', async () => {
  const elsewhere = await startUpstream()
  onTestFinished(() => elsewhere.close())
  await stand((_request, response) => response.writeHead(307, { ...json, location: elsewhere.url }).end('{}'))
  expect((await get('')).body.gateways).toMatchObject([{ state: 'refuses' }])
  expect((await get('/decisions')).body.missing).toMatchObject([{ gateway: 'odd' }])
  await get('/odd/routes')
  expect(elsewhere.seen).toEqual([])
})

test('an answer without end is not kept', async () => {
  const piece = Buffer.alloc(65_536, ' ')
  let sent = 0
  await stand((_request, response) => {
    response.writeHead(200, json)
    const write = () => {
      while (!response.destroyed && response.write(piece)) sent += piece.length
    }
    response.on('drain', write)
    write()
  })
  expect((await get('/decisions')).body.missing).toEqual([{ gateway: 'odd', because: 'Its answer is too large.' }])
  expect((await get('/odd/routes')).status).toBe(502)
  // Of both: what was sent stopped soon after the bound.
  expect(sent).toBeLessThan(64_000_000)
})

test('what is JSON and nothing of a gateway is refused, and cannot pretend to be another gateway', async () => {
  let body: unknown = { decisions: 'many' }
  await stand((_request, response) =>
    response.writeHead(200, json).end(typeof body === 'string' ? body : JSON.stringify(body)),
  )
  const missing = [{ gateway: 'odd', because: 'Its answer is not that of a gateway.' }]
  expect((await get('/decisions')).body).toEqual({ decisions: [], more: false, missing })
  expect((await get('')).body.gateways).toMatchObject([{ state: 'refuses' }])
  body = '[1'
  expect((await get('/decisions')).body.missing).toEqual(missing)
  expect(await get('/decisions/x')).toMatchObject({ status: 404, body: { data: { missing } } })
  body = { decisions: [{ decision_id: 'x', timestamp: 'never', gateway: 'one' }], more: false }
  expect((await get('/decisions')).body.decisions).toMatchObject([{ gateway: 'odd' }])
})

test('one that answers nothing is told as missing, and does not hold up one that answers', async () => {
  await stand(() => {})
  const good = await all.addGateway('good')
  const id = await good.decide()
  // Who asks all of them waits as long as the one is waited for.
  const [listed, found] = [get('/decisions'), get(`/decisions/${id}`)]
  expect(await Promise.race([listed.then(() => 'listed'), found.then(() => 'found')])).toBe('found')
  expect((await found).body).toMatchObject({ gateway: 'good' })
  const { body } = await listed
  expect(body).toMatchObject({
    decisions: [{ decision_id: id }],
    missing: [{ gateway: 'odd', because: 'It does not answer in time.' }],
  })
  expect(await get('/decisions/unknown')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found', data: { missing: [{ gateway: 'odd' }] } },
  })
})

test('one that is away, and one that refuses the token, are told with the reason', async () => {
  const gone = await all.addGateway('gone')
  gone.line.cut(true)
  await all.addGateway('other')
  all.asked[1]!.audience = 'https://gateway.test/other'
  expect((await get('')).body.gateways).toEqual([
    {
      name: 'gone',
      state: 'away',
      because: expect.stringMatching(/^(It cannot be reached: \w+|The connection to it failed)\.$/),
    },
    {
      name: 'other',
      state: 'refuses',
      because: 'It answers 401 invalid_token: it does not take tokens of this issuer for this audience.',
    },
  ])
  const stream = await all.stream(owner)
  await stream.until(({ data }) => data.gateway === 'gone' && data.state === 'away')
  await stream.until(({ data }) => data.gateway === 'other' && data.state === 'refuses')
  stream.close()
  expect((await get('/sessions/x')).body.gateways).toMatchObject([
    { gateway: 'gone', because: expect.any(String) },
    { gateway: 'other', because: expect.stringMatching(/401/) },
  ])
})

test('a stream of it that is none, or has an event without end, is broken off and tried again', async () => {
  const endless = Buffer.alloc(65_536, 'x')
  let kind: 'endless' | 'odd' = 'endless'
  let sent = 0
  const { asked } = await stand((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (kind === 'odd') return void response.write('event: decision\ndata: {"decision_id": 1}\n\n')
    response.write('event: decision\ndata: ')
    const write = () => {
      while (!response.destroyed && response.write(endless)) sent += endless.length
    }
    response.on('drain', write)
    write()
  })
  const stream = await all.stream(owner)
  onTestFinished(() => stream.close())
  await stream.until(({ data }) => data.because === 'An event of its stream is too large.')
  kind = 'odd'
  await stream.until(({ data }) => data.because === 'Its stream is not that of a gateway.')
  expect(asked.length).toBeGreaterThan(1)
  expect(stream.events.every(({ event }) => event === 'gateway')).toBe(true)
  expect(sent / asked.length).toBeLessThan(32_000_000)
})

test('a reader who takes nothing slows the gateway, and no memory fills', async () => {
  let sent = 0
  let ended = false
  const record = `event: decision\ndata: ${JSON.stringify({ decision_id: 'x', timestamp: new Date().toISOString(), text: 'x'.repeat(60_000) })}\n\n`
  let count = 0
  await stand((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const write = () => {
      while (!response.destroyed && sent < 200_000_000) {
        const one = record.replace('"x"', `"${++count}"`)
        sent += one.length
        if (!response.write(one)) return
      }
    }
    response.on('drain', write).on('close', () => {
      ended = true
    })
    write()
  })
  const { hostname, port } = new URL(all.home.issuer.url)
  const socket = connect(Number(port), hostname)
  const cookie = [...owner.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  socket.write(
    `GET /console/gateways/decisions/stream HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nCookie: ${cookie}\r\n\r\n`,
  )
  await new Promise<void>((resolve) => socket.once('data', () => resolve(void socket.pause())))
  await settled(() => sent)
  expect(sent).toBeLessThan(60_000_000)
  socket.destroy()
  await until(() => expect(ended).toBe(true))
})
