import { randomUUID } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Agent, fetch as request } from 'undici'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { amountRules, json } from '../../support/body-policies.ts'
import { type DpopClient, newDpopClient } from '../../support/dpop.ts'
import { connectExtAuthz, type ExtAuthzClient } from '../../support/ext-authz.ts'
import { freePort } from '../../support/free-port.ts'
import { orders } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { type IntrospectionEndpoint, startIntrospectionEndpoint } from '../../support/introspection-endpoint.ts'
import { type LogCollector, startLogCollector } from '../../support/log-collector.ts'
import { type OtlpCollector, startOtlpCollector } from '../../support/otlp-collector.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** One gateway of two workers with every setting at once, over TLS: each part beside all the others. */

const rules = `${amountRules}
# METADATA
# entrypoint: true
open := {"allow": true} if print("asked", input.request.path)
`

const files = createTlsFiles()
const ca = files.authority.certificate
let issuer: TokenIssuer
let endpoint: IntrospectionEndpoint
let collector: OtlpCollector
let log: LogCollector
let holder: DpopClient
let upstream: { url: string; streams: Set<ServerResponse>; close(): void }
let gateway: GatewayWorkers
let envoy: ExtAuthzClient
let client: ReturnType<typeof inspectionClient>
let config: () => Record<string, unknown>

