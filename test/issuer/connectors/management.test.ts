import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { localProviders } from '../../support/messages.ts'
import { until } from '../../support/until.ts'

/** Identity providers over the Management API. */

let issuer: TestIssuer
let provider: IdentityProvider
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2, config: { messages: localProviders } })
})
afterAll(() => issuer.close())
beforeEach(async () => {
  provider = await startIdentityProvider()
})
afterEach(async () => {
  await provider.close()
  await issuer.database.pool.query('DELETE FROM identity_providers')
  await issuer.database.pool.query(`UPDATE users SET identities = '{}'`)
})

const config = () => ({
  issuer: provider.issuer,
  clientId: provider.clientId,
  clientSecret: provider.clientSecret,
})
const oidc = (target = 'acme', more: object = {}) => ({
  connectorId: 'oidc',
  config: config(),
  metadata: { target },
  ...more,
})
const create = async (body: object) => (await issuer.api('POST', '/connectors', body)).body
const refusal = async (method: string, path: string, body?: object) => {
  const answer = await issuer.api(method, path, body)
  return [answer.status, answer.body.code]
}

describe('social connectors', () => {
  test('are made, read, changed and deleted beside those that send; their secrets are never shown again', async () => {
    const created = await issuer.api(
      'POST',
      '/connectors',
      oidc('acme', { metadata: { target: 'acme', name: 'Acme' } }),
    )
    expect(created).toMatchObject({
      status: 200,
      body: {
        ...{ connectorId: 'oidc', type: 'Social', target: 'acme', platform: 'Universal', name: 'OpenID Connect' },
        config: { ...config(), clientSecret: '********' },
        metadata: { target: 'acme', name: 'Acme' },
        syncProfile: false,
      },
    })
    const { id } = created.body
    expect((await issuer.api('GET', `/connectors/${id}`)).body).toEqual(created.body)
    expect((await issuer.api('GET', '/connectors')).body).toEqual([created.body])

    const changed = { config: { ...created.body.config, scope: 'openid email' }, syncProfile: true }
    expect(await issuer.api('PATCH', `/connectors/${id}`, changed)).toMatchObject({ status: 200, body: changed })
    expect(await refusal('PATCH', `/connectors/${id}`, { metadata: { target: 'other' } })).toEqual([
      ...[400, 'connector.can_not_modify_target'],
    ])
    // Whoever may change where it leads does not learn the secret by that.
    const other = await startIdentityProvider()
    const elsewhere = { config: { ...created.body.config, issuer: other.issuer } }
    expect(await refusal('PATCH', `/connectors/${id}`, elsewhere)).toEqual([400, 'connector.invalid_config'])
    await other.close()

    const rows = await issuer.database.pool.query('SELECT * FROM identity_providers')
    expect(JSON.stringify(rows.rows) + issuer.logged()).not.toContain(provider.clientSecret)
    expect((await issuer.api('DELETE', `/connectors/${id}`)).status).toBe(204)
    expect(await refusal('DELETE', `/connectors/${id}`)).toEqual([404, 'entity.not_found'])
    expect((await issuer.api('GET', '/connectors')).body).toEqual([])
  })

  test('have a target of their own, also when two are made at once', async () => {
    const answers = await Promise.all(
      [0, 1, 0, 1].map((instance) => issuer.api('POST', '/connectors', oidc(), { instance })),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422, 422, 422])
    expect(answers.find(({ status }) => status === 422)!.body.code).toBe('connector.multiple_target_with_same_platform')
    for (const metadata of [{}, { target: '__proto__' }, { target: 'a b' }, { target: 7 }])
      expect(await refusal('POST', '/connectors', { ...oidc(), metadata })).toEqual([
        ...[400, 'connector.should_specify_target'],
      ])
    const gitHub = { connectorId: 'github-universal', config: { clientId: 'a', clientSecret: 'b' } }
    expect(await create(gitHub)).toMatchObject({ target: 'github', name: 'GitHub', metadata: { target: 'github' } })
    expect(await refusal('POST', '/connectors', { ...gitHub, metadata: { target: 'acme' } })).toEqual([
      ...[400, 'connector.can_not_modify_target'],
    ])
  })

  test('are held against what their provider publishes before they are saved', async () => {
    provider.be('document_of_another')
    expect(await refusal('POST', '/connectors', oidc())).toEqual([400, 'connector.invalid_config'])
    provider.be('out_of_order')
    const before = issuer.logged().length
    expect(await refusal('POST', '/connectors', oidc())).toEqual([502, 'connector.provider_unavailable'])
    // Nobody here is to be woken for it.
    const lines = issuer
      .logged()
      .slice(before)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const told = lines.filter(({ level }) => ['warn', 'error'].includes(level))
    expect(told).toMatchObject([{ level: 'warn', code: 'connector.provider_unavailable', detail: expect.any(String) }])
    expect(told[0]).not.toHaveProperty('err')
    provider.be('keys_elsewhere')
    expect(await refusal('POST', '/connectors', oidc())).toEqual([422, 'connector.target_not_allowed'])
    for (const address of ['http://169.254.169.254', 'https://10.0.0.1', 'http://8.8.8.8'])
      expect(await refusal('POST', '/connectors', oidc('acme', { config: { ...config(), issuer: address } }))).toEqual([
        ...[422, 'connector.target_not_allowed'],
      ])
    const odd = oidc('acme', { config: { ...config(), scope: 'email' } })
    expect(await refusal('POST', '/connectors', odd)).toEqual([400, 'connector.invalid_config'])
    expect((await issuer.api('GET', '/connectors')).body).toEqual([])
  })

  test('a change of one counts from its answer on, and soon at other issuers', async () => {
    const { id } = await create(oidc())
    const clientAt = async (instance: number) => {
      const asked = { state: 'state of a request', redirectUri: 'https://app.example/linked' }
      const { body } = await issuer.api('POST', `/connectors/${id}/authorization-uri`, asked, { instance })
      return new URL(body.redirectTo).searchParams.get('client_id')
    }
    expect([await clientAt(0), await clientAt(1)]).toEqual([provider.clientId, provider.clientId])
    for (const clientId of ['another', 'a third']) {
      const changed = { config: { ...config(), clientId } }
      expect((await issuer.api('PATCH', `/connectors/${id}`, changed, { instance: 0 })).status).toBe(200)
      expect(await clientAt(0)).toBe(clientId)
      await until(async () => expect(await clientAt(1)).toBe(clientId))
    }
  })

  test('of Apple need a key that Apple takes', async () => {
    const pem = (key: KeyObject, type: 'pkcs8' | 'sec1' = 'pkcs8') => key.export({ type, format: 'pem' })
    const ofCurve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey
    const apple = (privateKey: unknown) => ({
      connectorId: 'apple-universal',
      config: { clientId: 'com.example.service', teamId: 'TEAM123456', keyId: 'KEY1234567', privateKey },
    })
    const [right, other] = [ofCurve('prime256v1'), ofCurve('secp384r1')]
    for (const wrong of [pem(other), pem(right, 'sec1'), '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----'])
      expect(await refusal('POST', '/connectors', apple(wrong))).toEqual([400, 'connector.invalid_config'])
    expect(await create(apple(pem(right)))).toMatchObject({ target: 'apple', config: { privateKey: '********' } })
    expect(issuer.logged()).not.toContain('PRIVATE KEY')
  })

  test('are listed as factories, without mock ones', async () => {
    const { body } = await issuer.api('GET', '/connector-factories')
    const social = body.filter(({ type }: { type: string }) => type === 'Social')
    expect(social.map(({ id, target }: { id: string; target: string }) => [id, target])).toEqual([
      ['oidc', 'oidc'],
      ['google-universal', 'google'],
      ['azuread-universal', 'azuread'],
      ['apple-universal', 'apple'],
      ['github-universal', 'github'],
    ])
    expect(social[0].configSchema.required).toEqual(['clientId', 'clientSecret', 'issuer'])
  })
})

