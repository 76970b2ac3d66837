import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { authorize } from '../../support/authorizations.ts'
import { putClaimsScript } from '../../support/claims-script.ts'
import { type FormValues, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** `GET /api/applications/:id/token-previews`: the claims of a token that there is not, beside those of a real one. */

const organizationsScope = 'urn:logto:scope:organizations'
const everything = ['orders:global', 'orders:read', 'orders:write']

let issuer: TestIssuer
let resource: string
let organization: string
let ada: string
let shop: TestApplication
let backend: TestApplication

const change = async (method: string, path: string, body?: unknown) => {
  const answer = await issuer.api(method, path, body)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}

beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: everything, ttl: 600 })
  await issuer.createResource({ indicator: 'https://api.example.test/other', scopes: ['other'] })
  shop = await issuer.createApplication({ type: 'SPA' })
  backend = await issuer.createApplication({ type: 'MachineToMachine' })
  ada = (await issuer.createUser({ name: 'Ada', customData: { plan: 'gold' } })).id
  await issuer.grantUser(ada, resource, ['orders:global'])
  await issuer.grantApplication(backend, resource, ['orders:global'])
  const [{ id: read }] = (await issuer.sql(`SELECT id FROM scopes WHERE name = 'orders:read'`)) as [{ id: string }]
  const { id: inside } = await change('POST', '/organization-scopes', { name: 'read' })
  await change('POST', '/organization-scopes', { name: 'write' })
  const role = async (name: string, type: string) => {
    const body = { name, type, organizationScopeIds: [inside], resourceScopeIds: [read] }
    return (await change('POST', '/organization-roles', body)).id as string
  }
  organization = (await change('POST', '/organizations', { name: 'Acme' })).id
  await change('POST', `/organizations/${organization}/users`, { userIds: [ada] })
  await change('PUT', `/organizations/${organization}/users/${ada}/roles`, {
    organizationRoleIds: [await role('reader', 'User')],
  })
  await change('POST', `/organizations/${organization}/applications`, { applicationIds: [backend.id] })
  await change('PUT', `/organizations/${organization}/applications/${backend.id}/roles`, {
    organizationRoleIds: [await role('machine', 'MachineToMachine')],
  })
})
afterAll(() => issuer?.close())
beforeEach(() => issuer.sql('DELETE FROM claims_scripts'))

const preview = async (client: TestApplication, query: Record<string, string> = {}) => {
  const answer = await issuer.api('GET', `/applications/${client.id}/token-previews?${new URLSearchParams(query)}`)
  return { status: answer.status, body: answer.body }
}
/** The claims of the one for a resource. */
const previewed = async (client: TestApplication, query: Record<string, string>) => {
  const { status, body } = await preview(client, { resource, ...query })
  expect({ status, ...body }).toMatchObject({ status: 200, more: false, tokens: [{ audience: resource }] })
  return body.tokens[0]
}

/** What the client of a person really gets for `form`, who signed in a moment ago and was asked for everything. */
const issuedTo = async (userId: string, audience: string, form: FormValues) => {
  const scopes = [organizationsScope, ...everything, 'read', 'write']
  const { redeem } = await authorize(issuer, shop, userId, { scopes, resources: [resource] })
  const { body } = await redeem(form)
  expect(body).toHaveProperty('access_token')
  return issuer.verify(body.access_token, audience)
}

/** What is new in each token. */
const passing = { iat: expect.any(Number), exp: expect.any(Number), jti: expect.any(String) }
const ofSignIn = { ...passing, auth_time: expect.any(Number), sid: expect.stringMatching(/^ps_/) }
const urn = () => `urn:logto:organization:${organization}`

const script = `return { plan: context.user.customData.plan, asked: token.scope, in: token.organizationId ?? null,
  roles: context.user.organizationRoles.map(({ roleName }) => roleName), gty: token.gty, how: context.interaction.interactionEvent }`

