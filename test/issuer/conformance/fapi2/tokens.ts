import { decodeJwt } from 'jose'
import { expect } from 'vitest'
import { type AssertionOptions, inSeconds } from '../../../support/client-keys.ts'
import type { PartyOptions } from '../../../support/dpop-party.ts'
import { until } from '../../../support/until.ts'
import type { Fapi2Module, Fapi2Modules } from './module.ts'
import type { Fapi2 } from './parties.ts'

const invalidGrant = { status: 400, body: { error: 'invalid_grant' } }
const invalidClient = { status: 401, body: { error: 'invalid_client' } }

/** At the endpoint for requests and at the token endpoint. */
const assertionFails = (proves: string, options: (fapi2: Fapi2) => AssertionOptions): Fapi2Module => ({
  proves,
  async run(fapi2) {
    const flow = await fapi2.begin()
    const assertion = options(fapi2)
    expect(await flow.push({}, { assertion })).toMatchObject(invalidClient)
    const code = await flow.code()
    expect(await flow.redeem(code, {}, { assertion })).toMatchObject(invalidClient)
    expect((await flow.redeem(code)).status).toBe(200)
  },
})

/** At the token endpoint and at the API. */
const proofSucceeds = (proves: string, claims: () => NonNullable<PartyOptions['claims']>): Fapi2Module => ({
  proves,
  async run({ begin }) {
    const flow = await begin()
    const { status, body } = await flow.redeem(await flow.code(), {}, { proof: { claims: claims() } })
    expect(status).toBe(200)
    expect(await flow.call(body.access_token, { claims: claims() })).toBe(200)
  },
})

