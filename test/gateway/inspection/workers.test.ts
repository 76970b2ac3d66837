import { Agent, fetch as request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tryAnswer } from '../../../gateway/inspection/policy-answers.ts'
import { freePort } from '../../support/free-port.ts'
import { startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** One inspection listener for a gateway of several processes. */

let issuer: TokenIssuer
let upstream: TestUpstream
let gateway: GatewayWorkers
let client: ReturnType<typeof inspectionClient>

const config = (port: number) => ({
  inspection: { port, audience: inspectionAudience, keep: '4MB' },
  issuers: [{ issuer: issuer.issuer }],
  upstreams: { orders: { url: upstream.url } },
  routes: [{ id: 'all', path: '/orders/**', auth: 'none', upstream: 'orders' }],
  allowInsecure: ['http-issuer', 'http-upstream'],
})

beforeAll(async () => {
  issuer = await startTokenIssuer()
  upstream = await startUpstream()
  const port = await freePort()
  gateway = await startGatewayWorkers(config(port))
  client = inspectionClient(() => `http://127.0.0.1:${port}`, issuer)
  await until(async () => expect((await gateway.readiness()).ok).toBe(true))
})
afterAll(async () => {
  await gateway?.close()
  await Promise.all([issuer?.close(), upstream?.close()])
})

/** On connections of their own, so that every worker has some. */
const ask = async (count: number) => {
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    const dispatcher = new Agent()
    const answer = await request(`${gateway.url}/orders/${at}`, { dispatcher })
    await answer.text()
    ids.push(answer.headers.get('x-request-id')!)
    await dispatcher.close()
  }
  return ids
}

const idsOf = (records: readonly { decision_id?: unknown; labels?: unknown }[]) => records.map((one) => one.decision_id)

test('decisions of all workers, by time, and each by its id', async () => {
  const stream = await client.stream()
  const ids = await ask(10)
  await expect.poll(async () => new Set(idsOf((await client.get('decisions')).decisions))).toEqual(new Set(ids))
  const { decisions } = await client.get('decisions')
  const instances = new Set(decisions.map(({ labels }) => labels['id']))
  expect(instances.size).toBe(2)
  const times = decisions.map(({ timestamp }) => timestamp)
  expect(times).toEqual(times.toSorted().reverse())
  expect((await client.get('decisions', '/decisions?limit=3')).decisions).toHaveLength(3)
  expect(await client.get('decision', `/decisions/${ids[4]}`)).toMatchObject({ decision_id: ids[4], route: 'all' })
  await expect.poll(() => idsOf(stream.events.map(({ data }) => data)).toSorted()).toEqual(ids.toSorted())
  stream.close()
})

test('what every worker keeps since then comes first, then what is made', async () => {
  const since = new Date().toISOString()
  const ids = await ask(8)
  const stream = await client.stream(`/decisions/stream?since=${since}`)
  ids.push(...(await ask(4)))
  await expect.poll(() => idsOf(stream.events.map(({ data }) => data)).toSorted()).toEqual(ids.toSorted())
  expect(new Set(stream.events.map(({ data }) => (data['labels'] as { id: string }).id)).size).toBe(2)
  stream.close()
})

test('issuers are told as all workers know them, and a session of none of them has not ended', async () => {
  expect(await client.get('issuers')).toEqual({
    issuers: [
      {
        issuer: issuer.issuer,
        keys: [{ kid: issuer.key.kid, alg: 'ES256', kty: 'EC', since: expect.stringMatching(/Z$/) }],
      },
    ],
  })
  // Nothing that is revoked is followed.
  expect(await client.get('session', '/sessions/ps_1')).toEqual({ ended: false, followed: false })
})

test('the rules in force are asked, newer ones too', async () => {
  const asked = () => client.post('/evaluate', { input: { request: { path: '/x' } } })
  expect(await asked()).toMatchObject({ status: 200, body: { result: { allow: true, headers: { 'x-rules': 'one' } } } })
  await gateway.writeRules('two')
  await expect.poll(async () => (await asked()).body['result']).toMatchObject({ headers: { 'x-rules': 'two' } })
  expect((await client.get('upstreams')).upstreams).toMatchObject([{ name: 'orders' }])
})

test('trials cover what all workers have decided, and requests go on at each of them meanwhile', async () => {
  await ask(10)
  const kept = await until(async () => {
    const { decisions } = await client.get('decisions', '/decisions?limit=1000')
    expect(new Set(decisions.map(({ labels }) => labels['id'])).size).toBe(2)
    return idsOf(decisions)
  })
  const denying = `package surrogate.gateway

# METADATA
# entrypoint: true
decision := {"allow": false}
`
  // Each evaluation uses up its units.
  const endless = `${denying.replace('{"allow": false}', '{"allow": true}')} if {
	some a in numbers.range(1, 3000)
	some b in numbers.range(1, 3000)
	a * b < 0
}
`
  const attempt = (text: string) => client.post('/try', { files: { 'rules.rego': text }, decisions: 1_000 })
  let areDone = false
  const trials = Promise.all([attempt(endless), attempt(denying)]).finally(() => {
    areDone = true
  })
  const meanwhile = await ask(20)
  expect(areDone).toBe(false)
  for (const { status, body } of await trials) {
    expect([status, body]).toMatchObject([200, { issues: [] }])
    const { decisions } = tryAnswer.parse(body)
    // Some that were made meanwhile may be among them.
    expect(decisions).toMatchObject({ compared: decisions!.found, notComparable: 0, notAsked: 0 })
    expect(decisions!.changes.map(({ request: id }) => id)).toEqual(expect.arrayContaining(kept))
    expect(decisions!.changes).toHaveLength(decisions!.found)
  }
  const { decisions } = await client.get('decisions', '/decisions?limit=1000')
  const answered = decisions.filter(({ decision_id: id }) => meanwhile.includes(id))
  expect(answered.map(({ status }) => status)).toEqual(meanwhile.map(() => 200))
  expect(new Set(answered.map(({ labels }) => labels['id'])).size).toBe(2)
})

test('a worker that dies takes its own decisions with it; its successor is followed', async () => {
  const made = (await client.get('decisions')).decisions.length
  const stream = await client.stream()
  const [first] = gateway.workers()
  process.kill(first!, 'SIGKILL')
  await expect.poll(() => gateway.workers().includes(first!)).toBe(false)
  await expect.poll(async () => (await gateway.readiness()).checks['gateway workers']?.detail).toBe('2 of 2 serve')
  const before = (await client.get('decisions')).decisions
  expect(before.length).toBeGreaterThan(0)
  expect(before.length).toBeLessThan(made)
  const ids = await ask(8)
  await expect.poll(() => idsOf(stream.events.map(({ data }) => data)).toSorted()).toEqual(ids.toSorted())
  const instances = new Set(stream.events.map(({ data }) => (data['labels'] as { id: string }).id))
  expect(instances.size).toBe(2)
  stream.close()
})

test('its requests are among the metrics of the whole', async () => {
  await (await client.call('/routes', { claims: { scope: 'other' } })).text()
  expect(await gateway.metrics()).toMatch(/^surrogate_gateway_inspection_requests_total\{status="403"\} 1$/m)
})

test('it stops with the gateway', async () => {
  const stream = await client.stream()
  gateway.child.signal('SIGTERM')
  await stream.ended
  expect(stream.events.at(-1)).toEqual({ event: 'end', data: { because: 'closing' } })
  await gateway.child.exited
  await expect(client.call('/routes')).rejects.toThrow()
})
