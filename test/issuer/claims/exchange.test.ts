import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type PutClaimsScript, putClaimsScript } from '../../support/claims-script.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/**
 * Custom claims in tokens: what a script is given, what becomes of what it answers, and what a refusal leaves behind.
 */

let issuer: TestIssuer
let app: TestApplication
let machine: TestApplication
let resource: string
let userId: string

beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  app = await issuer.createApplication({ name: 'Support desk' })
  machine = await issuer.createMachine(resource, ['read:orders'])
  userId = (await issuer.createUser({ name: 'Alice', customData: { plan: 'gold' } })).id
  await issuer.grantUser(userId, resource, ['read:orders'], 'Reader')
})

afterAll(() => issuer?.close())

beforeEach(async () => {
  await issuer.sql('DELETE FROM claims_scripts')
})

const put = (body: string, options?: PutClaimsScript) => putClaimsScript(issuer, body, options)

const exchange = async (context: object = {}, options?: { instance?: number }) =>
  issuer.exchange(app, await issuer.subjectToken(userId, { context }), { resource, scope: 'read:orders' }, options)

const claimsOf = async (answer: { status: number; body: { access_token: string } }) => {
  expect(answer).toMatchObject({ status: 200 })
  return issuer.verify(answer.body.access_token, resource)
}

test('a token without a script has no other claims than before', async () => {
  const claims = await claimsOf(await exchange())
  expect(Object.keys(claims).sort()).toEqual(['aud', 'client_id', 'exp', 'iat', 'iss', 'jti', 'scope', 'sid', 'sub'])
})

test('the script is told of user, client, grant and token, and what it returns becomes claims', async () => {
  const sso = await issuer.api('POST', '/sso-connectors', { providerName: 'OIDC', connectorName: 'Acme' })
  await issuer.database.pool.query(
    `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject, detail)
     VALUES ('one', $1, $2, 'https://idp.example', 'alice', '{"email": "alice@acme.example"}')`,
    [userId, sso.body.id],
  )
  await put('const { user, ...others } = context; return { token, user, others, key: environmentVariables.KEY }', {
    environmentVariables: { KEY: 'of the script' },
  })
  const claims = await claimsOf(await exchange({ ticketId: 'T-1' }))
  expect(claims).toMatchObject({
    key: 'of the script',
    token: {
      kind: 'AccessToken',
      gty: 'urn:ietf:params:oauth:grant-type:token-exchange',
      jti: claims.jti,
      aud: resource,
      scope: 'read:orders',
      clientId: app.id,
      accountId: userId,
      iat: claims.iat,
      exp: claims.exp,
      sid: claims['sid'],
    },
    user: {
      id: userId,
      username: null,
      primaryEmail: null,
      primaryPhone: null,
      name: 'Alice',
      avatar: null,
      customData: { plan: 'gold' },
      identities: {},
      profile: {},
      applicationId: null,
      lastSignInAt: null,
      createdAt: expect.any(Number),
      updatedAt: expect.any(Number),
      isSuspended: false,
      hasPassword: false,
      ssoIdentities: [
        {
          ...{ ssoConnectorId: sso.body.id, issuer: 'https://idp.example', identityId: 'alice' },
          detail: { email: 'alice@acme.example' },
        },
      ],
      mfaVerificationFactors: [],
      roles: [
        {
          id: expect.any(String),
          name: 'Reader',
          description: 'Reader',
          scopes: [
            {
              id: expect.any(String),
              name: 'read:orders',
              description: null,
              resourceId: expect.any(String),
              resource: { id: expect.any(String), name: resource, indicator: resource },
            },
          ],
        },
      ],
      organizations: [],
      organizationRoles: [],
    },
    others: {
      grant: {
        type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subjectTokenContext: { ticketId: 'T-1' },
      },
      application: {
        id: app.id,
        name: 'Support desk',
        description: null,
        type: 'Traditional',
        isThirdParty: false,
        customData: {},
      },
    },
  })
})

