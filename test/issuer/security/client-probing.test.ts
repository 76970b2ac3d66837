import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAuthenticateClient } from '../../../issuer/protocol/clients/authenticate-client.ts'
import { findTokenRequestFacts } from '../../../issuer/protocol/clients/token-request-store.ts'
import { parseForm } from '../../../issuer/protocol/requests/parameters.ts'
import type { Query } from '../../../platform/database/database.ts'
import { generateClientKey, type KeyClient, registerKeyClient } from '../../support/client-keys.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** What somebody learns who asks for tokens without being a client. */

let issuer: TestIssuer
let resource: string
let machine: TestApplication
let page: TestApplication
let signer: KeyClient
beforeAll(async () => {
  issuer = await startTestIssuer({ config: { rateLimits: { failedAuthentications: 100_000 } } })
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  machine = await issuer.createApplication({ type: 'MachineToMachine' })
  page = await issuer.createApplication({ type: 'SPA' })
  signer = await registerKeyClient(issuer)
})
afterAll(() => issuer.close())

const good = () => ({ grant_type: 'client_credentials', resource, scope: 'read:orders' })

/** Requests that must all look the same from outside. */
const probes = async (): Promise<Record<string, { form: Record<string, string>; authorization?: string }>> => {
  const { privateKey } = await generateClientKey()
  const forged = (id: string) => signer.assertion({ claims: { iss: id, sub: id }, key: privateKey })
  return {
    'an unknown client': { form: {}, authorization: basic({ id: 'nobody', secret: 'wrong' }) },
    'a wrong secret': { form: {}, authorization: basic({ id: machine.id, secret: 'wrong' }) },
    'a secret of another client': {
      form: {},
      authorization: basic({ id: machine.id, secret: issuer.bootstrap.secret! }),
    },
    'a secret for a client that uses a key': { form: {}, authorization: basic({ id: signer.id, secret: 'wrong' }) },
    'a secret for a public client': { form: {}, authorization: basic({ id: page.id, secret: 'wrong' }) },
    'a forged assertion': { form: await forged(signer.id) },
    'an assertion of an unknown client': { form: await forged('nobody') },
    'an assertion for a client that uses a secret': { form: await forged(machine.id) },
    'no secret': { form: { client_id: machine.id } },
    'no secret, unknown client': { form: { client_id: 'nobody' } },
  }
}

// Which clients exist is nobody's business: neither the answer nor the work behind it depends on it.
test('an unknown client gets the answer of a wrong secret, to the byte', async () => {
  const answers = await Promise.all(
    Object.values(await probes()).map(async ({ form, authorization }) => {
      const response = await fetch(`${issuer.url}/oidc/token`, {
        method: 'POST',
        headers: authorization === undefined ? {} : { authorization },
        body: formOf({ ...good(), ...form }),
      })
      const headers = Object.fromEntries(response.headers)
      // Different in every answer.
      for (const name of ['date', 'logto-core-request-id']) delete headers[name]
      return JSON.stringify({ status: response.status, headers, body: await response.text() })
    }),
  )
  expect(new Set(answers)).toHaveLength(1)
})

// Times differ when work differs, and on a busy machine also when it does not: so the work is compared.
test('an unknown client costs the look-ups of a wrong secret', async () => {
  const lookups: Record<string, string[]> = {}
  for (const [name, { form, authorization }] of Object.entries(await probes())) {
    const seen: string[] = []
    lookups[name] = seen
    const query: Query = (statement, values) => {
      seen.push(statement.name)
      return issuer.database.query(statement, values)
    }
    const authenticate = createAuthenticateClient({
      query,
      issuer: issuer.issuer,
      limits: { refuseGuessing() {}, countSuccess() {}, async countFailure() {} },
      addressOf: () => '192.0.2.1',
      now: () => new Date(),
    })
    const headers = authorization === undefined ? {} : { authorization }
    const attempt = authenticate({ headers } as never, parseForm(formOf(form).toString()), (clientId) =>
      findTokenRequestFacts(query, { clientId, resource, useDefaultResource: false, scopes: ['read:orders'] }),
    )
    await expect(attempt).rejects.toMatchObject({ error: 'invalid_client' })
  }
  expect(Object.values(lookups)).toEqual(Object.keys(lookups).map(() => ['token-request']))
})

describe('nothing of a refused request is told to a client that is not proven:', () => {
  test.each([
    ['whether the resource exists', { resource: 'https://unknown.example' }],
    ['whether the scope exists', { scope: 'no:such' }],
    ['whether the grant exists', { grant_type: 'no-such-grant' }],
    ['whether a subject token exists', { grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange' }],
  ])('%s', async (_, form) => {
    const answer = await issuer.token({ id: machine.id, secret: 'wrong' }, { ...good(), ...form })
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })
})

test('a refused client uses up no subject token', async () => {
  const user = await issuer.createUser()
  const web = await issuer.createApplication()
  const subjectToken = await issuer.subjectToken(user.id)
  expect((await issuer.exchange({ ...web, secret: 'wrong' }, subjectToken, { resource })).status).toBe(401)
  expect((await issuer.exchange(web, subjectToken, { resource })).status).toBe(200)
})

test('a management token opens nothing else, and nothing else opens the Management API', async () => {
  const management = await issuer.managementToken()
  await expect(issuer.verify(management, resource)).rejects.toThrow(/aud/)
  const other = await issuer.clientToken(machine, resource, '')
  expect(await issuer.api('GET', '/users', undefined, { token: other })).toMatchObject({ status: 401 })
  const alike = await issuer.createResource({ indicator: `${issuer.managementResource}/`, scopes: ['all'] })
  await issuer.grantApplication(machine, alike, ['all'])
  const token = await issuer.clientToken(machine, alike, 'all')
  expect(await issuer.api('GET', '/users', undefined, { token })).toMatchObject({ status: 401 })
})

test('an indicator that is no absolute URI, or has a fragment, is registered by nobody', async () => {
  for (const indicator of ['orders', '/orders', 'https://api.example.test/#part', 'https://', '']) {
    expect(await issuer.api('POST', '/resources', { name: 'x', indicator })).toMatchObject({ status: 400 })
  }
})

test('no secret, proof or token of a refused request stands in the log', async () => {
  const secret = 'a-secret-that-must-not-be-logged'
  const form = { ...good(), subject_token: `sub_${secret}`, client_assertion: secret, code: secret }
  const authorization = `Basic ${btoa(`${machine.id}:${secret}`)}`
  const send = (headers: Record<string, string>, body: Record<string, string>, url = `${issuer.url}/oidc/token`) =>
    request(url, { method: 'POST', headers, body: formOf(body) })
  await send({ authorization }, form)
  await send({}, { ...form, client_id: machine.id, client_secret: secret })
  await send({ authorization: `Bearer ${secret}` }, form)
  await send({}, form, `${issuer.url}/oidc/token?client_secret=${secret}`)
  await request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${secret}` } })
  await send({ authorization }, { token: secret }, `${issuer.url}/oidc/token/introspection`)
  expect(issuer.logged()).not.toContain(secret)
  expect(issuer.logged()).not.toContain(btoa(`${machine.id}:${secret}`))
})
