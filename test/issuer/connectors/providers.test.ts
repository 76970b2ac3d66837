import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { redirectUriOf, startFederation, type TestFederation } from '../../support/federation.ts'
import { type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'

/** What is particular about each kind of provider. */

let federation: TestFederation
let provider: IdentityProvider
beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.close())
afterEach(() => provider.close())

const credentials = () => ({ clientId: provider.clientId, clientSecret: provider.clientSecret })
const asked = async (id: string, more: { asksAgain?: boolean } = {}) => {
  const { url } = await federation.begin(id, { redirectUri: redirectUriOf(id), state: 'abc', ...more })
  return Object.fromEntries(new URL(url).searchParams)
}

describe('Microsoft', () => {
  const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47'
  const personal = '9188040d-6c67-4c5b-b112-36a304b66dad'
  const connect = (tenantId: string) =>
    federation.add({
      ...{ provider: 'azuread-universal', target: `azuread-${tenantId}-${provider.url}` },
      config: { ...credentials(), tenantId, cloudInstance: provider.url, prompts: ['select_account'] },
    })

  test('people of any tenant come, each with the issuer of their own', async () => {
    provider = await startIdentityProvider({ tenant })
    const id = await connect('common')
    expect(await asked(id)).toMatchObject({ prompt: 'select_account' })
    expect(await federation.signIn(id, provider)).toMatchObject({
      subject: '7305177',
      issuer: `${provider.url}/${tenant}/v2.0`,
    })
    expect(provider.asked).not.toContain('GET /common/v2.0/userinfo')
  })

  test.each([
    ['another tenant than it names', { tid: personal }],
    ['no tenant', { tid: undefined }],
    ['a tenant that is no tenant', { tid: 'evil.example/', iss: 'http://evil.example//v2.0' }],
    ['the form instead of a tenant', { tid: '{tenantid}', iss: '' }],
  ])('a token is refused that is of %s', async (_, claimed) => {
    provider = await startIdentityProvider({ tenant })
    const id = await connect('common')
    const iss = claimed.tid === '{tenantid}' ? { iss: `${provider.url}/{tenantid}/v2.0` } : {}
    provider.be({ claims: (claims) => ({ ...claims, ...claimed, ...iss }) })
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_id_token' })
  })

  test('personal accounts do not come where organizations are meant', async () => {
    provider = await startIdentityProvider({ tenant: personal })
    const id = await connect('organizations')
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_id_token' })
    expect(await federation.signIn(await connect('common'), provider)).toMatchObject({ subject: '7305177' })
  })

  test('a callback that names its tenant is held against the token', async () => {
    provider = await startIdentityProvider({ tenant })
    const id = await connect('common')
    const named = (iss: string) => provider.be({ callback: (parameters) => parameters.set('iss', iss) })
    named(`${provider.url}/${tenant}/v2.0`)
    expect(await federation.signIn(id, provider)).toMatchObject({ subject: '7305177' })
    for (const iss of [`${provider.url}/${personal}/v2.0`, 'https://issuer.example', `${provider.url}/x/v2.0`]) {
      named(iss)
      await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_response' })
    }
  })

  test('what the token endpoint refuses is told as what it is', async () => {
    provider = await startIdentityProvider({ tenant })
    const id = await federation.add({
      ...{ provider: 'azuread-universal', target: `azuread-secret-${provider.url}` },
      config: { ...credentials(), clientSecret: 'another', tenantId: 'common', cloudInstance: provider.url },
    })
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'misconfigured' })
    provider.be('broken')
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'unavailable' })
  })

  test('of one tenant nobody else comes', async () => {
    provider = await startIdentityProvider({ tenant })
    // It publishes the form of all tenants.
    await expect(federation.signIn(await connect(personal), provider)).rejects.toMatchObject({
      reason: 'misconfigured',
    })
  })

  test('an address is an administrator’s word unless its domain is the tenant’s own', async () => {
    provider = await startIdentityProvider({ tenant })
    const id = await connect('common')
    expect(await federation.signIn(id, provider)).toMatchObject({ email: 'ada@example.com', emailVerified: false })
    provider.person = { ...provider.person, email_verified: undefined, xms_edov: true }
    expect(await federation.signIn(id, provider)).toMatchObject({ emailVerified: true })
  })
})

