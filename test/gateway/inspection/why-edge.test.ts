import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DecisionRecord, Why } from '../../../gateway/inspection/decision-answers.ts'
import { stages } from '../../../gateway/inspection/explanation.ts'
import { refusalOf } from '../../../gateway/inspection/refusal.ts'
import { type ProblemCode, problems } from '../../../gateway/refusals/problems.ts'
import { amountRules, json } from '../../support/body-policies.ts'
import { type DpopClient, newDpopClient } from '../../support/dpop.ts'
import { connectExtAuthz, type ExtAuthzClient } from '../../support/ext-authz.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { type IntrospectionEndpoint, startIntrospectionEndpoint } from '../../support/introspection-endpoint.ts'
import { writeRules } from '../../support/rules.ts'
import { until } from '../../support/until.ts'

/** Refusals of proofs, opaque tokens and bodies, and those that other proxies asked for: each says where it was. */

const audience = [orders]

const otherRules = `package app

# METADATA
# entrypoint: true
open := {"allow": true}

# METADATA
# entrypoint: true
closed := {"allow": false, "reason": "closed"}
`

let gateway: TestGateway
let endpoint: IntrospectionEndpoint
let envoy: ExtAuthzClient
let rules: Awaited<ReturnType<typeof writeRules>>
let client: ReturnType<typeof inspectionClient>
let holder: DpopClient

beforeAll(async () => {
  ;[endpoint, holder] = await Promise.all([startIntrospectionEndpoint(), newDpopClient()])
  rules = await writeRules({ 'app.rego': amountRules, 'open.rego': otherRules })
  gateway = await startTestGateway({
    config: ({ issuer }) => {
      const common = { audience, upstream: 'orders', entrypoint: 'app/open' }
      const policyBody = { type: 'json', maxBytes: 2_000 }
      return {
        inspection: { port: 0, audience: inspectionAudience },
        issuers: [
          { issuer: issuer.issuer, introspection: { url: endpoint.url, client: { id: 'g', secret: 'a-secret' } } },
        ],
        policies: { path: rules.folder, entrypoint: 'app/decision' },
        // Nothing of it reaches the log, and everything the ring.
        decisionLog: { to: '/dev/null', sample: { allowed: '0%', denied: '0%' } },
        trustedProxies: ['127.0.0.1'],
        forwardAuth: { dialect: 'nginx' },
        extAuthz: { port: 0 },
        limits: { policyBodies: '256kB' },
        routes: [
          { ...common, id: 'bound', path: '/bound', dpop: 'required' },
          { ...common, id: 'free', path: '/free' },
          { ...common, id: 'paid', path: '/paid', entrypoint: 'app/decision', policyBody },
          { ...common, id: 'heavy', path: '/heavy', policyBody: { type: 'json', maxBytes: '128kB' } },
          { ...common, id: 'closed', path: '/door', methods: ['POST'], entrypoint: 'app/closed' },
          { ...common, id: 'by-proof', path: '/door', methods: ['GET'], dpop: 'required' },
          { ...common, id: 'by-body', path: '/door', methods: ['PUT'], policyBody },
          { ...common, id: 'by-header', path: '/door', methods: ['PATCH'], policyHeaders: ['x-key'] },
          { ...common, id: 'open', path: '/door', methods: ['DELETE'] },
          { ...common, id: 'small', path: '/small', bodySize: 10 },
          { id: 'elsewhere', path: '/elsewhere', auth: 'none', entrypoint: 'app/open' },
        ],
      }
    },
  })
  client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
  envoy = connectExtAuthz(gateway.extAuthzPort)
})
afterAll(async () => {
  envoy?.close()
  await gateway?.close()
  await endpoint?.close()
  await rules?.remove()
})

const whyOf = (id: string | null): Promise<Why> => until(() => client.get('why', `/decisions/${id}/why`))