test('a script holds at once on every instance, and so does its end', async () => {
  await put('return { version: 1 }')
  expect(await claimsOf(await exchange({}, { instance: 1 }))).toMatchObject({ version: 1 })
  await put('return { version: 2 }')
  expect(await claimsOf(await exchange({}, { instance: 1 }))).toMatchObject({ version: 2 })
  expect(await claimsOf(await exchange({}, { instance: 0 }))).toMatchObject({ version: 2 })
  expect(await issuer.api('DELETE', '/configs/jwt-customizer/access-token')).toMatchObject({ status: 204 })
  for (const instance of [0, 1]) expect(await claimsOf(await exchange({}, { instance }))).not.toHaveProperty('version')
})

test('a denial answers access_denied with its message, and the subject token can still be exchanged', async () => {
  await put('if (!context.grant.subjectTokenContext.ticketId) api.denyAccess("A ticket is needed."); return {}')
  const subjectToken = await issuer.subjectToken(userId)
  const form = { resource, scope: 'read:orders' }
  expect(await issuer.exchange(app, subjectToken, form)).toMatchObject({
    status: 400,
    body: { error: 'access_denied', error_description: 'A ticket is needed.', reason: 'custom_claims' },
  })
  await issuer.api('DELETE', '/configs/jwt-customizer/access-token')
  expect(await issuer.exchange(app, subjectToken, form)).toMatchObject({ status: 200 })
  const rows = () =>
    issuer.sql(`SELECT payload->'error' AS error FROM logs WHERE result = 'Error' AND user_id = $1`, [userId])
  await expect.poll(rows).toContainEqual({
    error: { code: 'access_denied', reason: 'custom_claims', message: 'A ticket is needed.' },
  })
})

test('a denial that the script catches still stands, and holds for tokens that only userinfo accepts', async () => {
  await put('try { api.denyAccess("no") } catch {} return { a: 1 }')
  expect(await exchange()).toMatchObject({ status: 400, body: { error: 'access_denied' } })
  const opaque = await issuer.exchange(app, await issuer.subjectToken(userId), { scope: 'openid' })
  expect(opaque).toMatchObject({ status: 400, body: { error: 'access_denied' } })
})

test('a script that fails refuses the token and leaves the subject token usable; its message stays in the log', async () => {
  await put('throw new Error("of " + context.user.name + " with " + environmentVariables.KEY)', {
    environmentVariables: { KEY: 'sekret-of-the-script' },
  })
  const subjectToken = await issuer.subjectToken(userId)
  const answer = await issuer.exchange(app, subjectToken, { resource })
  expect(answer).toMatchObject({
    status: 400,
    body: { error: 'invalid_request', reason: 'custom_claims_failed' },
  })
  expect(JSON.stringify(answer.body)).not.toMatch(/Alice|sekret/)
  expect(issuer.logged()).toContain('Error: of Alice with [KEY]')
  expect(issuer.logged()).not.toContain('sekret-of-the-script')
  await issuer.api('DELETE', '/configs/jwt-customizer/access-token')
  expect(await issuer.exchange(app, subjectToken, { resource })).toMatchObject({ status: 200 })
})

test('with blockIssuanceOnError false a script that fails adds nothing; a denial is still a denial', async () => {
  await put('throw new Error("broken")', { blockIssuanceOnError: false })
  const claims = await claimsOf(await exchange())
  expect(Object.keys(claims)).toHaveLength(9)
  await put('api.denyAccess()', { blockIssuanceOnError: false })
  expect(await exchange()).toMatchObject({ status: 400, body: { error: 'access_denied' } })
})