describe('identities of users', () => {
  const redirectUri = 'https://app.example/linked'
  const user = async () => (await issuer.api('POST', '/users', { name: 'Ada' })).body.id as string
  /** All of it: the request, the browser, and what came to the redirect URI. */
  const answer = async (connectorId: string, state: string) => {
    const asked = await issuer.api('POST', `/connectors/${connectorId}/authorization-uri`, { state, redirectUri })
    expect(asked.status).toBe(200)
    const back = await provider.signIn(asked.body.redirectTo)
    expect(`${back.origin}${back.pathname}`).toBe(redirectUri)
    return Object.fromEntries(back.searchParams)
  }
  const link = (userId: string, connectorId: string, connectorData: object, instance = 0) =>
    issuer.api('POST', `/users/${userId}/identities`, { connectorId, connectorData }, { instance })

  test('are linked by what a connector tells of them, at any instance, once', async () => {
    const { id } = await create(oidc())
    const ada = await user()
    const data = await answer(id, 'state of a request')
    const details = { id: '7305177', name: 'Ada Lovelace', avatar: provider.person.picture, email: 'ada@example.com' }
    expect(await link(ada, id, data, 1)).toMatchObject({
      status: 200,
      body: { acme: { userId: '7305177', details: { ...details, rawData: { sub: '7305177' } } } },
    })
    expect((await issuer.api('GET', `/users/${ada}`)).body.identities).toMatchObject({ acme: { userId: '7305177' } })
    const again = await link(ada, id, data)
    expect(again).toMatchObject({
      status: 400,
      body: { code: 'connector.authorization_failed', data: { reason: 'invalid_response' } },
    })
    const once = await answer(id, 'state of another request')
    const answers = await Promise.all([0, 1].map((instance) => link(ada, id, once, instance)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400])
    const { rows } = await issuer.database.pool.query('SELECT * FROM identity_provider_requests')
    expect(rows).toEqual([])
  })

  test('are not linked by an answer that comes after ten minutes', async () => {
    const { id } = await create(oidc())
    const data = await answer(id, 'state of long ago')
    await issuer.database.pool.query(`UPDATE identity_provider_requests SET expires_at = now() - interval '1 second'`)
    expect(await link(await user(), id, data)).toMatchObject({
      status: 400,
      body: { data: { reason: 'invalid_response' } },
    })
    // The next request clears them away.
    await answer(id, 'state of now')
    const { rows } = await issuer.database.pool.query('SELECT count(*)::int AS count FROM identity_provider_requests')
    expect(rows).toEqual([{ count: 1 }])
  })

  test('are one user’s each, also when several ask at once', async () => {
    const { id } = await create(oidc())
    const people = [await user(), await user(), await user()]
    provider.person.sub = 'wanted by three'
    const answers = []
    for (const person of people) answers.push({ person, data: await answer(id, `state of ${person}`) })
    const linked = await Promise.all(answers.map(({ person, data }, index) => link(person, id, data, index % 2)))
    expect(linked.map(({ status }) => status).toSorted()).toEqual([200, 422, 422])
    expect(linked.find(({ status }) => status === 422)!.body.code).toBe('user.identity_already_in_use')
    const holders = `SELECT user_id FROM user_identities WHERE subject = 'wanted by three'`
    const { rows } = await issuer.database.pool.query(holders)
    expect(rows).toEqual([{ user_id: people[linked.findIndex(({ status }) => status === 200)] }])
  })

  test('are not linked by an answer that proves nothing', async () => {
    const { id } = await create(oidc())
    const ada = await user()
    const failed = { status: 400, body: { code: 'connector.authorization_failed' } }
    expect(await link(ada, id, { code: 'made up', state: 'nobody asked' })).toMatchObject(failed)
    expect(await link(ada, id, {})).toMatchObject(failed)
    provider.be('no_nonce')
    const refused = await link(ada, id, await answer(id, 'without a nonce'))
    expect(refused).toMatchObject({ status: 400, body: { data: { reason: 'invalid_id_token' } } })
    // Of another connector than was asked.
    provider.be()
    const other = await create(oidc('other'))
    expect(await link(ada, other.id, await answer(id, 'of another'))).toMatchObject(failed)
    expect(await link('nobody', id, {})).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
    expect(await link(ada, 'nowhere', {})).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
    expect((await issuer.api('GET', `/users/${ada}`)).body.identities).toEqual({})
  })

  test('at an enterprise are told with the user, and ended', async () => {
    const connector = await issuer.api('POST', '/sso-connectors', { providerName: 'OIDC', connectorName: 'Acme' })
    const ssoConnectorId = connector.body.id
    const ada = await user()
    await issuer.database.pool.query(
      `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject, detail)
       VALUES ('one', $1, $2, 'https://idp.example', 'ada', '{"name": "Ada"}')`,
      [ada, ssoConnectorId],
    )
    const ssoIdentity = {
      ...{ tenantId: 'default', id: 'one', userId: ada, ssoConnectorId, issuer: 'https://idp.example' },
      ...{ identityId: 'ada', detail: { name: 'Ada' }, createdAt: expect.any(Number), updatedAt: expect.any(Number) },
    }
    const path = `/users/${ada}/sso-identities/${ssoConnectorId}`
    expect((await issuer.api('GET', path)).body).toEqual({ ssoIdentity })
    expect((await issuer.api('GET', `/users/${ada}/all-identities`)).body).toEqual({
      socialIdentities: [],
      ssoIdentities: [{ ssoIdentity, ssoConnectorId }],
    })
    expect((await issuer.api('GET', `/users/${ada}?includeSsoIdentities=true`)).body.ssoIdentities).toEqual([
      ssoIdentity,
    ])
    expect((await issuer.api('DELETE', path)).status).toBe(204)
    expect(await refusal('DELETE', path)).toEqual([404, 'user.identity_not_exist'])
    expect(await refusal('GET', path)).toEqual([404, 'user.identity_not_exist'])
  })
})

