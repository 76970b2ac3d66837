import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { newId } from '../../../../platform/ids.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { type CodeFlow, createCodeFlow, type Person } from '../../../support/code-flow.ts'

/** What third-party applications may ask people for, and the organizations that people let them act in. */

let issuer: TestIssuer
let flow: CodeFlow
let client: TestApplication
let person: Person
beforeAll(async () => {
  issuer = await startTestIssuer()
  flow = createCodeFlow(issuer)
})
afterAll(() => issuer.close())
beforeEach(async () => {
  const { body } = await issuer.api('POST', '/applications', {
    ...{ name: 'Partner', type: 'SPA', isThirdParty: true },
    oidcClientMetadata: { redirectUris: ['https://shop.example.test/callback'] },
  })
  client = { id: body.id }
  person = await flow.createPerson()
})

const scopesOf = ({ id }: TestApplication) => `/applications/${id}/user-consent-scopes`
const organizationsOf = ({ id }: TestApplication) => `/applications/${id}/users/${person.id}/consent-organizations`
const api = (method: string, path: string, body?: unknown) => issuer.api(method, path, body)
const made = async (method: string, path: string, body?: unknown) => {
  const answer = await api(method, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body
}
const resource = async (...names: string[]) => {
  const { id, indicator } = await made('POST', '/resources', { name: 'Orders', indicator: `https://${newId()}.test` })
  const scopes: { id: string; name: string }[] = []
  for (const name of names)
    scopes.push(await made('POST', `/resources/${id}/scopes`, { name, description: `To ${name}` }))
  const role = await made('POST', '/roles', { name: newId(), description: 'x', scopeIds: scopes.map((one) => one.id) })
  await made('POST', `/users/${person.id}/roles`, { roleIds: [role.id] })
  return { id, indicator: indicator as string, scopes }
}
const organization = async () => {
  const { id } = await made('POST', '/organizations', { name: `Org ${newId()}` })
  await made('POST', `/organizations/${id}/users`, { userIds: [person.id] })
  return id as string
}
/** Allowed on the page; the answer of the token endpoint. */
const allow = async (scope: string, more: Record<string, string> = {}, chosen: string[] = []) => {
  const browser = flow.browser()
  const page = await browser.submit(
    await flow.ask(browser, client, { scope, ...more }),
    flow.credentials(person),
  )
  const { location } = await browser.submit(
    { ...page, forms: [page.forms.at(-1)!] },
    { choice: 'allow', ...(chosen.length > 0 && { organizationIds: chosen }) },
  )
  const code = new URL(location!).searchParams.get('code')!
  return { text: page.text, answer: await flow.redeem(client, code) }
}

test('a new one may ask for nothing but who it is; what it is not allowed is not on the page and not granted', async () => {
  expect(await made('GET', scopesOf(client))).toEqual({
    ...{ organizationScopes: [], resourceScopes: [], organizationResourceScopes: [], userScopes: [] },
  })
  const { indicator } = await resource('read:orders')
  const asked = { resource: indicator }
  const { text, answer } = await allow('openid profile email offline_access read:orders', asked)
  expect(text).not.toContain('To read:orders')
  expect(answer).toMatchObject({ status: 200, body: { scope: 'openid offline_access' } })
  expect(await issuer.sql('SELECT scopes, resources FROM consents WHERE client_id = $1', [client.id])).toEqual([
    { scopes: ['openid', 'offline_access'], resources: { [indicator]: [] } },
  ])
  const refreshed = await flow.refresh(client, answer.body.refresh_token, 0, asked)
  expect(refreshed).toMatchObject({ status: 200, body: { scope: '' } })
})

test('what it is allowed it may ask for, and what is taken away ends at the next refresh', async () => {
  const { indicator, id, scopes } = await resource('read:orders', 'write:orders')
  const [read, write] = scopes as [{ id: string; name: string }, { id: string; name: string }]
  const input = { userScopes: ['profile'], resourceScopes: [read.id, write.id, read.id] }
  for (let count = 0; count < 2; count++) expect((await api('POST', scopesOf(client), input)).status).toBe(201)
  expect(await made('GET', scopesOf(client))).toEqual({
    organizationScopes: [],
    resourceScopes: [
      {
        resource: { id, name: 'Orders', indicator },
        scopes: [
          { id: read.id, name: 'read:orders', description: 'To read:orders' },
          { id: write.id, name: 'write:orders', description: 'To write:orders' },
        ],
      },
    ],
    organizationResourceScopes: [],
    userScopes: ['profile'],
  })
  const asked = { resource: indicator }
  const { text, answer } = await allow('openid profile offline_access read:orders write:orders', asked)
  expect(text).toContain('To write:orders')
  expect(answer.body.scope).toBe('openid profile offline_access')
  const first = await flow.refresh(client, answer.body.refresh_token, 0, asked)
  expect(first.body.scope).toBe('read:orders write:orders')
  expect((await api('DELETE', `${scopesOf(client)}/resource-scopes/${write.id}`)).status).toBe(204)
  expect((await api('DELETE', `${scopesOf(client)}/user-scopes/profile`)).status).toBe(204)
  const second = await flow.refresh(client, first.body.refresh_token, 0, asked)
  expect(second.body.scope).toBe('read:orders')
  const third = await flow.refresh(client, second.body.refresh_token)
  expect(third.body.scope).toBe('openid offline_access')
  expect(await api('DELETE', `${scopesOf(client)}/resource-scopes/${write.id}`)).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found' },
  })
})