const ask = async (path: string, headers: Record<string, string> = {}, body?: string | Buffer): Promise<Why> => {
  const token = headers['authorization'] ?? `Bearer ${await gateway.issuer.sign()}`
  const answer = await fetch(gateway.url + path, {
    headers: { authorization: token, ...headers },
    ...(body !== undefined && { method: 'POST', body: body as string }),
  })
  await answer.text()
  const why = await whyOf(answer.headers.get('x-request-id'))
  expect(why.status).toBe(answer.status)
  return why
}

const proved = async (path: string, nonce?: string) => {
  const token = await gateway.issuer.sign({ cnf: holder.cnf })
  return holder.fields({ url: gateway.url + path, token, nonce })
}

test('every code has a stage, and only failures of nobody in particular are of the gateway as a whole', () => {
  const unplaced = Object.keys(problems).filter((code) => {
    const record = { code, route: 'a', verdict: 'denied', result: { reason: code } } as unknown as DecisionRecord
    const refusal = refusalOf(record, {})!
    expect(stages).toContain(refusal.stage)
    return refusal.stage === 'gateway'
  })
  expect(unplaced).toEqual(['server.error'] satisfies ProblemCode[])
})

test('proofs', async () => {
  const refused = async (headers: Record<string, string>) => (await ask('/bound', headers)).refusal
  expect(await refused({})).toMatchObject({ stage: 'token', code: 'token_missing' })
  const { dpop: _, ...bare } = await proved('/bound')
  expect(await refused(bare)).toEqual({
    stage: 'token',
    code: 'invalid_dpop_proof',
    because: 'The request has no DPoP proof.',
  })
  expect(await refused(await proved('/bound'))).toMatchObject({ stage: 'token', code: 'use_dpop_nonce' })
  const { headers } = await fetch(`${gateway.url}/bound`, { headers: await proved('/bound') })
  const fields = await proved('/bound', headers.get('dpop-nonce')!)
  expect(await ask('/bound', fields)).toMatchObject({ verdict: 'allowed', token: { bound: 'key' } })
  const again = await ask('/bound', fields)
  expect(again.refusal).toEqual({
    stage: 'token',
    code: 'invalid_dpop_proof',
    because: 'The DPoP proof was used before.',
  })
  // Whose token it is was verified before.
  expect(again).toMatchObject({ token: { subject: 'u1', bound: 'key' }, wouldAllow: [] })
})

test('opaque tokens', async () => {
  const refused = async (token: string) => (await ask('/free', { authorization: `Bearer ${token}` })).refusal
  expect(await refused('opaque-unknown')).toMatchObject({ stage: 'token', code: 'invalid_token' })
  endpoint.answer = (_request, response) => void response.writeHead(500).end()
  expect(await refused('opaque-unanswered')).toMatchObject({ stage: 'token', code: 'issuer_unavailable' })
  endpoint.answer = undefined
})

test.each([
  ['unsupported_media_type', { 'content-type': 'text/plain' }, '{}', /must be application\/json/],
  ['content_too_large', json, JSON.stringify({ text: 'a'.repeat(3_000) }), /may have 2000 bytes at most/],
  ['invalid_request', json, '{"amount":1,"amount":2}', /^The request body /],
  ['invalid_request', json, Buffer.from([0x22, 0xff, 0x22]), /^The request body is not UTF-8/],
] as const)('a body that the policy cannot be shown: %s', async (code, headers, body, because) => {
  const why = await ask('/paid', headers, body)
  expect(why.refusal).toEqual({ stage: 'policy', code, because: expect.stringMatching(because) })
  expect(why).toMatchObject({ verdict: 'denied', route: 'paid', token: { subject: 'u1' } })
  expect(why.notes).toEqual(['No policy was asked, so nothing could be tried.'])
})