describe('enterprise connectors', () => {
  const sso = (connectorName: string, more: object = {}) => ({
    ...{ providerName: 'OIDC', connectorName, config: config(), domains: [] },
    ...more,
  })

  test('are made, read, changed and deleted; their secrets are never shown again', async () => {
    const created = await issuer.api('POST', '/sso-connectors', sso('Acme', { domains: ['Acme.example', 'b.example'] }))
    expect(created).toEqual({
      ...{ status: 200, headers: expect.anything() },
      body: {
        ...{ tenantId: 'default', id: expect.any(String), providerName: 'OIDC', connectorName: 'Acme' },
        ...{ config: { ...config(), clientSecret: '********' }, domains: ['acme.example', 'b.example'], branding: {} },
        ...{ syncProfile: false, enableTokenStorage: false, createdAt: expect.any(Number) },
        ...{ name: 'OpenID Connect', providerType: 'oidc' },
      },
    })
    const { id } = created.body
    expect((await issuer.api('GET', `/sso-connectors/${id}`)).body).toEqual(created.body)
    expect((await issuer.api('GET', '/sso-connectors')).body).toEqual([created.body])
    const branding = { displayName: 'Acme Inc.', logo: 'https://acme.example/logo.png' }
    const patch = { connectorName: 'Acme 2', domains: ['b.example'], branding, syncProfile: true }
    expect((await issuer.api('PATCH', `/sso-connectors/${id}`, patch)).body).toEqual({ ...created.body, ...patch })
    const masked = { config: { ...created.body.config, trustUnverifiedEmail: true } }
    expect((await issuer.api('PATCH', `/sso-connectors/${id}`, masked)).body.config).toEqual(masked.config)
    expect(await refusal('GET', '/connectors/unknown')).toEqual([404, 'entity.not_exists_with_id'])
    // Neither kind is the other's.
    expect(await refusal('GET', `/connectors/${id}`)).toEqual([404, 'entity.not_exists_with_id'])
    expect(await refusal('DELETE', `/connectors/${id}`)).toEqual([404, 'entity.not_found'])
    expect((await issuer.api('DELETE', `/sso-connectors/${id}`)).status).toBe(204)
    expect(await refusal('DELETE', `/sso-connectors/${id}`)).toEqual([404, 'entity.not_found'])
    expect(await refusal('PATCH', `/sso-connectors/${id}`, patch)).toEqual([404, 'entity.not_exists_with_id'])
  })

  test('have domains that nobody else has, also when two are made at once', async () => {
    const answers = await Promise.all(
      ['one', 'two', 'three'].map((name, index) =>
        issuer.api('POST', '/sso-connectors', sso(name, { domains: [`${name}.example`, 'acme.example'] }), {
          instance: index % 2,
        }),
      ),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 422, 422])
    expect(answers.find(({ status }) => status === 422)!.body.code).toBe('single_sign_on.duplicated_domains')
    expect((await issuer.api('GET', '/sso-connectors')).body).toHaveLength(1)
    const { rows } = await issuer.database.pool.query('SELECT count(*)::int AS count FROM identity_provider_domains')
    expect(rows).toEqual([{ count: 2 }])

    const domains = (...list: string[]) => refusal('POST', '/sso-connectors', sso('four', { domains: list }))
    expect(await domains('a.example', 'A.example')).toEqual([422, 'single_sign_on.duplicated_domains'])
    expect(await domains('gmail.com')).toEqual([422, 'single_sign_on.forbidden_domains'])
    expect(await domains('no domain')).toEqual([400, 'guard.invalid_input'])
  })

  test('have names of their own, and a kind that is there', async () => {
    expect((await issuer.api('POST', '/sso-connectors', sso('Acme'))).status).toBe(200)
    expect(await refusal('POST', '/sso-connectors', sso('Acme'))).toEqual([
      ...[409, 'single_sign_on.duplicate_connector_name'],
    ])
    expect(await refusal('POST', '/sso-connectors', sso('S', { providerName: 'SAML' }))).toEqual([
      ...[400, 'guard.invalid_input'],
    ])
  })

  test('are of kinds that are listed', async () => {
    const { body } = await issuer.api('GET', '/sso-connector-providers')
    expect(body.map(({ providerName }: { providerName: string }) => providerName)).toEqual([
      ...['OIDC', 'GoogleWorkspace', 'AzureAdOidc', 'Okta'],
    ])
    expect(body[0].configSchema.required).toEqual(['clientId', 'clientSecret', 'issuer'])
  })

  test('may be configured later, and are held against what their provider publishes', async () => {
    const bare = await issuer.api('POST', '/sso-connectors', { providerName: 'Okta', connectorName: 'Later' })
    expect(bare).toMatchObject({ status: 200, body: { config: {}, name: 'Okta' } })
    const path = `/sso-connectors/${bare.body.id}`
    expect(await refusal('PATCH', path, { config: {} })).toEqual([400, 'connector.invalid_config'])
    provider.be('document_of_another')
    expect(await refusal('PATCH', path, { config: config() })).toEqual([400, 'connector.invalid_config'])
    provider.be()
    expect((await issuer.api('PATCH', path, { config: config() })).status).toBe(200)
    // What was read just now is read again.
    provider.be('out_of_order')
    expect(await refusal('PATCH', path, { config: config() })).toEqual([502, 'connector.provider_unavailable'])
  })
})

