import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fetchMetadata } from '../../../issuer/connectors/providers/metadata.ts'
import { openId } from '../../../issuer/connectors/providers/profiles.ts'
import { redirectUriOf, startFederation, type TestFederation } from '../../support/federation.ts'
import { type HostilityName, type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'

/** What an OpenID provider says, and what of it is believed. */

let provider: IdentityProvider
let federation: TestFederation
let id: string
beforeAll(async () => {
  federation = await startFederation({ timeoutMs: 1_500 })
})
afterAll(() => federation.close())
beforeEach(async () => {
  provider = await startIdentityProvider()
  id = await federation.connect(provider)
})
afterEach(() => provider.close())

const ada = {
  kind: 'social',
  subject: '7305177',
  email: 'ada@example.com',
  emailVerified: true,
  phoneVerified: false,
  name: 'Ada Lovelace',
  avatar: 'https://pictures.example/ada.png',
}

test('who signs in there is told here, and nothing that belongs to the exchange', async () => {
  expect(await federation.signIn(id, provider)).toEqual({
    ...ada,
    connectorId: id,
    target: id,
    issuer: provider.issuer,
    origin: JSON.stringify([provider.issuer, null, null]),
    raw: { iss: provider.issuer, ...provider.person },
  })
  expect(provider.asked).toEqual([
    'GET /.well-known/openid-configuration',
    'GET /authorize',
    'POST /token',
    'GET /jwks',
    'GET /userinfo',
  ])
  // The document and the keys are known by now.
  await federation.signIn(id, provider)
  expect(provider.asked.slice(5)).toEqual(['GET /authorize', 'POST /token', 'GET /userinfo'])
})

test('a request has PKCE, a nonce and a state, and hides what proves that the answer is ours', async () => {
  const { url, kept } = await federation.begin(id, { redirectUri: redirectUriOf(id), state: 'abc', loginHint: 'ada' })
  const { searchParams } = new URL(url)
  expect(Object.fromEntries(searchParams)).toMatchObject({
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: redirectUriOf(id),
    scope: 'openid profile email',
    state: 'abc',
    code_challenge_method: 'S256',
    login_hint: 'ada',
  })
  expect(searchParams.get('nonce')).toBe(kept.nonce)
  expect(url).not.toContain(kept.verifier)
  const other = await federation.begin(id, { redirectUri: redirectUriOf(id), state: 'abc' })
  expect(other.kept.nonce).not.toBe(kept.nonce)
  expect(other.kept.verifier).not.toBe(kept.verifier)
})

test.each<HostilityName>([
  'wrong_nonce',
  'no_nonce',
  'wrong_audience',
  'foreign_audience',
  'foreign_audience_with_azp',
  'other_authorized_party',
  'wrong_issuer',
  'no_subject',
  'empty_subject',
  'unsigned',
  'symmetric',
  'other_key',
  'expired',
  'no_expiry',
  'issued_in_future',
  'not_yet_valid',
])('an ID token is refused: %s', async (hostility) => {
  provider.be(hostility)
  await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_id_token' })
  // It is nothing of before that refuses.
  provider.be()
  expect(await federation.signIn(id, provider)).toMatchObject(ada)
})

test('clocks may differ by a minute', async () => {
  const epoch = Math.floor(Date.now() / 1_000)
  provider.be({ claims: (claims) => ({ ...claims, iat: epoch - 300, exp: epoch - 50 }) })
  expect(await federation.signIn(id, provider)).toMatchObject(ada)
  provider.be({ claims: (claims) => ({ ...claims, iat: epoch + 50, exp: epoch + 350 }) })
  expect(await federation.signIn(id, provider)).toMatchObject(ada)
})

test('userinfo of somebody else is refused', async () => {
  provider.be('userinfo_of_another')
  await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'subject_mismatch' })
})

test.each<HostilityName>(['mix_up', 'unnamed', 'other_state', 'no_state'])(
  'an answer that is not to our request never reaches the token endpoint: %s',
  async (hostility) => {
    provider.be(hostility)
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_response' })
    expect(provider.tokenRequests).toEqual([])
  },
)