/** Answers what it got; `/events` is a stream. */
const startApi = async () => {
  const streams = new Set<ServerResponse>()
  const server = createServer(async (incoming, response) => {
    if (incoming.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n')
      streams.add(response)
      response.on('close', () => streams.delete(response))
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    response.end(JSON.stringify({ url: incoming.url, body: Buffer.concat(chunks).toString() }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    streams,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

beforeAll(async () => {
  ;[issuer, endpoint, collector, log, holder, upstream] = await Promise.all([
    startTokenIssuer(),
    startIntrospectionEndpoint(),
    startOtlpCollector(),
    startLogCollector(),
    newDpopClient(),
    startApi(),
  ])
  const [extAuthzPort, inspectionPort] = [await freePort(), await freePort()]
  const pair = files.pair('localhost')
  const common = { audience: [orders], upstream: 'api', entrypoint: 'app/open' }
  config = () => ({
    allowInsecure: ['http-issuer', 'no-revocations'],
    listen: { port: 0, tls: { certificates: [pair] } },
    policies: { path: './all', entrypoint: 'app/open' },
    trustedProxies: ['127.0.0.1'],
    issuers: [{ issuer: issuer.issuer, introspection: { url: endpoint.url, client: { id: 'g', secret: 'a-secret' } } }],
    upstreams: { api: { url: upstream.url, retries: {} } },
    telemetry: { otlp: collector.url, sample: '100%' },
    accessLog: { to: './access.log' },
    decisionLog: { to: log.url, http: { interval: '10ms' }, sample: { allowed: '100%', denied: '0%' } },
    inspection: { port: inspectionPort, audience: inspectionAudience },
    forwardAuth: { dialect: 'nginx' },
    extAuthz: { port: extAuthzPort },
    routes: [
      { ...common, id: 'free', path: '/free/**' },
      { ...common, id: 'bound', path: '/bound/**', dpop: 'required' },
      { ...common, id: 'paid', path: '/paid/**', entrypoint: 'app/decision', policyBody: { type: 'json' } },
      { ...common, id: 'events', path: '/events', audience: undefined, auth: 'none' },
    ],
  })
  gateway = await startGatewayWorkers({
    allowInsecure: ['public-by-default'],
    listen: { port: 0, tls: { certificates: [pair] } },
    ...{ inspection: config()['inspection'], extAuthz: config()['extAuthz'] },
    issuers: [{ issuer: issuer.issuer }],
    trustedProxies: ['127.0.0.1'],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'old', path: '/old', auth: 'none', upstream: 'api' }],
  })
  await mkdir(join(gateway.folder, 'all'))
  await gateway.writeFile('all/rules.rego', rules)
  client = inspectionClient(() => `http://127.0.0.1:${inspectionPort}`, issuer)
  envoy = connectExtAuthz(extAuthzPort)
  await gateway.write(config())
  await until(async () => expect((await ask('/free/started', await bearer())).status).toBe(200))
})
afterAll(async () => {
  envoy?.close()
  await gateway?.close()
  upstream?.close()
  await Promise.all([issuer, endpoint, collector, log].map((part) => part?.close()))
  files.remove()
})

const bearer = async (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${await issuer.sign(claims)}`,
})

const opaque = (members: object = {}) => {
  const token = `opaque-${randomUUID()}`
  const now = Math.floor(Date.now() / 1_000)
  endpoint.tokens.set(token, { sub: 'u2', aud: orders, iat: now, exp: now + 3_600, ...members })
  return { authorization: `Bearer ${token}` }
}

const proved = async (path: string, nonce: string | undefined, method = 'GET') => {
  const token = await issuer.sign({ cnf: holder.cnf, sid: 's-bound' })
  return holder.fields({ method, url: gateway.url + path, token, nonce })
}

interface Answer {
  status: number
  id: string
  nonce: string | undefined
}

/** HTTP/1.1 on a connection of its own, so that the workers take turns. */
const ask = async (path: string, headers: Record<string, string>, body?: string): Promise<Answer> => {
  const dispatcher = new Agent({ allowH2: false, connect: { ca, servername: 'localhost' } })
  try {
    const answer = await request(gateway.url + path, {
      ...{ dispatcher, headers },
      ...(body !== undefined && { method: 'POST', body }),
    })
    await answer.text()
    const { headers: fields, status } = answer
    return { status, id: fields.get('x-request-id')!, nonce: fields.get('dpop-nonce') ?? undefined }
  } finally {
    await dispatcher.close()
  }
}

/** The same over HTTP/2. */
const ask2 = async (path: string, headers: Record<string, string>, body?: string): Promise<Answer> => {
  const session = await openHttp2(gateway.url, { ca })
  const { host } = new URL(gateway.url)
  const head = { ':path': path, ':authority': host, ...(body !== undefined && { ':method': 'POST' }), ...headers }
  const { status, headers: fields } = await session.send(head, body)
  session.close()
  return { status, id: String(fields['x-request-id']), nonce: fields['dpop-nonce'] as string | undefined }
}

const accessLines = async () =>
  (await readFile(join(gateway.folder, 'access.log'), 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** What each part that tells of requests tells of one. */
const told = async (id: string) => ({
  access: await until(async () => {
    const line = (await accessLines()).find((one) => one['request_id'] === id)
    expect(line).toBeDefined()
    return line!
  }),
  record: await until(() => client.get('decision', `/decisions/${id}`)),
  span: await until(() => {
    const span = collector.spans.find(({ kind, attributes }) => {
      return kind === 'SERVER' && attributes['surrogate.request.id'] === id
    })
    expect(span).toBeDefined()
    return span!
  }),
})
const event = (id: string) => log.taken.find((one) => one['decision_id'] === id)

const held = async () =>
  Number(/^surrogate_gateway_held_body_bytes (\d+)$/m.exec(await gateway.metrics())?.[1] ?? Number.NaN)

test.each([
  ['HTTP/1.1', ask],
  ['HTTP/2', ask2],
] as const)('every kind of request is answered and told of the same way (%s)', async (protocol, send) => {
  const target = upstream.url
  const { nonce } = await send('/bound/1', await proved('/bound/1', undefined))
  const proof = await proved('/bound/1', nonce)
  const kinds = [
    { route: 'free', sid: 's-jwt', answer: await send('/free/1', await bearer({ sid: 's-jwt' })), status: 200 },
    { route: 'free', sid: 's-op', answer: await send('/free/2', opaque({ sid: 's-op' })), status: 200 },
    { route: 'bound', sid: 's-bound', answer: await send('/bound/1', proof), status: 200 },
    { route: 'bound', sid: 's-bound', answer: await send('/bound/1', proof), status: 401 },
    {
      ...{ route: 'paid', sid: 's-a', status: 200 },
      answer: await send('/paid/1', { ...json, ...(await bearer({ sid: 's-a' })) }, '{"amount":1}'),
    },
    {
      ...{ route: 'paid', sid: 's-b', status: 403 },
      answer: await send('/paid/2', { ...json, ...opaque({ sid: 's-b' }) }, '{"amount":1000}'),
    },
  ]
  expect(kinds.map(({ answer }) => answer.status)).toEqual(kinds.map(({ status }) => status))
  for (const { route, sid, status, answer } of kinds) {
    const { access, record, span } = await told(answer.id)
    const reached = status === 200 ? { target, retries: 0 } : {}
    expect(access).toMatchObject({
      route,
      status,
      sid,
      protocol: protocol === 'HTTP/2' ? 'HTTP/2.0' : protocol,
      ...reached,
    })
    expect(access['trace_id']).toBe(span.traceId)
    expect(record).toMatchObject({ route, status, trace_id: span.traceId, input: { token: { sid } }, ...reached })
    expect(span).toMatchObject({ attributes: { 'http.route': `/${route}/**`, 'http.response.status_code': status } })
    // The log has a sample; the ring has all.
    if (status === 200) await until(() => expect(event(answer.id)).toMatchObject({ trace_id: span.traceId }))
    else expect(event(answer.id)).toBeUndefined()
  }
  const all = JSON.stringify([await client.get('decisions'), log.taken, await accessLines()]) + gateway.child.output()
  for (const secret of ['a-secret', proof.dpop, ...endpoint.tokens.keys()]) expect(all).not.toContain(secret)
})

test('forward-auth and ext_authz decide the same, and are told of', async () => {
  const asked = (method: string, uri: string) => ({ 'x-original-method': method, 'x-original-uri': uri })
  const from = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.test' }
  const auth = '/.surrogate/auth'
  const allowed = await ask(auth, { ...from, ...asked('GET', '/free/f'), ...opaque({ sid: 's-f' }) })
  expect(allowed.status).toBe(200)
  expect(await told(allowed.id)).toMatchObject({
    access: { sid: 's-f', path: '/free/f', client_ip: '203.0.113.9' },
    record: { route: 'free', input: { request: { path: '/free/f' } } },
  })
  // A body that nobody brought; nginx takes no other status of a refusal.
  const unbrought = await ask(auth, { ...from, ...asked('POST', '/paid/f'), ...(await bearer()) })
  expect(unbrought.status).toBe(403)
  expect(await told(unbrought.id)).toMatchObject({
    access: { code: 'body_unavailable' },
    record: { verdict: 'failed' },
  })

  const token = await issuer.sign({ cnf: holder.cnf, sid: 's-e' })
  const about = { url: 'https://api.test/bound/e', token }
  const refused = await envoy.check({ path: '/bound/e', headers: await holder.fields(about) })
  expect(refused).toMatchObject({ allowed: false, status: 401 })
  // A nonce of one worker and listener is good for all.
  const headers = await holder.fields({ ...about, nonce: refused.headers['dpop-nonce'] })
  expect(await envoy.check({ path: '/bound/e', headers })).toMatchObject({ allowed: true })
  expect(await envoy.check({ path: '/bound/e', headers })).toMatchObject({ allowed: false, status: 401 })
  const paid = (amount: number) => ({
    ...{ path: '/paid/e', method: 'POST', http: { body: JSON.stringify({ amount }) } },
    headers: { ...json, ...opaque({ sid: 's-e' }), 'x-envoy-auth-partial-body': 'false' },
  })
  expect(await envoy.check(paid(1))).toMatchObject({ allowed: true })
  expect(await envoy.check(paid(1_000))).toMatchObject({ allowed: false, status: 403 })
  await until(async () => {
    const { decisions } = await client.get('decisions', '/decisions?sid=s-e')
    expect(decisions.map(({ route, status }) => [route, status])).toEqual([
      ['paid', 403],
      ['paid', 200],
      ['bound', 401],
      ['bound', 200],
      ['bound', 401],
    ])
  })
})

test('a killed worker takes its own with it and nothing else', async () => {
  const used = await proved('/bound/k', (await ask('/bound/k', await proved('/bound/k', undefined))).nonce)
  expect((await ask('/bound/k', used)).status).toBe(200)

  // Streams, half bodies and questions of both workers.
  const streams = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const session = await openHttp2(gateway.url, { ca })
      const stream = session.session.request({ ':path': '/events', ':authority': 'localhost' })
      const state = { text: '', ended: false }
      stream.on('data', (chunk) => {
        state.text += chunk
      })
      stream.on('error', () => {})
      stream.on('close', () => {
        state.ended = true
      })
      return { state, close: () => session.close() }
    }),
  )
  await until(() => expect(upstream.streams.size).toBe(6))
  expect(await held()).toBe(0)
  const { authorization } = await bearer()
  const halves = Array.from({ length: 6 }, () => {
    const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', ca, servername: 'localhost' })
    const state = { text: '', ended: false, socket }
    socket.on('data', (chunk) => {
      state.text += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      state.ended = true
    })
    const head = [
      'POST /paid/half HTTP/1.1',
      'Host: a',
      `Authorization: ${authorization}`,
      'Content-Type: application/json',
    ]
    socket.write(`${head.join('\r\n')}\r\nContent-Length: 12\r\n\r\n{"amount`)
    return state
  })
  await until(async () => expect(await held()).toBe(6 * 8))
  const release = endpoint.hold()
  const waiting = opaque()
  const checks = Array.from({ length: 4 }, () => ask('/free/k', waiting).catch(() => ({ status: 0 })))
  await until(() => expect(endpoint.asked.map(({ token }) => `Bearer ${token}`)).toContain(waiting.authorization))

  const [killed = 0] = gateway.workers()
  process.kill(killed, 'SIGKILL')
  await until(() => expect(gateway.workers()).not.toContain(killed))
  const open = () => streams.filter(({ state }) => !state.ended)
  const going = () => halves.filter(({ ended }) => !ended)
  await until(async () => {
    expect(open().length).toBeLessThan(streams.length)
    expect(going().length).toBeLessThan(halves.length)
    expect(upstream.streams.size).toBe(open().length)
    expect(await held()).toBe(8 * going().length)
  })
  release()
  const outcomes = (await Promise.all(checks)).map(({ status }) => status)
  expect(outcomes.filter((status) => status !== 0 && status !== 200)).toEqual([])
  expect(outcomes).toContain(200)
  expect(endpoint.asked.filter(({ token }) => `Bearer ${token}` === waiting.authorization)).toHaveLength(1)

  await until(async () => expect((await gateway.readiness()).checks['gateway workers']?.detail).toBe('2 of 2 serve'))
  expect([open().length, going().length]).not.toContain(0)
  for (const { socket } of going()) socket.write('":1}')
  await until(() => expect(going().filter(({ text }) => !text.startsWith('HTTP/1.1 200'))).toEqual([]))
  for (const response of upstream.streams) response.write('data: 1\n\n')
  await until(() => expect(open().filter(({ state }) => !state.text.endsWith('data: 1\n\n'))).toEqual([]))
  for (const _ of [1, 2, 3, 4]) expect((await ask('/bound/k', used)).status).toBe(401)
  for (const stream of streams) stream.close()
  for (const { socket } of halves) socket.destroy()
  await until(async () => expect(await held()).toBe(0))
  await until(() => expect(upstream.streams.size).toBe(0))
})

test('each setting may come and go under load: no answer is wrong, none is lost', async () => {
  let stopped = false
  onTestFinished(() => {
    stopped = true
  })
  const wrong: unknown[] = []
  let answered = 0
  const loop = async (send: typeof ask, make: () => Promise<[string, Record<string, string>, string?]>) => {
    while (!stopped) {
      const [path, headers, body] = await make()
      const outcome = await send(path, headers, body).then(
        ({ status }) => status,
        (error: Error) => error.message,
      )
      if (outcome !== 200) wrong.push([path, outcome])
      answered++
    }
  }
  const good = await bearer()
  const traffic = [ask, ask2].flatMap((send) => [
    loop(send, async () => ['/free/l', good]),
    loop(send, async () => ['/paid/l', { ...json, ...good }, '{"amount":2}']),
  ])
  const checks = (async () => {
    while (!stopped) {
      const outcome = await envoy.check({ path: '/free/l', headers: good }).catch(({ code }) => ({ allowed: code }))
      if (outcome.allowed !== true) wrong.push(['ext_authz', outcome.allowed])
    }
  })()
  const routes = config()['routes'] as Record<string, unknown>[]
  const variants: Record<string, unknown>[] = [
    { telemetry: undefined },
    { decisionLog: undefined },
    { accessLog: undefined, forwardAuth: undefined },
    { issuers: [{ issuer: issuer.issuer }] },
    { routes: routes.map((route) => ({ ...route, policyBody: undefined, dpop: undefined })) },
    { inspection: undefined },
  ]
  const inForce = async () => (await gateway.readiness()).checks['gateway configuration']?.detail
  let revision = await inForce()
  for (const variant of variants) {
    for (const next of [{ ...config(), ...variant }, config()]) {
      const before = answered
      await gateway.write(JSON.parse(JSON.stringify(next)))
      gateway.child.signal('SIGHUP')
      await until(async () => {
        const now = await inForce()
        expect(now).toMatch(/^revision \w+$/)
        expect(now).not.toBe(revision)
        revision = now
      })
      await until(() => expect(answered).toBeGreaterThan(before + 8))
    }
  }
  stopped = true
  await Promise.all([...traffic, checks])
  expect(wrong).toEqual([])
  expect((await ask('/paid/l', { ...json, ...good }, '{"amount":1000}')).status).toBe(403)
  expect(await held()).toBe(0)
  const { id } = await ask2('/free/after', opaque({ sid: 's-after' }))
  expect(await told(id)).toMatchObject({ access: { sid: 's-after' }, record: { route: 'free' } })
})

test('a stop under load answers all that is under way, sends what was recorded, and ends', async () => {
  const before = endpoint.asked.length
  const release = endpoint.hold()
  const waiting = Array.from({ length: 6 }, (_, index) => (index % 2 ? ask : ask2)('/free/end', opaque()))
  await until(() => expect(endpoint.asked.length).toBe(before + 6))
  const stream = await client.stream()
  gateway.child.signal('SIGTERM')
  // Nobody is let in any more.
  const outcome = () =>
    ask('/free/late', {}).then(
      () => 'answered',
      () => 'refused',
    )
  await until(async () => expect(await outcome()).toBe('refused'))
  release()
  const answers = await Promise.all(waiting)
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
  expect(await gateway.child.exited).toMatchObject({ code: 0 })
  await stream.ended
  const ids = answers.map(({ id }) => id)
  expect(ids.filter((id) => event(id) === undefined)).toEqual([])
  const spans = collector.spans.map(({ attributes }) => attributes['surrogate.request.id'])
  expect(ids.filter((id) => !spans.includes(id))).toEqual([])
})