test('scopes within organizations are apart from those for itself, and tokens only of organizations that were chosen', async () => {
  const { indicator, scopes } = await resource('read:orders')
  const organizationScopes = [(await made('POST', '/organization-scopes', { name: `invite:${newId()}` })).id as string]
  const [chosen, other] = [await organization(), await organization()]
  await made('POST', scopesOf(client), {
    ...{ organizationScopes, organizationResourceScopes: [scopes[0]!.id] },
    userScopes: ['urn:logto:scope:organizations'],
  })
  const scope = 'openid offline_access urn:logto:scope:organizations read:orders'
  const { answer } = await allow(scope, { resource: indicator }, [chosen])
  const inOrganization = { resource: indicator, organization_id: chosen }
  const within = await flow.refresh(client, answer.body.refresh_token, 0, inOrganization)
  expect(within.body.scope).toBe('read:orders')
  const alone = await flow.refresh(client, within.body.refresh_token, 0, { resource: indicator })
  expect(alone.body.scope).toBe('')
  const elsewhere = { resource: indicator, organization_id: other }
  const refused = await flow.refresh(client, alone.body.refresh_token, 0, elsewhere)
  expect(refused).toMatchObject({ status: 403, body: { error: 'access_denied' } })
  // An administrator allows the other one, and takes it away again.
  expect((await api('POST', organizationsOf(client), { organizationIds: [other] })).status).toBe(201)
  const listed = await made('GET', organizationsOf(client))
  expect(listed.organizations.map(({ id }: { id: string }) => id).toSorted()).toEqual([chosen, other].toSorted())
  expect((await flow.refresh(client, alone.body.refresh_token, 0, elsewhere)).status).toBe(200)
  expect((await api('DELETE', `${organizationsOf(client)}/${other}`)).status).toBe(204)
  expect((await flow.refresh(client, alone.body.refresh_token, 0, elsewhere)).status).toBe(403)
  expect((await api('DELETE', `${organizationsOf(client)}/${other}`)).status).toBe(404)
  expect((await api('PUT', organizationsOf(client), { organizationIds: [] })).status).toBe(204)
  expect(await made('GET', organizationsOf(client))).toEqual({ organizations: [] })
})

test('what does not fit is refused, and nothing of it stays', async () => {
  const own = await flow.createClient()
  const { scopes } = await resource('read:orders')
  const [management] = await issuer.sql<{ id: string }>(
    'SELECT s.id FROM scopes s JOIN resources r ON r.id = s.resource_id WHERE r.is_management LIMIT 1',
  )
  const refusals: [string, string, object | undefined, number, string][] = [
    ['GET', scopesOf(own), undefined, 422, 'application.third_party_application_only'],
    ['POST', scopesOf(own), { userScopes: ['profile'] }, 422, 'application.third_party_application_only'],
    ['GET', scopesOf({ id: 'nobody' }), undefined, 404, 'entity.not_exists_with_id'],
    ['POST', scopesOf(client), { userScopes: ['everything'] }, 400, 'guard.invalid_input'],
    [
      'POST',
      scopesOf(client),
      { userScopes: ['profile'], resourceScopes: [scopes[0]!.id, 'unknown'] },
      422,
      'application.user_consent_scopes_not_found',
    ],
    ['POST', scopesOf(client), { organizationScopes: ['unknown'] }, 422, 'application.user_consent_scopes_not_found'],
    [
      'POST',
      scopesOf(client),
      { resourceScopes: [management!.id] },
      422,
      'application.consent_management_api_scopes_not_allowed',
    ],
    ['DELETE', `${scopesOf(client)}/other-scopes/${scopes[0]!.id}`, undefined, 400, 'guard.invalid_input'],
    // Nobody has allowed it anything.
    ['PUT', organizationsOf(client), { organizationIds: [] }, 404, 'entity.not_found'],
  ]
  for (const [method, path, body, status, code] of refusals)
    expect(await api(method, path, body), `${method} ${path}`).toMatchObject({ status, body: { code } })
  expect(await made('GET', scopesOf(client))).toMatchObject({ resourceScopes: [], userScopes: [] })
})

test('only organizations of the person: a foreign one is refused', async () => {
  await allow('openid')
  const { id } = await made('POST', '/organizations', { name: 'Foreign' })
  const mine = await organization()
  for (const method of ['POST', 'PUT'])
    expect(await api(method, organizationsOf(client), { organizationIds: [mine, id] })).toMatchObject({
      status: 422,
      body: { code: 'organization.require_membership' },
    })
  expect(await made('GET', organizationsOf(client))).toEqual({ organizations: [] })
})