describe('a connector by which people are known', () => {
  let other: IdentityProvider
  beforeEach(async () => {
    other = await startIdentityProvider()
  })
  afterEach(() => other.close())
  const elsewhere = () => ({ issuer: other.issuer, clientId: other.clientId, clientSecret: other.clientSecret })
  const createUser = async (): Promise<string> =>
    (await issuer.api('POST', '/users', { username: `u${Math.random().toString(36).slice(2)}` })).body.id
  const inUse = { status: 422, body: { code: 'connector.has_identities', data: { identities: 1 } } }

  test('leads nowhere else, and changes in every other way', async () => {
    const { id } = await create(oidc('known'))
    const user = await createUser()
    await issuer.api('PUT', `/users/${user}/identities/known`, { userId: '7' })
    expect(await issuer.api('PATCH', `/connectors/${id}`, { config: elsewhere() })).toMatchObject(inUse)
    const same = { config: { ...config(), scope: 'openid email' }, metadata: { name: 'Another name' } }
    expect((await issuer.api('PATCH', `/connectors/${id}`, same)).status).toBe(200)
    await issuer.api('DELETE', `/users/${user}/identities/known`)
    expect((await issuer.api('PATCH', `/connectors/${id}`, { config: elsewhere() })).status).toBe(200)
  })

  test('leads nowhere else when it is of an enterprise', async () => {
    const body = { providerName: 'OIDC', connectorName: 'Corp', config: config() }
    const { id } = (await issuer.api('POST', '/sso-connectors', body)).body
    const user = await createUser()
    await issuer.sql(
      `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject) VALUES ($1, $2, $3, 'x', '7')`,
      [user, user, id],
    )
    expect(await issuer.api('PATCH', `/sso-connectors/${id}`, { config: elsewhere() })).toMatchObject(inUse)
    expect((await issuer.api('PATCH', `/sso-connectors/${id}`, { connectorName: 'Corporation' })).status).toBe(200)
    await issuer.api('DELETE', `/users/${user}/sso-identities/${id}`)
    expect((await issuer.api('PATCH', `/sso-connectors/${id}`, { config: elsewhere() })).status).toBe(200)
  })

  const answerFor = async (id: string) => {
    const asked = { state: Math.random().toString(36), redirectUri: 'https://app.example.com/linked' }
    const { redirectTo } = (await issuer.api('POST', `/connectors/${id}/authorization-uri`, asked)).body
    return Object.fromEntries((await provider.signIn(redirectTo)).searchParams)
  }

  test('what it told before it led elsewhere links nobody', async () => {
    const { id } = await create(oidc('told'))
    const user = await createUser()
    const connectorData = await answerFor(id)
    const changed: number[] = []
    provider.be({
      answer: {
        // The last that is asked for: who it is, is known by then.
        userinfo: (response) => {
          void issuer.api('PATCH', `/connectors/${id}`, { config: elsewhere() }).then(({ status }) => {
            changed.push(status)
            response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(provider.person))
          })
        },
      },
    })
    const link = await issuer.api('POST', `/users/${user}/identities`, { connectorId: id, connectorData })
    expect(changed).toEqual([200])
    expect(link).toMatchObject({ status: 400, body: { code: 'connector.authorization_failed' } })
    expect((await issuer.api('GET', `/users/${user}`)).body.identities).toEqual({})
  })

  test('leaves its target to no other issuer when it is deleted', async () => {
    const { id } = await create(oidc('moved'))
    const user = await createUser()
    const connectorData = await answerFor(id)
    const link = await issuer.api('POST', `/users/${user}/identities`, { connectorId: id, connectorData })
    expect(link.status).toBeLessThan(300)
    expect((await issuer.api('DELETE', `/connectors/${id}`)).status).toBe(204)
    const moved = oidc('moved', { config: elsewhere() })
    expect(await issuer.api('POST', '/connectors', moved)).toMatchObject(inUse)
    expect((await issuer.api('POST', '/connectors', oidc('moved'))).status).toBe(200)
  })

  test('of a link and a change at once one is refused', async () => {
    for (const round of [0, 1, 2, 3, 4, 5]) {
      const target = `acme${round}`
      const { id } = await create(oidc(target))
      const user = await createUser()
      const connectorData = await answerFor(id)
      const [link, change] = await Promise.all([
        issuer.api('POST', `/users/${user}/identities`, { connectorId: id, connectorData }),
        issuer.api('PATCH', `/connectors/${id}`, { config: elsewhere() }, { instance: 1 }),
      ])
      const { identities } = (await issuer.api('GET', `/users/${user}`)).body
      const isLinked = link.status < 300
      expect([Object.keys(identities), change.status]).toEqual(isLinked ? [[target], 422] : [[], 200])
    }
  })
})
