import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Answer,
  basic,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
  tokenExchange,
} from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let resource: string
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  client = await issuer.createApplication({ type: 'MachineToMachine' })
})
afterAll(() => issuer.close())

const post = (form: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${issuer.url}/oidc/token`, { method: 'POST', headers, body: formOf(form) })

const credentials = (form: Record<string, string> = {}) => ({ grant_type: 'client_credentials', resource, ...form })

const encoded = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })

const invalidClient = {
  error: 'invalid_client',
  error_description: 'Client authentication failed.',
  code: 'oidc.invalid_client',
  message: 'Client authentication failed.',
}

const expectInvalidClient = (answer: Answer) => {
  expect(answer.status).toBe(401)
  expect(answer.body).toEqual(invalidClient)
  expect(answer.headers.get('www-authenticate')).toBe('Basic realm="surrogate", charset="UTF-8"')
  expect(answer.headers.get('cache-control')).toBe('no-store')
}

test('the secret is accepted in the Basic header and in the body', async () => {
  expect((await post(credentials(), { authorization: basic(client) })).status).toBe(200)
  expect((await post(credentials({ client_id: client.id, client_secret: client.secret! }))).status).toBe(200)
  // RFC 9110 §11.1: schemes are case-insensitive.
  expect((await post(credentials(), { authorization: basic(client).replace('Basic', 'bAsIc') })).status).toBe(200)
})

test('a client that holds a secret cannot exchange without it', async () => {
  const application = await issuer.createApplication()
  const user = await issuer.createUser()
  const subject_token = await issuer.subjectToken(user.id)
  const form = {
    grant_type: tokenExchange,
    client_id: application.id,
    subject_token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    resource,
  }
  expectInvalidClient(await post(form))
  expect((await post(form, { authorization: basic(application) })).status).toBe(200)
})

test('unknown client, wrong secret, another client’s secret, no secret and no client get one and the same answer', async () => {
  const other = await issuer.createApplication({ type: 'MachineToMachine' })
  const attempts = [
    post(credentials(), { authorization: basic({ ...client, secret: 'wrong' }) }),
    post(credentials(), { authorization: basic({ id: 'nobody', secret: client.secret! }) }),
    post(credentials(), { authorization: basic({ id: client.id, secret: other.secret! }) }),
    post(credentials({ client_id: client.id, client_secret: 'wrong' })),
    post(credentials({ client_id: 'nobody', client_secret: 'wrong' })),
    post(credentials({ client_id: client.id })),
    post(credentials({ client_secret: client.secret! })),
    post(credentials()),
  ]
  for (const answer of await Promise.all(attempts)) expectInvalidClient(answer)
})

test('a public client that sends a secret is refused, and needs none', async () => {
  const native = await issuer.createApplication({ type: 'Native' })
  expectInvalidClient(await post(credentials({ client_id: native.id, client_secret: 'guess' })))
  expect((await post(credentials({ client_id: native.id }))).body.error).toBe('unauthorized_client')
})

describe('a Basic header that cannot be read is 401, never 500:', () => {
  const headers: Record<string, string> = {
    'not base64': 'Basic !!!!',
    'no colon': `Basic ${Buffer.from('nocolon').toString('base64')}`,
    'no id': `Basic ${Buffer.from(':secret').toString('base64')}`,
    'a bad percent-escape': `Basic ${Buffer.from('%zz:%zz').toString('base64')}`,
    'a NUL': `Basic ${Buffer.from('a\0b:c').toString('base64')}`,
    'a percent-escaped NUL': `Basic ${Buffer.from('a%00b:c').toString('base64')}`,
    'a percent-escaped NUL in the secret': `Basic ${Buffer.from('a:b%00c').toString('base64')}`,
    'bytes that are not UTF-8': `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0x61]).toString('base64')}`,
    'no credentials': 'Basic ',
    'another scheme': 'Bearer abc',
  }
  test.each(Object.entries(headers))('%s', async (_, authorization) => {
    expectInvalidClient(await post(credentials(), { authorization }))
  })
})

test('two ways to authenticate at once are an error', async () => {
  const answer = await post(credentials({ client_secret: client.secret! }), { authorization: basic(client) })
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
})

test('a body that names another client than the header is an error', async () => {
  const answer = await post(credentials({ client_id: 'another' }), { authorization: basic(client) })
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect((await post(credentials({ client_id: client.id }), { authorization: basic(client) })).status).toBe(200)
})

describe('secrets with characters that form-encoding changes are accepted encoded and raw:', () => {
  test.each(['a:b:c', '100%25+more', 'plus+plus', 'Schlüssel-€', 'sp ace', '50%'])('%s', async (value) => {
    const application = await issuer.createApplication({ type: 'MachineToMachine', secret: value })
    const formEncoded = new URLSearchParams({ v: value }).toString().slice(2)
    expect((await post(credentials(), encoded(`${application.id}:${value}`))).status).toBe(200)
    expect((await post(credentials(), encoded(`${application.id}:${formEncoded}`))).status).toBe(200)
  })
})

test('each of several secrets works until it expires or is deleted', async () => {
  const application = await issuer.createApplication({ type: 'MachineToMachine' })
  const asks = (secret: string) => issuer.token({ id: application.id, secret }, credentials())
  await issuer.addSecret(application, { name: 'next', value: 'the-next-one', expiresAt: new Date(Date.now() + 60_000) })
  await issuer.addSecret(application, { name: 'old', value: 'the-old-one', expiresAt: new Date(Date.now() - 1) })
  expect((await asks('the-next-one')).status).toBe(200)
  expect((await asks(application.secret!)).status).toBe(200)
  expectInvalidClient(await asks('the-old-one'))
  await issuer.sql(`DELETE FROM application_secrets WHERE application_id = $1 AND name = 'next'`, [application.id])
  expectInvalidClient(await asks('the-next-one'))
  expect((await asks(application.secret!)).status).toBe(200)
})

test('a grant that is not the client’s is refused by name', async () => {
  const web = await issuer.createApplication({ type: 'Traditional' })
  const thirdParty = await issuer.createApplication({ isThirdParty: true, allowTokenExchange: true })
  const withoutExchange = await issuer.createApplication({ allowTokenExchange: false })
  const refused = { status: 400, body: { error: 'unauthorized_client', code: 'oidc.unauthorized_client' } }
  expect(await issuer.token(web, credentials())).toMatchObject(refused)
  expect(await issuer.exchange(thirdParty, 'sub_x')).toMatchObject(refused)
  expect(await issuer.exchange(withoutExchange, 'sub_x')).toMatchObject(refused)
})

test('a secret in the URL is refused and stands in no log', async () => {
  const url = `${issuer.url}/oidc/token?client_id=${client.id}&client_secret=${client.secret}`
  const answer = await request(url, { method: 'POST', body: formOf(credentials()) })
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(issuer.logged()).not.toContain(client.secret)
})