test('a code of another provider is not taken at the callback of this one', async () => {
  const other = await startIdentityProvider()
  const otherId = await federation.connect(other)
  const [one, two] = await Promise.all(
    [id, otherId].map((connector) =>
      federation.begin(connector, { redirectUri: redirectUriOf(connector), state: 'the same' }),
    ),
  )
  const { searchParams } = await other.signIn(two!.url)
  const answer = { parameters: searchParams, redirectUri: redirectUriOf(id) }
  const refused = { reason: 'invalid_response' }
  await expect(federation.complete(id, { ...answer, kept: one!.kept })).rejects.toMatchObject(refused)
  await expect(federation.complete(id, { ...answer, kept: two!.kept })).rejects.toMatchObject(refused)
  await expect(federation.complete(id, { ...answer, kept: {} })).rejects.toMatchObject(refused)
  expect(provider.tokenRequests).toEqual([])
  await other.close()
})

test('an answer is good once, and with the verifier of its request only', async () => {
  const redirectUri = redirectUriOf(id)
  const { url, kept } = await federation.begin(id, { redirectUri, state: 'abc' })
  const { searchParams: parameters } = await provider.signIn(url)
  const { kept: other } = await federation.begin(id, { redirectUri, state: 'abc' })
  await expect(
    federation.complete(id, { kept: { ...kept, verifier: other.verifier }, parameters, redirectUri }),
  ).rejects.toMatchObject({ reason: 'invalid_response' })

  const again = await federation.begin(id, { redirectUri, state: 'abc' })
  const answer = { kept: again.kept, parameters: (await provider.signIn(again.url)).searchParams, redirectUri }
  expect(await federation.complete(id, answer)).toMatchObject(ada)
  await expect(federation.complete(id, answer)).rejects.toMatchObject({ reason: 'invalid_response' })
})

test('a repeated parameter is refused', async () => {
  const redirectUri = redirectUriOf(id)
  const { url, kept } = await federation.begin(id, { redirectUri, state: 'abc' })
  const { searchParams: parameters } = await provider.signIn(url)
  parameters.append('code', 'another')
  await expect(federation.complete(id, { kept, parameters, redirectUri })).rejects.toMatchObject({
    reason: 'invalid_response',
  })
})

test('an error of the provider is told as what it is, without its words', async () => {
  provider.be('error_with_script')
  const error: Error = await federation.signIn(id, provider).catch((thrown) => thrown)
  expect(error).toMatchObject({ reason: 'denied' })
  expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.toContain('script')
})

test.each<[HostilityName, { email?: string; emailVerified: boolean }]>([
  ['unverified_email', { email: 'ada@example.com', emailVerified: false }],
  ['unverified_email_as_text', { email: 'ada@example.com', emailVerified: false }],
  ['verified_email_as_text', { email: 'ada@example.com', emailVerified: false }],
  ['unsaid_email', { email: 'ada@example.com', emailVerified: false }],
])('an address counts as verified only when the provider says so, in as many words: %s', async (hostility, said) => {
  provider.be(hostility)
  expect(await federation.signIn(id, provider)).toMatchObject(said)
})

test('whether an address is verified is not taken from elsewhere than the address', async () => {
  provider.be({
    claims: (claims) => ({ ...claims, email: 'ceo@example.com', email_verified: undefined }),
    userinfo: (claims) => ({ ...claims, email: 'ada@example.com', email_verified: true }),
  })
  expect(await federation.signIn(id, provider)).toMatchObject({ email: 'ceo@example.com', emailVerified: false })
})

test('claims that cannot be used are left out', async () => {
  provider.person = {
    ...{ sub: 'x', email: 'no address', email_verified: true, phone_number: 'call me', phone_number_verified: true },
    ...{ name: `\u202e${'n'.repeat(300)}\u0000`, picture: 'javascript:alert(1)', filler: 'x'.repeat(20_000) },
  }
  expect(await federation.signIn(id, provider)).toEqual({
    connectorId: id,
    kind: 'social',
    target: id,
    subject: 'x',
    issuer: provider.issuer,
    origin: JSON.stringify([provider.issuer, null, null]),
    emailVerified: false,
    phoneVerified: false,
    name: 'n'.repeat(128),
    raw: { sub: 'x' },
  })
})

