import { compactVerify, createRemoteJWKSet, decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type ConsoleWithGateways,
  type OneGateway,
  orders,
  startConsoleWithGateways,
} from '../../support/console-gateways.ts'
import { until } from '../../support/until.ts'

/** `GET /console/impersonations/:id/export`: who gets it, and what its last line is good for. */

let all: ConsoleWithGateways
let gateway: OneGateway
let sid: string
beforeAll(async () => {
  all = await startConsoleWithGateways()
  gateway = await all.addGateway('one')
  const { issuer } = all.home
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  const customer = await issuer.createUser()
  await issuer.grantUser(customer.id, orders, ['read:orders'])
  const desk = await issuer.createApplication()
  const subjectToken = await issuer.subjectToken(customer.id, { reason: 'why', ticket: 'T-1' })
  const { body } = await issuer.exchange(desk, subjectToken, { resource: orders, scope: 'read:orders' })
  sid = String(decodeJwt(body.access_token)['sid'])
  await gateway.decide('/orders/1', body.access_token)
})
afterAll(() => all?.close())

const browserOf = async (...roles: Parameters<ConsoleWithGateways['home']['createMember']>) =>
  all.home.browserOf(await all.home.createMember(...roles))
const path = () => `/impersonations/${sid}/export`

test('the last line signs all bytes above it with the key of tokens, and is no token itself', async () => {
  const { issuer } = all.home
  const auditor = await browserOf('auditor')
  const answer = await until(async () => {
    const got = await all.home.call(auditor, 'GET', path())
    expect(got.body).toContain('"kind":"request"')
    return got
  })
  expect(answer.status).toBe(200)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'application/x-ndjson; charset=utf-8',
    'content-disposition': `attachment; filename="impersonation-${sid}.ndjson"`,
    'cache-control': 'no-store',
  })
  const lines = answer.body.trimEnd().split('\n')
  const { jws } = JSON.parse(lines.at(-1))
  const keys = createRemoteJWKSet(new URL(`${issuer.url}/oidc/jwks`))
  const { payload, protectedHeader } = await compactVerify(jws, keys)
  expect(protectedHeader).toMatchObject({ typ: 'surrogate-export+jws' })
  expect(JSON.parse(Buffer.from(payload).toString())).toEqual({
    ...{ iss: issuer.issuer, impersonation: sid, iat: expect.any(Number), lines: lines.length - 1 },
    sha256: expect.stringMatching(/^[\w-]{43}$/),
  })
  for (const [address, init] of [
    ['/api/users', {}],
    ['/oidc/me', {}],
    ['/api/my-account', {}],
  ] as const) {
    const headers = { authorization: `Bearer ${jws}` }
    expect((await fetch(issuer.url + address, { ...init, headers })).status).toBe(401)
  }
  const refused = await gateway.decide('/orders/1', jws)
  await until(async () =>
    expect((await all.home.call(auditor, 'GET', `/gateways/decisions/${refused}`)).body).toMatchObject({
      ...{ verdict: 'denied', status: 401 },
    }),
  )
})

test('support and auditors get it; others, other sites and nobody do not', async () => {
  expect((await all.home.call(await browserOf('support'), 'GET', path())).status).toBe(200)
  const integrator = await browserOf('integrator')
  expect(await all.home.call(integrator, 'GET', path())).toMatchObject({
    status: 403,
    body: { code: 'auth.forbidden' },
  })
  const auditor = await browserOf('auditor')
  const headers = { 'sec-fetch-site': 'cross-site' }
  expect(await all.home.call(auditor, 'GET', path(), undefined, { headers })).toMatchObject({
    ...{ status: 403, body: { code: 'console.cross_site' } },
  })
  expect(await all.home.call(auditor, 'GET', '/impersonations/nobody/export')).toMatchObject({
    ...{ status: 404, body: { code: 'entity.not_exists_with_id' } },
  })
  expect(await all.home.call(all.home.flow.browser(), 'GET', path())).toMatchObject({
    ...{ status: 401, body: { code: 'console.signed_out' } },
  })
})

test('a gateway that does not answer is named, and the export says that it is not complete', async () => {
  const auditor = await browserOf('auditor')
  gateway.line.cut(true)
  const { body } = await all.home.call(auditor, 'GET', path())
  gateway.line.cut(false)
  expect(JSON.parse(body.split('\n')[0])).toMatchObject({
    ...{ kind: 'impersonation', isComplete: false, session: { id: sid, ticket: 'T-1' } },
    missingGateways: [{ gateway: 'one', because: expect.stringMatching(/./) }],
  })
  expect(body).not.toContain('"kind":"request"')
})