describe('Apple', () => {
  const start = async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const secrets: { header: unknown; claims: unknown }[] = []
    provider = await startIdentityProvider({
      clientId: 'com.example.service',
      async acceptSecret(secret) {
        const { payload, protectedHeader } = await jwtVerify(secret, publicKey, { audience: provider.url })
        secrets.push({ header: protectedHeader, claims: payload })
        return true
      },
    })
    const id = await federation.add({
      ...{ provider: 'apple-universal', target: `apple-${provider.url}` },
      config: {
        ...{ clientId: provider.clientId, teamId: 'TEAM123456', keyId: 'KEY1234567', endpoint: provider.url },
        privateKey: await exportPKCS8(privateKey),
      },
    })
    return { id, secrets }
  }

  test('posts its answer, and knows us by a secret that we sign for each request', async () => {
    const { id, secrets } = await start()
    expect(await asked(id)).toMatchObject({ response_mode: 'form_post', scope: 'openid name email' })
    expect(await federation.signIn(id, provider)).toMatchObject({ subject: '7305177', emailVerified: true })
    expect(secrets).toEqual([
      {
        header: { alg: 'ES256', kid: 'KEY1234567' },
        claims: {
          ...{ iss: 'TEAM123456', sub: 'com.example.service', aud: provider.url },
          ...{ iat: expect.any(Number), exp: expect.any(Number) },
        },
      },
    ])
    const { iat, exp } = secrets[0]!.claims as { iat: number; exp: number }
    expect(exp - iat).toBe(300)
  })

  test('tells the name once, beside the code, and whether an address is verified as a text', async () => {
    const { id } = await start()
    provider.person = { sub: 'ada', email: 'ada@example.com', email_verified: 'true' }
    const user = (value: string) => provider.be({ callback: (parameters) => parameters.set('user', value) })
    user(JSON.stringify({ name: { firstName: 'Ada', lastName: 'Lovelace' }, email: 'ceo@example.com' }))
    expect(await federation.signIn(id, provider)).toMatchObject({
      ...{ name: 'Ada Lovelace', email: 'ada@example.com', emailVerified: true },
    })
    for (const odd of ['', '{', '[]', 'null', '{"name":"Ada"}', '{"name":{"firstName":{}}}']) {
      user(odd)
      expect(await federation.signIn(id, provider)).not.toHaveProperty('name')
    }
    provider.person = { ...provider.person, email_verified: 'false' }
    expect(await federation.signIn(id, provider)).toMatchObject({ emailVerified: false })
  })
})

describe('GitHub', () => {
  const start = async () => {
    provider = await startIdentityProvider()
    return federation.add({
      ...{ provider: 'github-universal', target: `github-${provider.url}` },
      config: { ...credentials(), endpoint: provider.url },
    })
  }

  test('has no ID token: its API tells who somebody is, and which address is verified', async () => {
    const id = await start()
    expect(await asked(id)).toMatchObject({
      scope: 'read:user user:email',
      code_challenge_method: 'S256',
      state: 'abc',
    })
    expect(await federation.signIn(id, provider)).toMatchObject({
      ...{ subject: '7305177', email: 'ada@example.com', emailVerified: true, name: 'Ada Lovelace' },
      raw: { login: 'octocat', id: 7305177 },
    })
    provider.person = { ...provider.person, email_verified: false }
    expect(await federation.signIn(id, provider)).toMatchObject({ email: 'ada@example.com', emailVerified: false })
  })

  test('an error that it says with 200 is one', async () => {
    const id = await start()
    const answer = (error: string) => ({
      token: (response: import('node:http').ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ error })),
    })
    provider.be({ answer: answer('bad_verification_code') })
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_response' })
    provider.be({ answer: answer('incorrect_client_credentials') })
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'misconfigured' })
    provider.be('broken')
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'unavailable' })
  })

  test.each(['other_state', 'no_state'] as const)('an answer to another request is refused: %s', async (hostility) => {
    const id = await start()
    provider.be(hostility)
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_response' })
    expect(provider.tokenRequests).toEqual([])
  })
})

describe('an enterprise', () => {
  test('speaks for the people of its domains alone', async () => {
    provider = await startIdentityProvider()
    const id = await federation.connect(provider, { kind: 'sso', domains: ['example.com', 'b.example'] })
    expect(await federation.signIn(id, provider)).toMatchObject({
      ...{ kind: 'sso', target: id, email: 'ada@example.com', emailVerified: true },
    })
    provider.be('foreign_domain')
    expect(await federation.signIn(id, provider)).toMatchObject({ email: 'ceo@other.example', emailVerified: false })
    for (const email of ['ceo@sub.example.com', 'ceo@example.com.evil.example', 'ada@example.com@evil.example']) {
      provider.person = { ...provider.person, email }
      provider.be()
      expect(await federation.signIn(id, provider)).toMatchObject({ emailVerified: false })
    }
  })

  test('whose provider says nothing of addresses can be trusted with those of its domains, if the operator says so', async () => {
    provider = await startIdentityProvider({ person: { sub: 'ada', email: 'ada@trusted.example' } })
    const config = { ...credentials(), issuer: provider.issuer }
    const domains = ['trusted.example']
    const [plain, trusted] = [
      await federation.add({ kind: 'sso', config, domains: [] }),
      await federation.add({ kind: 'sso', config: { ...config, trustUnverifiedEmail: true }, domains }),
    ]
    expect(await federation.signIn(plain, provider)).toMatchObject({ emailVerified: false })
    expect(await federation.signIn(trusted, provider)).toMatchObject({ emailVerified: true })
    provider.person = { sub: 'ada', email: 'ada@trusted.example', email_verified: false }
    expect(await federation.signIn(trusted, provider)).toMatchObject({ emailVerified: false })
    provider.person = { sub: 'ada', email: 'ada@other.example' }
    expect(await federation.signIn(trusted, provider)).toMatchObject({ emailVerified: false })
  })

  test('at Google has people of its own: an account with such an address is not enough', async () => {
    provider = await startIdentityProvider()
    provider.person.email = 'ada@workspace.example'
    const config = { ...credentials(), endpoint: provider.url }
    const domains = ['workspace.example']
    const id = await federation.add({ kind: 'sso', provider: 'GoogleWorkspace', config, domains })
    expect(await federation.signIn(id, provider)).toMatchObject({ emailVerified: false })
    provider.person = { ...provider.person, hd: 'workspace.example' }
    expect(await federation.signIn(id, provider)).toMatchObject({ emailVerified: true })
  })
})