test('claims of the issuer can be neither set nor removed', async () => {
  const names = [
    'iss',
    'sub',
    'aud',
    'exp',
    'nbf',
    'iat',
    'jti',
    'scope',
    'client_id',
    'act',
    'may_act',
    'cnf',
    'typ',
    'sid',
    'organization_id',
    'amr',
  ]
  await put(`return { ...Object.fromEntries(${JSON.stringify(names)}.map((name) => [name, 'forged'])), own: 1 }`)
  const claims = await claimsOf(await exchange())
  expect(Object.keys(claims).sort()).toEqual([
    'aud',
    'client_id',
    'exp',
    'iat',
    'iss',
    'jti',
    'own',
    'scope',
    'sid',
    'sub',
  ])
  expect(JSON.stringify(claims)).not.toContain('forged')
  expect(issuer.logged()).toContain('"dropped":["iss","sub","aud"')
  await put(`return Object.fromEntries(${JSON.stringify(names)}.map((name) => [name, undefined]))`)
  expect(await claimsOf(await exchange())).toMatchObject({ sub: userId, scope: 'read:orders' })
})

test('a machine-to-machine token has a script of its own', async () => {
  await put('return { for: "users" }')
  await put('return { for: context.application.id, kind: token.kind, user: typeof context.user }', {
    kind: 'client-credentials',
  })
  const token = await issuer.clientToken(machine, resource, 'read:orders')
  expect(await issuer.verify(token, resource)).toMatchObject({
    for: machine.id,
    kind: 'ClientCredentials',
    user: 'undefined',
    sub: machine.id,
  })
  await put('api.denyAccess("Not today.")', { kind: 'client-credentials' })
  const denied = await issuer.token(machine, { grant_type: 'client_credentials', resource, scope: 'read:orders' })
  expect(denied).toMatchObject({ status: 400, body: { error: 'access_denied', error_description: 'Not today.' } })

  const trail = async () =>
    issuer.sql(
      `SELECT payload FROM logs WHERE key = 'ExchangeTokenBy.ClientCredentials' AND result = 'Error' AND application_id = $1`,
      [machine.id],
    )
  await expect.poll(async () => (await trail()).length).toBe(1)
  expect((await trail())[0]).toMatchObject({
    payload: {
      params: { grant_type: 'client_credentials', resource, scope: 'read:orders' },
      ip: '127.0.0.1',
      error: { code: 'access_denied', reason: 'custom_claims', message: 'Not today.' },
    },
  })
})

test('an exchange of an access token and of a personal access token tells of the grant too', async () => {
  await put('return { seen: context.grant }')
  const created = await issuer.api('POST', `/users/${userId}/personal-access-tokens`, { name: 'for claims' })
  const answer = await issuer.token(app, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    client_id: app.id,
    subject_token: created.body.value,
    subject_token_type: 'urn:logto:token-type:personal_access_token',
    resource,
    scope: 'read:orders',
  })
  expect(await claimsOf(answer)).toMatchObject({
    amr: ['pat'],
    seen: { type: 'urn:ietf:params:oauth:grant-type:token-exchange', subjectTokenContext: {} },
  })
})

test('the organization of the request is told', async () => {
  await put(
    'return { organization: context.organization, of: context.user.organizations, roles: context.user.organizationRoles }',
  )
  const organization = (await issuer.api('POST', '/organizations', { name: 'ACME', customData: { region: 'eu' } })).body
  await issuer.api('POST', `/organizations/${organization.id}/users`, { userIds: [userId] })
  const role = (await issuer.api('POST', '/organization-roles', { name: 'Buyer' })).body
  await issuer.api('POST', `/organizations/${organization.id}/users/${userId}/roles`, {
    organizationRoleIds: [role.id],
  })
  const subject = await issuer.subjectToken(userId)
  const answer = await issuer.exchange(app, subject, {
    resource,
    scope: 'read:orders',
    organization_id: organization.id,
  })
  const expected = { id: organization.id, name: 'ACME', description: null, customData: { region: 'eu' } }
  expect(await claimsOf(answer)).toMatchObject({
    organization_id: organization.id,
    organization: expected,
    of: [expected],
    roles: [{ organizationId: organization.id, roleId: role.id, roleName: 'Buyer' }],
  })
})