describe('of a person', () => {
  test('the claims are those of an issued token: by roles, by those in organizations, and of the script', async () => {
    await putClaimsScript(issuer, script)
    const { claims } = await previewed(shop, { userId: ada })
    expect(claims).toMatchObject({ scope: 'orders:global orders:read', plan: 'gold', roles: ['reader'], sub: ada })
    expect(claims.exp - claims.iat).toBe(600)
    expect({ ...(await issuedTo(ada, resource, { resource })), ...ofSignIn }).toEqual({ ...claims, ...ofSignIn })
    expect(claims).toMatchObject(ofSignIn)
  })

  test('the same in an organization, for a resource and for itself', async () => {
    await putClaimsScript(issuer, script)
    const inside = await previewed(shop, { userId: ada, organizationId: organization })
    expect(inside.claims).toMatchObject({ organization_id: organization, in: organization })
    const issued = await issuedTo(ada, resource, { resource, organization_id: organization })
    expect({ ...inside.claims, ...ofSignIn }).toEqual({ ...issued, ...ofSignIn })

    const { body } = await preview(shop, { userId: ada, organizationId: organization })
    expect(body.tokens.map(({ audience }: { audience: string }) => audience)).toEqual(
      expect.arrayContaining([urn(), resource, 'https://api.example.test/other']),
    )
    const itself = body.tokens.find(({ audience }: { audience: string }) => audience === urn())
    expect(itself.claims).toMatchObject({ aud: urn(), scope: 'read' })
    const issuedItself = await issuedTo(ada, urn(), { organization_id: organization })
    expect({ ...itself.claims, ...ofSignIn }).toEqual({ ...issuedItself, ...ofSignIn })
  })

  test('what the token endpoint would refuse is told: by the script, by the organization, by the person', async () => {
    const stranger = await issuer.createUser()
    expect(await previewed(shop, { userId: stranger.id, organizationId: organization })).toEqual({
      audience: resource,
      refused: { error: 'access_denied', message: 'The user is not a member of the organization.' },
    })
    const suspended = await issuer.createUser({ isSuspended: true })
    expect((await previewed(shop, { userId: suspended.id })).refused).toMatchObject({
      ...{ error: 'invalid_grant', reason: 'user_suspended' },
    })
    const partner = await issuer.createApplication({ type: 'SPA', isThirdParty: true })
    expect((await previewed(partner, { userId: ada })).refused).toMatchObject({ reason: 'consent_revoked' })
    expect((await previewed(backend, { userId: ada })).refused).toMatchObject({ error: 'unauthorized_client' })
    await putClaimsScript(issuer, `api.denyAccess('not on Sundays')`)
    expect((await previewed(shop, { userId: ada })).refused).toEqual({
      ...{ error: 'access_denied', reason: 'custom_claims', message: 'not on Sundays' },
    })
    await putClaimsScript(issuer, 'throw new Error("secret")', { blockIssuanceOnError: false })
    expect((await previewed(shop, { userId: ada })).claims).toMatchObject({ sub: ada })
    await putClaimsScript(issuer, 'throw new Error("secret")')
    const broken = await previewed(shop, { userId: ada })
    expect(broken.refused).toMatchObject({ error: 'invalid_request', reason: 'custom_claims_failed' })
    expect(JSON.stringify(broken)).not.toContain('secret')
  })
})

test('of an application for itself, with its own script, in an organization and without', async () => {
  await putClaimsScript(issuer, 'return { asked: token.scope, name: context.application.name }', {
    kind: 'client-credentials',
  })
  for (const form of [{ resource }, { resource, organization_id: organization }, { organization_id: organization }]) {
    const { organization_id: organizationId } = form as { organization_id?: string }
    const audience = 'resource' in form ? resource : urn()
    const scope = 'resource' in form ? everything.join(' ') : 'read write'
    const { body } = await issuer.token(backend, { grant_type: 'client_credentials', scope, ...form })
    const { tokens } = (await preview(backend, organizationId === undefined ? {} : { organizationId })).body
    const { claims } = tokens.find((one: { audience: string }) => one.audience === audience)
    expect({ ...claims, ...passing }).toEqual({ ...(await issuer.verify(body.access_token, audience)), ...passing })
  }
  expect((await previewed(shop, {})).refused).toMatchObject({ error: 'unauthorized_client' })
})

test('nothing is issued and nothing is written', async () => {
  await putClaimsScript(issuer, script)
  const tables = ['logs', 'sessions', 'authorizations', 'authorization_codes', 'refresh_tokens', 'opaque_tokens']
  const counts = async () =>
    issuer.sql(`SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`).join(', ')}`)
  const before = await counts()
  await preview(shop, { userId: ada })
  await preview(backend)
  await preview(shop)
  // Rows of grants are written a moment later, in order.
  await issuer.token(backend, { grant_type: 'client_credentials', resource })
  await expect
    .poll(async () => (await issuer.sql(`SELECT FROM logs WHERE key = 'ExchangeTokenBy.ClientCredentials'`)).length)
    .toBeGreaterThan(0)
  const [row] = (await counts()) as [Record<string, unknown>]
  expect({ ...row, logs: undefined }).toEqual({ ...before[0], logs: undefined })
  expect(
    await issuer.sql(`SELECT FROM logs WHERE key LIKE 'ExchangeTokenBy%' AND result = 'Error'
      AND payload->'error'->>'code' = 'unauthorized_client'`),
  ).toEqual([])
})

test('whoever and whatever there is not is 404; of the console there is no preview', async () => {
  expect((await preview({ id: 'nobody' }, { userId: ada })).status).toBe(404)
  expect((await preview({ id: 'surrogate-console' }, { userId: ada })).status).toBe(404)
  expect((await preview(shop, { userId: 'nobody' })).status).toBe(404)
  expect((await preview(shop, { userId: ada, resource: 'https://nowhere.test' })).status).toBe(404)
})