test('whoever is to show again who they are is asked for it by what the provider understands', async () => {
  provider = await startIdentityProvider()
  const ofTenants = await startIdentityProvider({ tenant: '72f988bf-86f1-41af-91ab-2d7cd011db47' })
  onTestFinished(() => ofTenants.close())
  const { issuer, url } = provider
  const prompts = ['select_account']
  const tenant = { ...credentials(), tenantId: 'common', cloudInstance: ofTenants.url, prompts }
  const kinds = {
    oidc: [{ config: { ...credentials(), issuer } }, undefined, 'login'],
    enterprise: [{ kind: 'sso', config: { ...credentials(), issuer } }, undefined, 'login'],
    google: [
      { provider: 'google-universal', config: { ...credentials(), endpoint: url } },
      undefined,
      'select_account',
    ],
    microsoft: [{ provider: 'azuread-universal', config: tenant }, 'select_account', 'login'],
    github: [{ provider: 'github-universal', config: { ...credentials(), endpoint: url } }, undefined, undefined],
  } as const
  for (const [kind, [row, before, again]] of Object.entries(kinds)) {
    const id = await federation.add({ ...row, ...(!('kind' in row) && { target: `again-${kind}` }) })
    expect([(await asked(id)).prompt, (await asked(id, { asksAgain: true })).prompt], kind).toEqual([before, again])
  }
})

test('pages are told the social connectors of the settings in their order, and the enterprise of a domain', async () => {
  provider = await startIdentityProvider()
  const experience = { socialSignInConnectorTargets: ['two', 'gone', 'one'], singleSignOnEnabled: true }
  const settled = await startFederation({ experience })
  const [one, two] = [
    await settled.connect(provider, {
      target: 'one',
      look: { name: { en: 'The One' }, logo: 'https://logo.example/1' },
    }),
    await settled.connect(provider, { target: 'two', look: { logo: 'javascript:alert(1)' }, syncProfile: true }),
  ]
  await settled.connect(provider, { target: 'three' })
  const sso = await settled.connect(provider, { kind: 'sso', name: 'Acme', domains: ['acme.example'] })
  const plain = { kind: 'social', domains: [], syncProfile: false }
  expect(await settled.offered({})).toEqual([
    { ...plain, id: two, target: 'two', name: 'OpenID Connect', syncProfile: true },
    { ...plain, id: one, target: 'one', name: 'The One', logo: 'https://logo.example/1' },
  ])
  expect(await settled.byDomain('ACME.example')).toEqual({
    ...{ id: sso, kind: 'sso', target: sso, name: 'Acme', domains: ['acme.example'], syncProfile: false },
  })
  expect(await settled.byDomain('other.example')).toBeUndefined()
  expect(await federation.byDomain('acme.example')).toBeUndefined()
  await settled.close()
})

test('mock connectors know whoever they are told, and are not there otherwise', async () => {
  provider = await startIdentityProvider()
  const mocks = await startFederation({ mocks: true })
  const row = { provider: 'mock-social-connector', target: 'mock-social', config: { clientId: 'a', clientSecret: 'b' } }
  const id = await mocks.add(row)
  const request = { redirectUri: 'http://mock.test/callback', state: 'a b' }
  const { url, kept } = await mocks.begin(id, request)
  expect(url).toBe('http://mock-social/?state=a+b&redirect_uri=http%3A%2F%2Fmock.test%2Fcallback&scope=email+profile')
  const parameters = new URLSearchParams({ code: 'x', userId: 'ada', email: 'ada@example.com', phone: '61412345678' })
  expect(await mocks.complete(id, { kept, parameters, redirectUri: request.redirectUri })).toMatchObject({
    ...{ target: 'mock-social', subject: 'ada', email: 'ada@example.com', emailVerified: true },
    ...{ phone: '61412345678', phoneVerified: true },
  })
  const sso = await mocks.connect(provider, { kind: 'sso', domains: ['example.com'] })
  const claims = new URLSearchParams({ sub: 'ada', email: 'ada@example.com', email_verified: 'true' })
  const answer = { kept: {}, parameters: claims, redirectUri: request.redirectUri }
  expect(await mocks.complete(sso, answer)).toMatchObject({ subject: 'ada', emailVerified: true })

  await expect(federation.begin(await federation.add(row), request)).rejects.toMatchObject({ reason: 'misconfigured' })
  const real = await federation.connect(provider, { kind: 'sso' })
  await expect(federation.complete(real, answer)).rejects.toMatchObject({ reason: 'invalid_response' })
  await mocks.close()
})
