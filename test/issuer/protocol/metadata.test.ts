import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer()
})
afterAll(() => issuer.close())

const paths = [
  '/oidc/.well-known/openid-configuration',
  '/oidc/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/oidc',
]

const confidential = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']
const ecAndEd = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const assertionAlgorithms = [...ecAndEd, 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']

test.each(paths)('%s tells what works, and nothing else', async (path) => {
  const answer = await request(issuer.url + path)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    issuer: issuer.issuer,
    authorization_endpoint: `${issuer.issuer}/auth`,
    pushed_authorization_request_endpoint: `${issuer.issuer}/request`,
    device_authorization_endpoint: `${issuer.issuer}/device/auth`,
    token_endpoint: `${issuer.issuer}/token`,
    end_session_endpoint: `${issuer.issuer}/session/end`,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    jwks_uri: `${issuer.issuer}/jwks`,
    grant_types_supported: [
      ...['authorization_code', 'refresh_token', 'client_credentials'],
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:device_code',
    ],
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'form_post', 'fragment'],
    code_challenge_methods_supported: ['S256'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account', 'create'],
    acr_values_supported: ['urn:surrogate:acr:basic'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    scopes_supported: [
      ...['openid', 'offline_access', 'profile', 'email', 'phone', 'address'],
      ...['custom_data', 'identities', 'roles'],
      ...['urn:logto:scope:organizations', 'urn:logto:scope:organization_roles'],
    ],
    claims_supported: expect.arrayContaining(['sub', 'auth_time', 'acr', 'amr', 'sid', 'nonce', 'email_verified']),
    ui_locales_supported: ['en', 'de', 'fr', 'es', 'ja'],
    authorization_response_iss_parameter_supported: true,
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    token_endpoint_auth_methods_supported: [...confidential, 'none'],
    token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    dpop_signing_alg_values_supported: [
      'ES256',
      'EdDSA',
      'Ed25519',
      'RS256',
      'RS384',
      'RS512',
      'PS256',
      'PS384',
      'PS512',
    ],
    userinfo_endpoint: `${issuer.issuer}/me`,
    introspection_endpoint: `${issuer.issuer}/token/introspection`,
    introspection_endpoint_auth_methods_supported: confidential,
    introspection_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    revocation_endpoint: `${issuer.issuer}/token/revocation`,
    revocation_endpoint_auth_methods_supported: [...confidential, 'none'],
    revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
  })
  const head = await request(issuer.url + path, { method: 'HEAD' })
  expect(head).toMatchObject({ status: 200, body: '' })
  expect((await request(issuer.url + path, { method: 'POST' })).status).toBe(405)
})

test('the key set may be kept for five minutes and is not sent again to who has it', async () => {
  const answer = await request(`${issuer.url}/oidc/jwks`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
  expect(answer.body).toEqual({
    keys: [
      {
        kty: 'EC',
        crv: 'P-256',
        alg: 'ES256',
        use: 'sig',
        kid: expect.any(String),
        x: expect.any(String),
        y: expect.any(String),
      },
      // For ID tokens.
      { kty: 'RSA', alg: 'RS256', use: 'sig', kid: expect.any(String), n: expect.any(String), e: 'AQAB' },
    ],
  })
  const etag = answer.headers.get('etag')!
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await request(`${issuer.url}/oidc/jwks`, { headers: { 'if-none-match': known } })
    expect(again).toMatchObject({ status: 304, body: '' })
    expect(again.headers.get('etag')).toBe(etag)
  }
  const other = await request(`${issuer.url}/oidc/jwks`, { headers: { 'if-none-match': '"other"' } })
  expect(other.status).toBe(200)
})

test('a standard client discovers the server, gets a token and validates it as RFC 9068 asks', async () => {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const url = new URL(issuer.issuer)
  const server = await oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, insecure))
  const resource = await issuer.createResource({ scopes: ['read:orders'] })
  const application = await issuer.createMachine(resource, ['read:orders'])

  const client = { client_id: application.id }
  const response = await oauth.clientCredentialsGrantRequest(
    server,
    client,
    oauth.ClientSecretBasic(application.secret!),
    new URLSearchParams({ resource, scope: 'read:orders' }),
    insecure,
  )
  const tokens = await oauth.processClientCredentialsResponse(server, client, response)
  const call = new Request(resource, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  const claims = await oauth.validateJwtAccessToken(server, call, resource, insecure)
  expect(claims).toMatchObject({ sub: application.id, client_id: application.id, scope: 'read:orders' })
})