describe('a provider that cannot be used', () => {
  test.each<[HostilityName, string]>([
    ['slow', 'unavailable'],
    ['huge', 'unavailable'],
    ['huge_keys', 'unavailable'],
    ['broken', 'unavailable'],
    ['out_of_order', 'unavailable'],
    ['redirect_to_loopback', 'unavailable'],
    ['keys_redirected', 'unavailable'],
    ['keys_elsewhere', 'target_not_allowed'],
    ['token_elsewhere', 'target_not_allowed'],
    ['document_of_another', 'misconfigured'],
  ])('%s: %s', async (hostility, reason) => {
    provider.be(hostility)
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ name: 'FederationError', reason })
    // What it did wrong is not remembered.
    provider.be()
    const known = ['keys_elsewhere', 'token_elsewhere'].includes(hostility)
    if (!known) expect(await federation.signIn(id, provider)).toMatchObject(ada)
  })

  test('a redirect of userinfo is not followed', async () => {
    provider.be('userinfo_redirected')
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'unavailable' })
  })

  test('one that is gone', async () => {
    await provider.close()
    await expect(federation.begin(id, { redirectUri: redirectUriOf(id), state: 'abc' })).rejects.toMatchObject({
      reason: 'unavailable',
    })
  })

  test.each([
    'http://169.254.169.254',
    'http://10.1.2.3',
    'http://[::1]:8080',
    'https://192.168.0.1',
    'http://93.184.216.34',
  ])('at %s', async (issuer) => {
    const secret = await federation.add({ config: { issuer, clientId: 'a', clientSecret: 'b' } })
    await expect(federation.begin(secret, { redirectUri: redirectUriOf(secret), state: 'abc' })).rejects.toMatchObject({
      reason: 'target_not_allowed',
    })
  })

  test('a name that leads to a private address', async () => {
    const inside = await startFederation({
      allowedNetworks: [],
      resolve: async () => [{ address: '10.0.0.7', family: 4 }],
    })
    const there = await inside.add({ config: { issuer: 'https://idp.example', clientId: 'a', clientSecret: 'b' } })
    await expect(inside.begin(there, { redirectUri: redirectUriOf(there), state: 'abc' })).rejects.toMatchObject({
      reason: 'target_not_allowed',
    })
    await inside.close()
  })

  test('one that knows another secret', async () => {
    const wrong = await federation.connect({ ...provider, clientSecret: 'another' })
    const error: Error = await federation.signIn(wrong, provider).catch((thrown) => thrown)
    expect(error).toMatchObject({ reason: 'misconfigured' })
    expect(JSON.stringify([error.message, error.stack])).not.toContain('another')
  })
})

test('a connector that is not there, or not configured, leads nowhere', async () => {
  const request = { redirectUri: 'https://id.example.com/callback/x', state: 'abc' }
  await expect(federation.begin('x', request)).rejects.toMatchObject({ reason: 'connector_not_found' })
  const bare = await federation.add({ kind: 'sso', config: {}, domains: ['bare.example'] })
  await expect(federation.begin(bare, request)).rejects.toMatchObject({ reason: 'misconfigured' })
})

test('keys that were read just now are not read again for every token that names others', async () => {
  await federation.signIn(id, provider)
  await provider.rotateKeys()
  for (const _ of [1, 2])
    await expect(federation.signIn(id, provider)).rejects.toMatchObject({ reason: 'invalid_id_token' })
  expect(provider.asked.filter((path) => path === 'GET /jwks')).toHaveLength(1)
})

test('a provider with https never sends browsers over plain http', async () => {
  const said = {
    ...{ issuer: 'https://idp.example', authorization_endpoint: 'http://idp.example/authorize' },
    ...{ token_endpoint: 'https://idp.example/token', jwks_uri: 'https://idp.example/jwks' },
  }
  const profile = openId({ issuer: said.issuer, clientId: 'a', clientSecret: 'b' })
  const publish = (document: object) => fetchMetadata(profile, async () => Response.json(document))
  await expect(publish(said)).rejects.toMatchObject({ reason: 'misconfigured' })
  const secure = { ...said, authorization_endpoint: 'https://idp.example/authorize' }
  expect(await publish(secure)).toMatchObject({ id_token_signing_alg_values_supported: ['RS256'] })
  await expect(publish({ ...secure, id_token_signing_alg_values_supported: ['none', 'HS256'] })).rejects.toMatchObject({
    reason: 'misconfigured',
  })
})

test('the document is read again after an hour, and once for all who come at that time', async () => {
  let now = Date.now()
  const later = await startFederation({ now: () => new Date(now) })
  const connector = await later.connect(provider)
  const begin = () => later.begin(connector, { redirectUri: redirectUriOf(connector), state: 'abc' })
  const documents = () => provider.asked.filter((path) => path.endsWith('openid-configuration')).length
  await Promise.all([begin(), begin(), begin()])
  now += 3_599_000
  await begin()
  expect(documents()).toBe(1)
  now += 2_000
  await Promise.all([begin(), begin()])
  expect(documents()).toBe(2)
  // What is over by our clock is over.
  await expect(later.signIn(connector, provider)).rejects.toMatchObject({ reason: 'invalid_id_token' })
  await later.close()
})