/** From a code on. */
export const tokens: Fapi2Modules = {
  'access-token-type-header-case-sensitivity': {
    proves: 'the scheme is read in any case',
    async run({ begin }) {
      const flow = await begin()
      const { tokens } = await flow.signIn()
      for (const scheme of ['DPoP', 'dpop', 'DPOP', 'dPoP'])
        expect(await flow.call(tokens.access_token, { scheme })).toBe(200)
    },
  },
  'check-dpop-proof-nbf-exp': proofSucceeds('a proof may say from when and until when it is good', () => ({
    nbf: inSeconds(0),
    exp: inSeconds(300),
  })),
  'ensure-dpopproof-with-iat-10seconds-before-succeeds': proofSucceeds('clocks may be 10 seconds behind', () => ({
    iat: inSeconds(-10),
  })),
  'ensure-dpopproof-with-iat-10seconds-after-succeeds': proofSucceeds('clocks may be 10 seconds ahead', () => ({
    iat: inSeconds(10),
  })),
  'ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt': {
    proves: 'a code is for the key whose proof came with the request',
    async run({ begin }) {
      const [flow, other] = [await begin(), await begin()]
      const code = await flow.code({}, { proof: {} })
      expect(await flow.redeem(code, {}, { key: other.key })).toMatchObject(invalidGrant)
      expect((await flow.redeem(code)).status).toBe(200)
    },
  },
  'ensure-token-endpoint-fails-with-mismatched-dpop-jkt': {
    proves: 'a code is for the key that dpop_jkt names',
    async run({ begin }) {
      const [flow, other] = [await begin(), await begin()]
      const code = await flow.code({ dpop_jkt: other.key.thumbprint })
      expect(await flow.redeem(code)).toMatchObject(invalidGrant)
      expect((await flow.redeem(code, {}, { key: other.key })).status).toBe(200)
    },
  },
  'ensure-dpopproof-at-par-endpoint-binding-success': {
    proves: 'the key whose proof came with the request redeems the code',
    async run({ begin }) {
      const flow = await begin()
      const { body } = await flow.redeem(await flow.code({}, { proof: {} }))
      expect(await flow.call(body.access_token)).toBe(200)
    },
  },
  'ensure-dpop-auth-code-binding-success': {
    proves: 'the key that dpop_jkt names redeems the code',
    async run({ begin }) {
      const flow = await begin()
      const { body } = await flow.redeem(await flow.code({ dpop_jkt: flow.key.thumbprint }))
      expect(await flow.call(body.access_token)).toBe(200)
    },
  },
  'dpop-negative-tests': {
    proves: 'the API refuses every proof that is not about this request, and takes what is only spelt otherwise',
    async run({ begin, gateway }) {
      const [flow, other] = [await begin(), await begin()]
      const { access_token: token } = (await flow.signIn()).tokens
      const url = `${gateway.url}/orders/1`
      const wrong: Parameters<typeof flow.call>[1][] = [
        ...['jti', 'htm', 'htu', 'iat', 'ath'].map((name) => ({ claims: { [name]: undefined } })),
        ...[{ htm: 'PUT' }, { htu: `${gateway.url}/orders/2` }, { ath: 'wrong' }].map((claims) => ({ claims })),
        ...[{ iat: inSeconds(3_600) }, { iat: inSeconds(-3_600) }, { nonce: 'wrong' }].map((claims) => ({ claims })),
        ...[{ typ: 'jwt' }, { jwk: { ...flow.key.jwk, d: 'AAAA' } }, { jwk: other.key.jwk }].map((header) => ({
          header,
        })),
        { by: other.key.privateKey },
        { key: other.key },
        { scheme: 'Bearer' },
      ]
      for (const options of wrong) expect([options, await flow.call(token, options)]).toEqual([options, 401])
      const right = [{ htu: `${url}?a=b#c` }, { htu: url.replace('http', 'HTTP').replace('/orders', '/%6Frders') }]
      for (const claims of right) expect([claims, await flow.call(token, { claims })]).toEqual([claims, 200])
      const first = await fetch(url, {
        headers: { authorization: `DPoP ${token}`, dpop: await flow.key.proof({ url, token }) },
      })
      const nonce = first.headers.get('dpop-nonce') ?? undefined
      const sent = await flow.key.proof({ url, token, nonce })
      expect([await flow.call(token, { sent }), await flow.call(token, { sent })]).toEqual([200, 401])
      for (const bad of [`${sent}, ${sent}`, sent.slice(0, sent.lastIndexOf('.'))])
        expect(await flow.call(token, { sent: bad })).toBeGreaterThanOrEqual(400)
      expect(await flow.call(token)).toBe(200)
    },
  },
  'ensure-client-id-in-token-endpoint': {
    proves: 'the client_id, where it is sent, is that of the assertion',
    async run({ begin, clients }) {
      const flow = await begin()
      const code = await flow.code()
      expect(await flow.redeem(code, { client_id: clients.second.id })).toMatchObject(invalidClient)
      expect((await flow.redeem(code, { client_id: undefined })).status).toBe(200)
    },
  },
  'ensure-holder-of-key-required': {
    proves: 'without a proof there is no token',
    async run({ begin }) {
      const flow = await begin()
      const code = await flow.code()
      const refused = { status: 400, body: { error: 'invalid_dpop_proof' } }
      expect(await flow.redeem(code, {}, { proof: 'none' })).toMatchObject(refused)
      expect((await flow.redeem(code)).status).toBe(200)
    },
  },
  'ensure-authorization-code-is-bound-to-client': {
    proves: 'a code is its client’s alone',
    async run({ begin, clients }) {
      const [flow, other] = [await begin(), await begin(clients.second)]
      const code = await flow.code()
      expect(await other.redeem(code)).toMatchObject(invalidGrant)
      expect((await flow.redeem(code)).status).toBe(200)
    },
  },
  'attempt-reuse-authorization-code-after-one-second': {
    proves: 'a code that is used again is refused, and what came of it is good no more',
    async run({ begin, issuer }) {
      const flow = await begin()
      const code = await flow.code()
      const { body } = await flow.redeem(code)
      expect(await flow.call(body.access_token)).toBe(200)
      await issuer.sql(`UPDATE authorization_codes SET redeemed_at = redeemed_at - interval '2 seconds'`)
      expect(await flow.redeem(code)).toMatchObject(invalidGrant)
      await until(async () => expect(await flow.call(body.access_token)).toBe(401))
    },
  },
  'ensure-token-endpoint-fails-with-expired-auth-code': {
    proves: 'a code is good for a minute',
    async run({ begin, issuer }) {
      const flow = await begin()
      const code = await flow.code()
      await issuer.sql(`UPDATE authorization_codes SET expires_at = expires_at - interval '61 seconds'`)
      expect(await flow.redeem(code)).toMatchObject(invalidGrant)
    },
  },
  'ensure-pkce-code-verifier-required': {
    proves: 'the verifier is needed',
    async run({ begin }) {
      const flow = await begin()
      expect(await flow.redeem(await flow.code(), { code_verifier: undefined })).toMatchObject(invalidGrant)
    },
  },
  'incorrect-pkce-code-verifier-rejected': {
    proves: 'a wrong verifier is refused',
    async run({ begin }) {
      const flow = await begin()
      expect(await flow.redeem(await flow.code(), { code_verifier: 'v'.repeat(43) })).toMatchObject(invalidGrant)
    },
  },
  'refresh-token': {
    proves: 'a refresh token is its client’s alone, needs a proof, and stays as it is',
    async run({ begin, clients }) {
      const [flow, other] = [await begin(), await begin(clients.second)]
      const { tokens } = await flow.signIn({ scope: 'openid offline_access read:orders' })
      const form = {
        ...{ grant_type: 'refresh_token', refresh_token: tokens.refresh_token },
        ...{ redirect_uri: undefined, code_verifier: undefined },
      }
      const refresh = (by: typeof flow, proofs = {}) => by.redeem('', { ...form, code: undefined }, proofs)
      expect(await refresh(other)).toMatchObject(invalidGrant)
      expect(await refresh(flow, { assertion: 'none' })).toMatchObject(invalidClient)
      expect(await refresh(flow, { proof: 'none' })).toMatchObject({ body: { error: 'invalid_dpop_proof' } })
      const { status, body } = await refresh(flow)
      expect([status, body.token_type, body.refresh_token]).toEqual([200, 'DPoP', tokens.refresh_token])
      expect(decodeJwt(body.access_token)['cnf']).toEqual(flow.key.cnf)
      expect(await flow.call(body.access_token)).toBe(200)
    },
  },
  'ensure-signed-client-assertion-with-RS256-fails': {
    proves: 'RS256 is not one of the algorithms, also with a registered key for it',
    async run({ begin, clients }) {
      expect(await (await begin(clients.rs256)).push()).toMatchObject(invalidClient)
    },
  },
  'ensure-client-assertion-in-token-endpoint': {
    proves: 'without an assertion nothing is answered',
    async run({ begin }) {
      const flow = await begin()
      expect(await flow.push({}, { assertion: 'none' })).toMatchObject(invalidClient)
      expect(await flow.redeem(await flow.code(), {}, { assertion: 'none' })).toMatchObject(invalidClient)
    },
  },
  'ensure-client-assertion-with-exp-is-5-minutes-in-past-fails': assertionFails('an assertion ends', () => ({
    claims: { exp: inSeconds(-300) },
  })),
  'ensure-client-assertion-with-wrong-aud-fails': assertionFails('an assertion is for the issuer', () => ({
    claims: { aud: 'https://another.example.test' },
  })),
  'ensure-client-assertion-with-no-sub-fails': assertionFails('an assertion names the client', () => ({
    claims: { sub: undefined as never },
  })),
  'par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted': {
    proves: 'clocks may be 8 seconds ahead',
    async run({ begin }) {
      const flow = await begin()
      const assertion = { claims: { iat: inSeconds(8), nbf: inSeconds(8) } }
      expect((await flow.push({}, { assertion })).status).toBe(201)
    },
  },
  'par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails': assertionFails(
    'but not a minute',
    () => ({ claims: { iat: inSeconds(65), nbf: inSeconds(65), exp: inSeconds(120) } }),
  ),
  'par-test-array-as-audience-fails': assertionFails('the audience is no list', ({ issuer }) => ({
    claims: { aud: [issuer.issuer] },
  })),
  'par-test-par-endpoint-url-as-audience-fails': assertionFails('nor the endpoint of the request', ({ issuer }) => ({
    claims: { aud: `${issuer.issuer}/request` },
  })),
  'par-test-token-endpoint-url-as-audience-fails': assertionFails('nor the token endpoint', ({ issuer }) => ({
    claims: { aud: `${issuer.issuer}/token` },
  })),
}