test('a body for which there is no memory', async () => {
  const open: ReturnType<typeof connect>[] = []
  const authorization = `Bearer ${await gateway.issuer.sign()}`
  const held = async () => {
    const { text } = await gateway.metrics.render()
    return Number(/^surrogate_gateway_held_body_bytes (\d+)$/m.exec(text)?.[1] ?? 0)
  }
  while ((await held()) < 262_144 - 100_000) {
    const before = await held()
    const socket = connect(gateway.port, '127.0.0.1')
    open.push(socket)
    const head = [
      'POST /heavy HTTP/1.1',
      'Host: a',
      `Authorization: ${authorization}`,
      'Content-Type: application/json',
    ]
    socket.write(`${head.join('\r\n')}\r\nContent-Length: 30001\r\n\r\n${'a'.repeat(30_000)}`)
    await until(async () => expect(await held()).toBeGreaterThanOrEqual(before + 30_000))
  }
  const why = await ask('/heavy', json, JSON.stringify({ text: 'a'.repeat(120_000) }))
  expect(why).toMatchObject({ verdict: 'failed', refusal: { stage: 'policy', code: 'server.unavailable' } })
  for (const socket of open) socket.destroy()
  await until(async () => expect(await held()).toBe(0))
})

test('what fails after the policy has allowed it is not of the policy', async () => {
  const long = await ask('/small', { 'content-type': 'text/plain' }, 'a'.repeat(100))
  expect(long.refusal).toMatchObject({ stage: 'upstream', code: 'content_too_large' })
  expect(long.notes).toEqual(['The policy allowed the request; it failed afterwards.'])
  expect((await ask('/elsewhere')).refusal).toEqual({
    stage: 'upstream',
    code: 'not_found',
    because: 'The route elsewhere has no upstream: it is for forward-auth and ext_authz only.',
  })
})

test('a policy that denies by the body: nothing is guessed without it', async () => {
  const why = await ask('/paid', json, '{"amount":1000}')
  expect(why.refusal).toMatchObject({ stage: 'policy', code: 'policy_denied' })
  expect(why.wouldAllow).toEqual([])
  expect(why.notes.join()).toContain('the record lacks /input/request/body')
})

test('another route is named only when the request could be allowed there', async () => {
  const why = await ask('/door', json, '{}')
  expect(why.refusal).toMatchObject({ code: 'policy_denied' })
  expect(why.wouldAllow).toEqual([expect.objectContaining({ change: 'route', route: 'open', method: 'DELETE' })])
  expect(why.notes).toEqual([
    'The route by-body was not tried, since the record lacks /input/request/body.',
    'The route by-header was not tried, since the record lacks /input/request/headers.',
  ])
})

test('forward-auth and ext_authz: everything that the gateway keeps of its own requests', async () => {
  const authorization = `Bearer ${await gateway.issuer.sign({ sid: 's-edge' })}`
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const recordOf = (id: unknown) => until(() => client.get('decision', `/decisions/${id}`))
  const common = {
    verdict: 'allowed',
    route: 'free',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    input: { request: { path: '/free', clientIp: '203.0.113.9' }, token: { sid: 's-edge' } },
    labels: { app: 'surrogate-gateway' },
  }
  const forwarded = await fetch(`${gateway.url}/.surrogate/auth`, {
    headers: {
      ...{ authorization, traceparent, 'x-original-uri': '/free', 'x-original-method': 'GET' },
      ...{ 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.test' },
    },
  })
  expect(forwarded.status).toBe(200)
  expect(await recordOf(forwarded.headers.get('x-request-id'))).toMatchObject({ ...common, status: 200 })

  const checked = await envoy.check({ path: '/free', headers: { authorization, traceparent } })
  expect(checked).toMatchObject({ allowed: true })
  const [byEnvoy] = (await client.get('decisions', '/decisions?sid=s-edge&limit=1')).decisions
  expect(byEnvoy).toMatchObject({ ...common, http: { protocol: 'ext_authz' } })

  const unbrought = { authorization, ...json, 'content-length': '14' }
  const denied = await envoy.check({ path: '/paid', method: 'POST', headers: unbrought })
  expect(denied).toMatchObject({ allowed: false, status: 500 })
  const id = denied.headers['x-request-id']
  expect((await whyOf(id!)).refusal).toMatchObject({ stage: 'policy', code: 'body_unavailable' })
})
