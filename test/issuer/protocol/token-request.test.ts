import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { basic, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let resource: string
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  client = await issuer.createMachine(resource, ['read:orders'])
})
afterAll(() => issuer.close())

const form = 'application/x-www-form-urlencoded'

const send = (body: string | Uint8Array<ArrayBuffer>, contentType = form) =>
  request(`${issuer.url}/oidc/token`, {
    method: 'POST',
    headers: { authorization: basic(client), 'content-type': contentType },
    body,
  })

const good = () => `grant_type=client_credentials&resource=${encodeURIComponent(resource)}&scope=read%3Aorders`

test('only POST is answered', async () => {
  const answer = await request(`${issuer.url}/oidc/token`)
  expect(answer).toMatchObject({ status: 405, body: { error: 'invalid_request' } })
  expect(answer.headers.get('allow')).toBe('POST, OPTIONS')
})

test('a JSON body means the same as the form', async () => {
  const body = { grant_type: 'client_credentials', resource, scope: 'read:orders' }
  expect(await send(JSON.stringify(body), 'application/json; charset=utf-8')).toMatchObject({
    status: 200,
    body: { scope: 'read:orders' },
  })
  expect((await send(JSON.stringify({ ...body, resource: [resource] }), 'application/json')).status).toBe(200)
})

describe('bodies that mean nothing, or two things, are 400:', () => {
  const json = 'application/json'
  const cases: Record<string, [body: () => string | Uint8Array<ArrayBuffer>, contentType?: string]> = {
    'no grant_type': [() => 'scope=read'],
    'an empty grant_type': [() => 'grant_type=&scope=read'],
    'a repeated grant_type': [() => `${good()}&grant_type=client_credentials`],
    'a repeated scope': [() => `${good()}&scope=read%3Aorders`],
    'a repeated parameter under another spelling': [() => `${good()}&%73cope=read%3Aorders`],
    'a repeated parameter without a value': [() => `${good()}&scope=`],
    'a NUL': [() => `${good()}&x=%00`],
    'a bad percent-escape': [() => `${good()}&x=%zz`],
    'an unpaired surrogate in percent-escapes': [() => `${good()}&x=%ED%A0%80`],
    'bytes that are not UTF-8': [() => Uint8Array.from([0x67, 0x3d, 0xff])],
    'no JSON': [() => '{"grant_type":', json],
    'a JSON list': [() => '["client_credentials"]', json],
    'a repeated JSON member': [() => '{"grant_type":"client_credentials","grant_type":"client_credentials"}', json],
    'a JSON member that is no string': [() => '{"grant_type":["client_credentials"]}', json],
    'an unpaired surrogate in JSON': [() => '{"grant_type":"client_credentials","x":"\\ud800"}', json],
    'a NUL in JSON': [() => '{"grant_type":"client_credentials","x":"\\u0000"}', json],
  }
  test.each(Object.entries(cases))('%s', async (_, [body, contentType]) => {
    expect(await send(body(), contentType)).toMatchObject({
      status: 400,
      body: { error: 'invalid_request', code: 'oidc.invalid_request', message: expect.any(String) },
    })
  })
})

test('another content type is 415', async () => {
  expect(await send(good(), 'text/plain')).toMatchObject({ status: 415, body: { error: 'invalid_request' } })
  expect(await send(good(), '__proto__')).toMatchObject({ status: 415, body: { error: 'invalid_request' } })
})

test('an unknown grant type is named as such, whatever objects inherit', async () => {
  for (const grantType of ['password', '__proto__', 'constructor', 'toString']) {
    expect(await send(`grant_type=${grantType}`)).toMatchObject({
      status: 400,
      body: { error: 'unsupported_grant_type' },
    })
  }
})

// CVE-2026-9704: an oversized parameter was dropped and the request served without it.
test('a body over the limit is 413 and not a request without its last part', async () => {
  const atLimit = `${good()}&pad=`.padEnd(65_536, 'x')
  expect((await send(atLimit)).status).toBe(200)
  for (const length of [65_537, 200_000, 3_000_000]) {
    const answer = await send(`${good()}&subject_token=`.padEnd(length, 'x')).catch((error) => error)
    // A sender far over the limit may be cut off while it still writes.
    if (!(answer instanceof Error)) expect(answer).toMatchObject({ status: 413, body: { error: 'invalid_request' } })
    else expect(length).toBe(3_000_000)
  }
})

test('a client-credentials answer is whole, kept by no cache, and has no refresh token', async () => {
  const answer = await send(`${good()}%20offline_access`)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    access_token: expect.any(String),
    token_type: 'Bearer',
    expires_in: 3600,
    scope: 'read:orders',
  })
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await issuer.verify(answer.body.access_token, resource)).toEqual({
    iss: issuer.issuer,
    sub: client.id,
    client_id: client.id,
    aud: resource,
    scope: 'read:orders',
    jti: expect.any(String),
    iat: expect.any(Number),
    exp: expect.any(Number),
  })
})

test('other origins get no permission to read answers', async () => {
  for (const origin of ['https://evil.example', 'null']) {
    const answer = await request(`${issuer.url}/oidc/token`, {
      method: 'POST',
      headers: { authorization: basic(client), 'content-type': form, origin },
      body: good(),
    })
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  }
})

test('every answer carries a request id of its own', async () => {
  const answers = await Promise.all([
    send(good()),
    send('grant_type=none'),
    request(`${issuer.url}/oidc/jwks`),
    request(`${issuer.url}/oidc/nothing`),
    request(`${issuer.url}/api/users`),
    request(`${issuer.url}/nothing`),
  ])
  const ids = answers.map(({ headers }) => headers.get('logto-core-request-id'))
  expect(ids.every((id) => id !== null && id !== '')).toBe(true)
  expect(new Set(ids).size).toBe(answers.length)
})

test('an unknown route of the protocol answers in its own form', async () => {
  const answer = await request(`${issuer.url}/oidc/nothing`)
  expect(answer).toMatchObject({ status: 404, body: { error: 'invalid_request', code: 'oidc.invalid_request' } })
})
