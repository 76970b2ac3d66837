import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../platform/ids.ts'
import { type FormValues, startTestIssuer, type TestIssuer, tokenExchange } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** `organization_id`: tokens for an organization, and tokens for a resource in one. */

let issuer: TestIssuer
let resource: string
/** In the organizations: `read` and `write`; on the resource: `orders:read` and `orders:write`. */
let reader: string
let writer: string
let machine: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: ['orders:read', 'orders:write', 'orders:global'], ttl: 600 })
  const scope = async (name: string) => (await change('POST', '/organization-scopes', { name })).id
  const [read, write] = [await scope('read'), await scope('write')]
  const onResource = async (name: string) =>
    (await issuer.sql<{ id: string }>('SELECT id FROM scopes WHERE name = $1', [name]))[0]!.id
  const role = async (name: string, organizationScopeIds: string[], resourceScopes: string[], type = 'User') => {
    const resourceScopeIds = await Promise.all(resourceScopes.map(onResource))
    const body = { name, type, organizationScopeIds, resourceScopeIds }
    return (await change('POST', '/organization-roles', body)).id as string
  }
  reader = await role('reader', [read], ['orders:read'])
  writer = await role('writer', [read, write], ['orders:write'])
  machine = await role('machine', [read], ['orders:read'], 'MachineToMachine')
})
afterAll(() => issuer.close())

const change = async (method: string, path: string, body?: unknown) => {
  const answer = await issuer.api(method, path, body)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}

/** An organization with this user, who has these roles there. */
const organizationWith = async (userId: string, ...organizationRoleIds: string[]) => {
  const { id } = await change('POST', '/organizations', { name: 'Acme' })
  await change('POST', `/organizations/${id}/users`, { userIds: [userId] })
  await change('PUT', `/organizations/${id}/users/${userId}/roles`, { organizationRoleIds })
  return id as string
}
/** The same with a machine-to-machine application. */
const organizationOf = async ({ id: applicationId }: TestApplication, ...organizationRoleIds: string[]) => {
  const { id } = await change('POST', '/organizations', { name: 'Acme' })
  await change('POST', `/organizations/${id}/applications`, { applicationIds: [applicationId] })
  await change('PUT', `/organizations/${id}/applications/${applicationId}/roles`, { organizationRoleIds })
  return id as string
}

const urn = (id: string) => `urn:logto:organization:${id}`
const denied = (description: string) => ({
  status: 403,
  body: {
    error: 'access_denied',
    error_description: description,
    code: 'oidc.access_denied',
    message: description,
  },
})
const notMember = denied('The user is not a member of the organization.')
const notAssociated = denied('The application does not belong to the organization.')

/** The names of the statements that `work` sends from the token path; the audit trail's batches come when they come. */
const statementsOf = async (work: () => Promise<unknown>): Promise<string[]> => {
  const { database } = issuer
  const { query } = database
  const names: string[] = []
  database.query = (statement, values) => {
    if (statement.name !== 'logs-insert') names.push(statement.name)
    return query(statement, values)
  }
  await work().finally(() => {
    database.query = query
  })
  return names
}

