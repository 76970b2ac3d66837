import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../../../platform/secret.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const someApplication = async (type = 'MachineToMachine', input: object = {}) =>
  api.expect(200, 'POST', '/applications', { name: 'Backend', type, ...input })

const digests = (applicationId: string): Promise<Buffer[]> =>
  api.database.knex('application_secrets').where({ application_id: applicationId }).orderBy('name').pluck('digest')

describe('applications', () => {
  test('are registered, read, changed and deleted, without an event', async () => {
    const { secret, ...application } = await someApplication()
    expect(application).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      name: 'Backend',
      description: null,
      type: 'MachineToMachine',
      oidcClientMetadata: { redirectUris: [], postLogoutRedirectUris: [] },
      customClientMetadata: {},
      protectedAppMetadata: null,
      customData: {},
      isThirdParty: false,
      appLevelAccessControlEnabled: false,
      createdAt: expect.any(Number),
    })
    expect(secret).toMatch(/^[0-9A-Za-z]{43}$/)
    const path = `/applications/${application.id}`
    expect(await api.expect(200, 'GET', path)).toEqual({ ...application, isAdmin: false })

    const oidcClientMetadata = { redirectUris: ['https://a.test/cb'], postLogoutRedirectUris: [] }
    const patch = { name: 'Web', description: 'x', oidcClientMetadata, customClientMetadata: { idTokenTtl: 60 } }
    const changed = { ...application, ...patch }
    expect(await api.expect(200, 'PATCH', path, patch)).toEqual(changed)
    expect(await api.expect(200, 'PATCH', path, { ...patch, type: 'SPA', isThirdParty: true })).toEqual(changed)
    const replaced = { ...changed, customClientMetadata: { allowTokenExchange: false } }
    expect(await api.expect(200, 'PATCH', path, { customClientMetadata: { allowTokenExchange: false } })).toEqual(
      replaced,
    )
    expect(await api.expect(200, 'GET', path)).toEqual({ ...replaced, isAdmin: false })

    expect(await api.expect(200, 'PATCH', `${path}/custom-data`, { a: 1, b: { c: 2 } })).toEqual({ a: 1, b: { c: 2 } })
    expect(await api.expect(200, 'PATCH', `${path}/custom-data`, { b: 3 })).toEqual({ a: 1, b: 3 })

    expect(await api.call('DELETE', path)).toMatchObject({ status: 204, body: undefined })
    expect(await digests(application.id)).toEqual([])
    expect(await api.call('DELETE', path)).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
    for (const method of ['GET', 'PATCH']) {
      const answer = await api.call(method, path, method === 'GET' ? undefined : { name: 'x' })
      expect(answer).toMatchObject({ status: 404, body: { code: 'entity.not_exists_with_id' } })
    }
    expect(await api.events()).toEqual([])
  })

  test.each([
    ['Native', false],
    ['SPA', false],
    ['Traditional', true],
    ['MachineToMachine', true],
    ['Protected', true],
  ])('of type %s have a first secret: %s', async (type, has) => {
    const { id, secret } = await someApplication(type)
    expect(secret !== undefined).toBe(has)
    const secrets = await api.expect(200, 'GET', `/applications/${id}/secrets`)
    expect(secrets.map(({ name }: { name: string }) => name)).toEqual(has ? ['Default secret'] : [])
  })

  test('with all their metadata', async () => {
    const input = {
      description: 'A site',
      oidcClientMetadata: {
        redirectUris: ['https://a.test/cb', 'http://localhost:3000/cb'],
        postLogoutRedirectUris: ['https://a.test/'],
        logoUri: 'https://a.test/logo.png',
      },
      customClientMetadata: {
        corsAllowedOrigins: ['https://a.test'],
        refreshTokenTtlInDays: 30,
        rotateRefreshToken: true,
      },
      customData: { a: [1] },
      isThirdParty: true,
    }
    expect(await someApplication('Traditional', input)).toMatchObject(input)
    const native = { oidcClientMetadata: { redirectUris: ['com.example.app://cb'], postLogoutRedirectUris: [] } }
    expect(await someApplication('Native', native)).toMatchObject(native)
  })

  test.each([
    [{ name: '' }, 400, 'guard.invalid_input'],
    [{ type: 'Robot' }, 400, 'guard.invalid_input'],
    [{ type: 'SAML' }, 422, 'application.invalid_type'],
    [{ isThirdParty: true }, 422, 'application.invalid_type'],
    [
      { type: 'Traditional', isThirdParty: true, customClientMetadata: { allowTokenExchange: true } },
      422,
      'application.third_party_application_cannot_enable_token_exchange',
    ],
    [{ oidcClientMetadata: { redirectUris: ['/cb'] } }, 400, 'guard.invalid_input'],
    [{ oidcClientMetadata: { redirectUris: ['https://a.test/#cb'] } }, 400, 'guard.invalid_input'],
    [{ oidcClientMetadata: { redirectUris: ['com.example.app://cb'] } }, 400, 'guard.invalid_input'],
    [{ type: 'Native', oidcClientMetadata: { redirectUris: ['javascript:alert(1)'] } }, 400, 'guard.invalid_input'],
    [{ customClientMetadata: { corsAllowedOrigins: ['https://a.test/path'] } }, 400, 'guard.invalid_input'],
    [{ type: 'SPA', customClientMetadata: { requirePkce: false } }, 400, 'guard.invalid_input'],
    [{ oidcClientMetadata: { idTokenSignedResponseAlg: 'HS256' } }, 400, 'guard.invalid_input'],
    [{ customClientMetadata: { refreshTokenTtlInDays: 181 } }, 400, 'guard.invalid_input'],
    [{ oidcClientMetadata: { backchannelLogoutUri: 'https://a.test/logout#here' } }, 400, 'guard.invalid_input'],
    [{ oidcClientMetadata: { backchannelLogoutUri: 'ftp://a.test/logout' } }, 400, 'guard.invalid_input'],
  ])('with %o are refused', async (part, status, code) => {
    const input = { name: 'Refused', type: 'MachineToMachine', ...part }
    expect(await api.call('POST', '/applications', input)).toMatchObject({ status, body: { code } })
    expect(await api.expect(200, 'GET', '/applications?search.name=Refused')).toEqual([])
  })

  test.each([
    'http://a.test/logout',
    'https://127.0.0.1/logout',
    'https://[::1]/logout',
    'https://localhost/logout',
    'https://10.0.0.1/logout',
    'https://169.254.169.254/latest',
    'https://user@a.test/logout',
    'https://a.test:5432/logout',
  ])('tell nobody of logouts at %s (T 128)', async (backchannelLogoutUri) => {
    const refused = { status: 400, body: { code: 'guard.invalid_input' } }
    const oidcClientMetadata = { backchannelLogoutUri }
    const input = { name: 'Told', type: 'Traditional', oidcClientMetadata }
    expect(await api.call('POST', '/applications', input)).toMatchObject(refused)
    const { id } = await someApplication('Traditional')
    expect(await api.call('PATCH', `/applications/${id}`, { oidcClientMetadata })).toMatchObject(refused)
    expect((await api.expect(200, 'GET', `/applications/${id}`)).oidcClientMetadata).not.toHaveProperty(
      'backchannelLogoutUri',
    )
  })

  const redirectMembers = ['redirectUris', 'postLogoutRedirectUris']

  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'blob:https://a.test/1',
    'about:blank',
    'myapp:/cb',
    'https://*.a.test/cb',
    'https://a.test/*',
    'com.example.app://*',
    'https://user@a.test/cb',
    'https://@a.test/cb',
    'https://good.test:80@evil.test/cb',
    'http://a.test/cb',
    'http://127.0.0.2/cb',
    'http://localhost.evil.test/cb',
    'https://a.test:443/cb',
    'https://A.test/cb',
    'HTTPS://a.test/cb',
    'https:a.test/cb',
    'https://a.test/x/../cb',
    'https://a.test/%2e%2e/cb',
    'https://127.1/cb',
    'https://a.test/cb#',
  ])('cannot have a browser sent to %s', async (uri) => {
    for (const member of redirectMembers) {
      const input = { name: 'x', type: 'Native', oidcClientMetadata: { [member]: [uri] } }
      expect(await api.call('POST', '/applications', input)).toMatchObject({
        status: 400,
        body: { code: 'guard.invalid_input' },
      })
    }
  })

  test('can have a browser sent to what every parser reads alike', async () => {
    const uris = [
      'https://a.test',
      'https://a.test/cb?a=%2F',
      'https://xn--exmple-cua.test/cb',
      'http://localhost:3000',
      'http://127.0.0.1/cb',
      'http://[::1]:8080/cb',
      'com.example.app:/cb',
      'io.logto://callback',
    ]
    const oidcClientMetadata = { redirectUris: uris, postLogoutRedirectUris: uris }
    const customClientMetadata = { requirePar: true }
    const input = { oidcClientMetadata, customClientMetadata }
    expect(await someApplication('Native', input)).toMatchObject(input)
    const server = {
      oidcClientMetadata: { idTokenSignedResponseAlg: 'RS256' },
      customClientMetadata: { requirePkce: false },
    }
    expect(await someApplication('Traditional', server)).toMatchObject(server)
  })

  test('keep these rules when they change', async () => {
    const site = await someApplication('Traditional', { isThirdParty: true })
    for (const [body, status, code] of [
      [
        { customClientMetadata: { allowTokenExchange: true } },
        422,
        'application.third_party_application_cannot_enable_token_exchange',
      ],
      [{ oidcClientMetadata: { redirectUris: ['app://cb'] } }, 400, 'guard.invalid_input'],
      [{}, 422, 'entity.invalid_input'],
    ] as const) {
      expect(await api.call('PATCH', `/applications/${site.id}`, body)).toMatchObject({ status, body: { code } })
    }
  })

  test('are listed by type, third-party status and role', async () => {
    const spa = await someApplication('SPA', { name: 'Listed 1' })
    const site = await someApplication('Traditional', { name: 'Listed 2', isThirdParty: true })
    const native = await someApplication('Native', { name: 'Listed 3' })
    const ids = async (query: string) =>
      (await api.expect(200, 'GET', `/applications?search.name=Listed%25&${query}`)).map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual([native.id, site.id, spa.id])
    expect(await ids('types=SPA')).toEqual([spa.id])
    expect(await ids('types=SPA&types=Native')).toEqual([native.id, spa.id])
    expect(await ids('isThirdParty=true')).toEqual([site.id])
    expect(await ids('isThirdParty=false')).toEqual([native.id, spa.id])
  })
})

