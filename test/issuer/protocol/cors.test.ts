import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** Which web pages may read the answers of the protocol. */

let issuer: TestIssuer
let clientId: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  const answer = await issuer.api('POST', '/applications', {
    name: 'A page',
    type: 'SPA',
    customClientMetadata: { corsAllowedOrigins: ['https://spa.example'] },
    oidcClientMetadata: {
      redirectUris: ['https://app.example/callback?x=1', 'http://localhost:5173'],
    },
  })
  clientId = answer.body.id
  // Those that were registered before such spellings were refused.
  await issuer.sql(
    `UPDATE applications SET oidc_client_metadata = jsonb_set(oidc_client_metadata, '{redirectUris}',
       oidc_client_metadata->'redirectUris' || $2::jsonb) WHERE id = $1`,
    [clientId, JSON.stringify(['https://Ports.Example:443/cb', 'http://user@named.example:80/cb'])],
  )
  await issuer.api('POST', '/applications', {
    name: 'A phone',
    type: 'Native',
    oidcClientMetadata: { redirectUris: ['com.example.app://callback'] },
  })
})
afterAll(() => issuer.close())

const send = (path: string, origin: string | undefined, init: RequestInit = {}) =>
  request(issuer.url + path, { ...init, headers: { ...(origin === undefined ? {} : { origin }), ...init.headers } })
const token = (origin: string) =>
  send('/oidc/token', origin, {
    method: 'POST',
    body: formOf({ grant_type: 'client_credentials', client_id: clientId }),
  })
const preflight = (path: string, origin: string, method = 'POST') =>
  send(path, origin, { method: 'OPTIONS', headers: { 'access-control-request-method': method } })

const registered = [
  'https://spa.example',
  'https://app.example',
  'http://localhost:5173',
  'https://ports.example',
  'http://named.example',
]
const foreign = [
  'https://evil.example',
  'null',
  'http://app.example',
  'https://app.example.evil.example',
  'https://app.example:8443',
  'https://sub.app.example',
  'https://app.exampl',
  'https://app.example/',
  'HTTPS://APP.EXAMPLE',
  'http://localhost',
  'com.example.app://callback',
  '*',
  '',
  "https://app.example' OR true --",
]

const reachable = ['/oidc/token', '/oidc/token/revocation', '/oidc/me']

describe.each(reachable)('%s', (path) => {
  test.each(registered)('may be called by a page of %s', async (origin) => {
    const asked = await preflight(path, origin)
    expect(asked.status).toBe(204)
    expect(asked.headers.get('access-control-allow-origin')).toBe(origin)
    expect(asked.headers.get('access-control-allow-methods')).toContain('POST')
    expect(asked.headers.get('access-control-allow-headers')).toBe('Authorization, Content-Type, DPoP')
    // Answers depend on what the page sends, never on cookies.
    expect(asked.headers.get('access-control-allow-credentials')).toBeNull()
    const answer = await send(path, origin, { method: 'POST', body: formOf({ client_id: clientId }) })
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
    expect(answer.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate')
    expect(answer.headers.get('vary')).toBe('Origin')
  })

  test.each(foreign)('may not be called by a page of %j', async (origin) => {
    for (const answer of [await preflight(path, origin), await send(path, origin, { method: 'POST' })]) {
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      expect(answer.headers.get('access-control-allow-methods')).toBeNull()
      expect(answer.headers.get('vary')).toBe('Origin')
    }
  })

  test('says to caches that answers differ by origin, also when none was sent', async () => {
    expect((await send(path, undefined, { method: 'POST' })).headers.get('vary')).toBe('Origin')
  })
})

test('a page reads a refusal too', async () => {
  const answer = await token('https://spa.example')
  expect(answer).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://spa.example')
})

test('an origin that is taken from its application is refused at once', async () => {
  const { body } = await issuer.api('POST', '/applications', {
    name: 'Another page',
    type: 'SPA',
    customClientMetadata: { corsAllowedOrigins: ['https://gone.example'] },
  })
  const allowed = async () => (await token('https://gone.example')).headers.get('access-control-allow-origin')
  expect(await allowed()).toBe('https://gone.example')
  await issuer.api('PATCH', `/applications/${body.id}`, { customClientMetadata: {} })
  expect(await allowed()).toBeNull()
})

test.each([
  '/oidc/jwks',
  '/oidc/.well-known/openid-configuration',
  '/oidc/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/oidc',
])('%s is for every page', async (path) => {
  for (const origin of ['https://anybody.example', 'null', undefined]) {
    const answer = await send(path, origin)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  }
  expect(await preflight(path, 'https://anybody.example', 'GET')).toMatchObject({ status: 204 })
})

test('introspection and the Management API are for servers: no page may read them', async () => {
  for (const path of ['/oidc/token/introspection', '/oidc/revocations', '/api/users']) {
    for (const method of ['OPTIONS', 'POST', 'GET']) {
      const answer = await send(path, 'https://spa.example', { method })
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    }
  }
})