describe('client credentials', () => {
  const backend = () => issuer.createApplication({ type: 'MachineToMachine' })
  const ask = (client: TestApplication, form: FormValues) =>
    issuer.token(client, { grant_type: 'client_credentials', ...form })

  test('without a resource: a token for the organization, with what the roles of the application carry there', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    const answer = await ask(client, { organization_id: organization, scope: 'write read' })
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600, scope: 'read' } })
    const { iat = 0, ...claims } = await issuer.verify(answer.body.access_token, urn(organization))
    expect(claims).toEqual({
      iss: issuer.issuer,
      sub: client.id,
      aud: urn(organization),
      client_id: client.id,
      scope: 'read',
      exp: iat + 3600,
      jti: expect.any(String),
      organization_id: organization,
    })
  })

  test('with a resource: a token for that, with the scopes of both kinds of roles and the claim organization_id', async () => {
    const client = await backend()
    await issuer.grantApplication(client, resource, ['orders:global'])
    const organization = await organizationOf(client, machine)
    const scope = 'orders:read orders:write orders:global'
    const answer = await ask(client, { organization_id: organization, resource, scope })
    expect(answer).toMatchObject({ status: 200, body: { expires_in: 600, scope: 'orders:read orders:global' } })
    expect(await issuer.verify(answer.body.access_token, resource)).toMatchObject({
      aud: resource,
      scope: 'orders:read orders:global',
      organization_id: organization,
    })
    // Roles of organizations count in them alone.
    const outside = await ask(client, { resource, scope })
    expect(outside.body.scope).toBe('orders:global')
    expect(await issuer.verify(outside.body.access_token, resource)).not.toHaveProperty('organization_id')
  })

  test('the resource that stands for organizations means the one that is named', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    const form = { resource: 'urn:logto:resource:organizations', scope: 'read' }
    const answer = await ask(client, { ...form, organization_id: organization })
    expect(await issuer.verify(answer.body.access_token, urn(organization))).toMatchObject({ scope: 'read' })
    expect(await ask(client, form)).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })

  test('the default resource is not asked for by who names an organization', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    await issuer.sql('UPDATE resources SET is_default = true WHERE indicator = $1', [resource])
    const answer = await ask(client, { organization_id: organization, scope: 'read' })
    await issuer.sql('UPDATE resources SET is_default = false')
    expect(await issuer.verify(answer.body.access_token, urn(organization))).toMatchObject({ scope: 'read' })
  })

  test('nothing asked for or nothing held is an empty scope', async () => {
    const client = await backend()
    const organization = await organizationOf(client)
    for (const scope of [undefined, 'read', 'openid']) {
      expect(await ask(client, { organization_id: organization, scope })).toMatchObject({
        status: 200,
        body: { scope: '' },
      })
    }
  })

  test('a scope that does not exist is named', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    const invalid = {
      status: 400,
      body: { error: 'invalid_scope', error_description: expect.stringContaining('reads') },
    }
    expect(await ask(client, { organization_id: organization, scope: 'read reads' })).toMatchObject(invalid)
    expect(await ask(client, { organization_id: organization, resource, scope: 'reads' })).toMatchObject(invalid)
    // Permissions inside organizations are not those of a resource, nor the other way round.
    for (const form of [{ scope: 'orders:read' }, { resource, scope: 'read' }]) {
      expect(await ask(client, { organization_id: organization, ...form })).toMatchObject({
        status: 400,
        body: { error: 'invalid_scope' },
      })
    }
  })

  test('is refused to an application that does not belong to it, before anything else is said', async () => {
    const [client, other] = [await backend(), await backend()]
    const organization = await organizationOf(other, machine)
    for (const id of [organization, 'none', 'x'.repeat(5_000), `${organization} `, organization.toUpperCase()]) {
      expect(await ask(client, { organization_id: id, scope: 'read' })).toMatchObject(notAssociated)
      expect(await ask(client, { organization_id: id, resource, scope: 'nonsense' })).toMatchObject(notAssociated)
      expect(await ask(client, { organization_id: id, resource: 'https://unknown.test' })).toMatchObject(notAssociated)
    }
    expect(await ask(other, { organization_id: organization, resource: 'https://unknown.test' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_target' },
    })
  })

  test('shows changes in the next token', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    const form = { organization_id: organization, scope: 'read write' }
    const roles = `/organizations/${organization}/applications/${client.id}/roles`
    expect((await ask(client, form)).body.scope).toBe('read')
    await change('DELETE', `${roles}/${machine}`)
    expect((await ask(client, form)).body.scope).toBe('')
    await change('DELETE', `/organizations/${organization}/applications/${client.id}`)
    expect(await ask(client, form)).toMatchObject(notAssociated)
  })

  test('never grants the Management API, however it came onto a role of an organization', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    await issuer.sql(
      `INSERT INTO organization_role_resource_scopes SELECT $1, s.id FROM scopes s JOIN resources r ON r.id = s.resource_id
       WHERE r.indicator = $2`,
      [machine, issuer.managementResource],
    )
    const answer = await ask(client, {
      organization_id: organization,
      resource: issuer.managementResource,
      scope: 'all users',
    })
    expect(answer.body.scope).toBe('')
  })

  test('takes two round trips, and one without an organization', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    await issuer.grantApplication(client, resource, ['orders:global'])
    const form = { resource, scope: 'orders:read' }
    expect(await statementsOf(() => ask(client, { ...form, organization_id: organization }))).toEqual([
      'token-request',
      'organization-access-application',
    ])
    expect(await statementsOf(() => ask(client, form))).toEqual(['token-request'])
  })

  test('must be asked for in the body', async () => {
    const client = await backend()
    const organization = await organizationOf(client, machine)
    const response = await fetch(`${issuer.url}/oidc/token?organization_id=${organization}`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${client.id}:${client.secret}`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope: '' }),
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'invalid_request' })
  })
})

describe('token exchange', () => {
  const start = async (...roles: string[]) => {
    const user = await issuer.createUser()
    const organization = await organizationWith(user.id, ...roles)
    return { user, organization, client: await issuer.createApplication() }
  }

  test('without a resource: a token for the organization, with what the roles of the member carry there', async () => {
    const { user, organization, client } = await start(writer)
    const actor = await issuer.createUser()
    const answer = await issuer.exchange(client, await issuer.subjectToken(user.id), {
      organization_id: organization,
      scope: 'openid write read',
      actor_token: await issuer.actorToken(client, actor.id),
      actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    })
    expect(answer).toMatchObject({ status: 200, body: { expires_in: 3600, scope: 'write read' } })
    expect(await issuer.verify(answer.body.access_token, urn(organization))).toMatchObject({
      sub: user.id,
      aud: urn(organization),
      scope: 'write read',
      client_id: client.id,
      organization_id: organization,
      act: { sub: actor.id },
      sid: expect.any(String),
    })
    const [session] = (await issuer.api('GET', `/impersonations?userId=${user.id}`)).body
    expect(session).toMatchObject({ resource: urn(organization), scopes: ['write', 'read'], actorId: actor.id })
    const [log] = (await issuer.api('GET', `/logs?userId=${user.id}&logKey=ExchangeTokenBy.TokenExchange`)).body
    expect(log.payload.params).toMatchObject({ organization_id: organization, scope: 'openid write read' })
  })

  test('with a resource: a token for that, with the scopes of both kinds of roles and the claim organization_id', async () => {
    const { user, organization, client } = await start(reader)
    await issuer.grantUser(user.id, resource, ['orders:global'])
    const form = { resource, scope: 'orders:global orders:write orders:read openid' }
    const inside = await issuer.exchange(client, await issuer.subjectToken(user.id), {
      ...form,
      organization_id: organization,
    })
    expect(inside).toMatchObject({
      status: 200,
      body: { expires_in: 600, scope: 'orders:global orders:read openid' },
    })
    expect(await issuer.verify(inside.body.access_token, resource)).toMatchObject({
      sub: user.id,
      organization_id: organization,
    })
    const outside = await issuer.exchange(client, await issuer.subjectToken(user.id), form)
    expect(outside.body.scope).toBe('orders:global openid')
    expect(await issuer.verify(outside.body.access_token, resource)).not.toHaveProperty('organization_id')
  })

  test('roles count only in the organization they were given in', async () => {
    const { user, organization, client } = await start(writer)
    const elsewhere = await organizationWith(user.id, reader)
    const scopeIn = async (id: string) =>
      (await issuer.exchange(client, await issuer.subjectToken(user.id), { organization_id: id, scope: 'read write' }))
        .body.scope
    expect(await scopeIn(organization)).toBe('read write')
    expect(await scopeIn(elsewhere)).toBe('read')
  })

  test('is refused to somebody who is no member; the subject token stays usable', async () => {
    const { user, organization, client } = await start(reader)
    const stranger = await issuer.createUser()
    const strangers = await issuer.subjectToken(stranger.id)
    for (const id of [organization, newId(12)]) {
      const form = { organization_id: id, resource: 'https://unknown.test', scope: 'nonsense' }
      expect(await issuer.exchange(client, strangers, form)).toMatchObject(notMember)
    }
    await change('POST', `/organizations/${organization}/users`, { userIds: [stranger.id] })
    const form = { organization_id: organization, scope: 'read' }
    expect(await issuer.exchange(client, strangers, form)).toMatchObject({ status: 200, body: { scope: '' } })

    const token = await issuer.subjectToken(user.id)
    await change('DELETE', `/organizations/${organization}/users/${user.id}`)
    expect(await issuer.exchange(client, token, form)).toMatchObject(notMember)
    await change('POST', `/organizations/${organization}/users`, { userIds: [user.id] })
    // Back, without the roles of before.
    expect(await issuer.exchange(client, token, form)).toMatchObject({ status: 200, body: { scope: '' } })
    // Refusals are written after the answer.
    await expect
      .poll(async () => {
        const { body } = await issuer.api('GET', `/logs?userId=${stranger.id}&logKey=ExchangeTokenBy.TokenExchange`)
        return body.map(({ payload }: { payload: Record<string, unknown> }) => payload)
      })
      .toContainEqual(
        expect.objectContaining({ result: 'Error', error: expect.objectContaining({ code: 'access_denied' }) }),
      )
  })

  test('an unusable subject token is told before membership', async () => {
    const { organization, client } = await start(reader)
    expect(await issuer.exchange(client, 'sub_unknown', { organization_id: organization })).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'subject_token_unknown' },
    })
  })

  test('a bound subject token stays within its resource and its scopes', async () => {
    const { user, organization, client } = await start(writer)
    const bound = await issuer.subjectToken(user.id, { resource, scopes: ['orders:write'] })
    const organizationOnly = { organization_id: organization, scope: 'orders:write' }
    expect((await issuer.exchange(client, bound, { ...organizationOnly, scope: '' })).body.error).toBe('invalid_target')
    expect(
      (await issuer.exchange(client, bound, { ...organizationOnly, resource, scope: 'orders:read' })).body.error,
    ).toBe('invalid_scope')
    expect(await issuer.exchange(client, bound, { ...organizationOnly, resource })).toMatchObject({
      status: 200,
      body: { scope: 'orders:write' },
    })
    const forOrganization = await issuer.subjectToken(user.id, { resource: urn(organization), scopes: ['read'] })
    const form = { organization_id: organization, scope: 'read' }
    expect(await issuer.exchange(client, forOrganization, form)).toMatchObject({ status: 200, body: { scope: 'read' } })
  })

  test('a personal access token of a member works as well, within its scopes', async () => {
    const { user, organization, client } = await start(writer)
    const { value } = await change('POST', `/users/${user.id}/personal-access-tokens`, {
      name: 'script',
      scopes: ['read'],
    })
    const form = { grant_type: tokenExchange, client_id: client.id, organization_id: organization, scope: 'read write' }
    const personal = await issuer.token(client, {
      ...form,
      subject_token: value,
      subject_token_type: 'urn:logto:token-type:personal_access_token',
    })
    expect(personal).toMatchObject({ status: 200, body: { scope: 'read' } })
  })

  test('takes one round trip more than without an organization', async () => {
    const { user, organization, client } = await start(reader)
    const [first, second] = [await issuer.subjectToken(user.id), await issuer.subjectToken(user.id)]
    const form = { resource, scope: 'orders:read' }
    const without = ['exchange-facts-subject-token-none', 'token-request', 'exchange-consume-jwt']
    expect(await statementsOf(() => issuer.exchange(client, first, form))).toEqual(without)
    expect(
      await statementsOf(() => issuer.exchange(client, second, { ...form, organization_id: organization })),
    ).toEqual(without.toSpliced(2, 0, 'organization-access-user'))
  })
})

test('introspection shows the organization', async () => {
  const client = await issuer.createApplication({ type: 'MachineToMachine' })
  const organization = await organizationOf(client, machine)
  for (const form of [{ scope: 'read' }, { resource, scope: 'orders:read' }]) {
    const { body } = await issuer.token(client, {
      grant_type: 'client_credentials',
      organization_id: organization,
      ...form,
    })
    const response = await fetch(`${issuer.url}/oidc/token/introspection`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${client.id}:${client.secret}`)}` },
      body: new URLSearchParams({ token: body.access_token }),
    })
    expect(await response.json()).toMatchObject({
      active: true,
      organization_id: organization,
      aud: 'resource' in form ? resource : urn(organization),
      scope: form.scope,
    })
  }
})

test('nobody registers a resource that would pass for an organization', async () => {
  for (const indicator of [urn('acme'), 'urn:logto:resource:organizations', 'URN:LOGTO:organization:acme']) {
    expect(await issuer.api('POST', '/resources', { name: 'x', indicator })).toMatchObject({
      status: 400,
      body: { code: 'guard.invalid_input' },
    })
  }
})