describe('secrets', () => {
  test('are several, named, and shown once', async () => {
    const { id, secret } = await someApplication()
    const path = `/applications/${id}/secrets`
    const expiresAt = Date.now() + 3_600_000
    const second = await api.expect(201, 'POST', path, { name: 'Second', expiresAt })
    expect(second).toEqual({
      tenantId: 'default',
      applicationId: id,
      name: 'Second',
      value: expect.stringMatching(/^[0-9A-Za-z]{43}$/),
      createdAt: expect.any(Number),
      expiresAt,
    })
    expect(await digests(id)).toEqual([sha256(secret), sha256(second.value)])

    const { value: _, ...shown } = second
    const first = { ...shown, name: 'Default secret', expiresAt: null, createdAt: expect.any(Number) }
    expect(await api.expect(200, 'GET', path)).toEqual([first, shown])

    const renamed = { ...shown, name: 'Renamed', expiresAt: null }
    expect(await api.expect(200, 'PATCH', `${path}/Second`, { name: 'Renamed', expiresAt: null })).toEqual(renamed)
    await api.expect(204, 'DELETE', `${path}/Default%20secret`)
    expect(await api.expect(200, 'GET', path)).toEqual([renamed])
    expect(await digests(id)).toEqual([sha256(second.value)])
    expect(await api.events()).toEqual([])
  })

  test('are refused: a taken name, a past expiry, an unknown secret or application, a type that keeps none', async () => {
    const { id } = await someApplication()
    const spa = await someApplication('SPA')
    const path = `/applications/${id}/secrets`
    await api.expect(201, 'POST', path, { name: 'Second' })
    for (const [method, url, body, status, code] of [
      ['POST', path, { name: 'Second' }, 422, 'application.secret_name_exists'],
      ['PATCH', `${path}/Second`, { name: 'Default secret' }, 422, 'application.secret_name_exists'],
      ['PATCH', `${path}/Second`, {}, 422, 'entity.invalid_input'],
      ['POST', path, { name: 'Third', expiresAt: Date.now() - 1000 }, 400, 'guard.invalid_input'],
      ['POST', path, { name: 'Third', expiresAt: 1e300 }, 400, 'guard.invalid_input'],
      ['POST', path, { name: '' }, 400, 'guard.invalid_input'],
      ['PATCH', `${path}/none`, { name: 'x' }, 404, 'entity.not_found'],
      ['DELETE', `${path}/none`, undefined, 404, 'entity.not_found'],
      ['GET', '/applications/none/secrets', undefined, 404, 'entity.not_exists_with_id'],
      ['POST', '/applications/none/secrets', { name: 'x' }, 404, 'entity.not_exists_with_id'],
      ['POST', `/applications/${spa.id}/secrets`, { name: 'x' }, 422, 'entity.db_constraint_violated'],
    ] as const) {
      expect(await api.call(method, url, body)).toMatchObject({ status, body: { code } })
    }
  })

  test('of one name, made by many at once, are one', async () => {
    const { id } = await someApplication()
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => api.call('POST', `/applications/${id}/secrets`, { name: 'Wanted' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
  })

  test('stand in no other answer, event, audit row or log line', async () => {
    const { id, secret } = await someApplication()
    const { value } = await api.expect(201, 'POST', `/applications/${id}/secrets`, { name: 'Second' })
    const answers = [
      await api.call('GET', `/applications/${id}`),
      await api.call('GET', '/applications'),
      await api.call('GET', `/applications/${id}/secrets`),
      await api.call('PATCH', `/applications/${id}`, { name: 'x' }),
      await api.call('GET', '/logs?page_size=100'),
    ].map(({ body }) => body)
    const told = JSON.stringify(answers) + api.logged()
    const secrets = [secret, value, sha256(secret).toString('hex'), sha256(value).toString('base64')]
    expect(secrets.filter((text) => told.includes(text))).toEqual([])
  })
})

describe('roles', () => {
  const someRole = async (name: string, type = 'MachineToMachine', scopeIds: string[] = []) =>
    api.expect(200, 'POST', '/roles', { name, description: name, type, scopeIds })

  test('are added, replaced and taken', async () => {
    const { id } = await someApplication()
    const path = `/applications/${id}/roles`
    const [reader, writer] = [await someRole('reader'), await someRole('writer')]
    expect(await api.expect(201, 'POST', path, { roleIds: [reader.id] })).toEqual({
      roleIds: [reader.id],
      addedRoleIds: [reader.id],
    })
    expect(await api.expect(201, 'POST', path, { roleIds: [reader.id] })).toEqual({
      roleIds: [reader.id],
      addedRoleIds: [],
    })
    expect(await api.expect(201, 'POST', path, { roleIds: [writer.id, reader.id] })).toEqual({
      roleIds: [writer.id, reader.id],
      addedRoleIds: [writer.id],
    })
    expect(await api.expect(200, 'GET', path)).toEqual([writer, reader])
    expect(await api.expect(200, 'PUT', path, { roleIds: [writer.id] })).toEqual({ roleIds: [writer.id] })
    expect(await api.expect(200, 'GET', path)).toEqual([writer])
    await api.expect(204, 'DELETE', `${path}/${writer.id}`)
    await api.expect(404, 'DELETE', `${path}/${writer.id}`)
    expect(await api.expect(200, 'GET', path)).toEqual([])
  })

  test('are of machine-to-machine applications, and of their type', async () => {
    const [machine, site] = [await someApplication(), await someApplication('Traditional')]
    const [role, userRole] = [await someRole('machine role'), await someRole('user role', 'User')]
    for (const [method, path, body, status, code] of [
      ['GET', `/applications/${site.id}/roles`, undefined, 422, 'application.invalid_type'],
      ['POST', `/applications/${site.id}/roles`, { roleIds: [role.id] }, 422, 'application.invalid_type'],
      ['PUT', `/applications/${site.id}/roles`, { roleIds: [] }, 422, 'application.invalid_type'],
      ['POST', `/applications/${machine.id}/roles`, { roleIds: [userRole.id] }, 422, 'application.invalid_role_type'],
      ['POST', `/applications/${machine.id}/roles`, { roleIds: ['none'] }, 404, 'entity.not_exists_with_id'],
      ['POST', '/applications/none/roles', { roleIds: [role.id] }, 404, 'entity.not_found'],
      ['GET', '/applications/none/roles', undefined, 404, 'entity.not_exists_with_id'],
    ] as const) {
      expect(await api.call(method, path, body)).toMatchObject({ status, body: { code } })
    }
  })

  test('that hold everything make an administrator', async () => {
    const resources = await api.expect(200, 'GET', '/resources?includeScopes=true')
    const management = resources.find(({ indicator }: { indicator: string }) => indicator === api.indicator)
    const all = management.scopes.find(({ name }: { name: string }) => name === 'all')
    const role = await someRole('administrator', 'MachineToMachine', [all.id])
    const { id } = await someApplication()
    await api.expect(201, 'POST', `/applications/${id}/roles`, { roleIds: [role.id] })
    expect(await api.expect(200, 'GET', `/applications/${id}`)).toMatchObject({ isAdmin: true })
    const excluded = await api.expect(200, 'GET', `/applications?types=MachineToMachine&excludeRoleId=${role.id}`)
    expect(excluded.some((row: { id: string }) => row.id === id)).toBe(false)
  })
})
