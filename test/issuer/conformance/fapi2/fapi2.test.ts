import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registerKeyClient } from '../../../support/client-keys.ts'
import { createDpopParty } from '../../../support/dpop-party.ts'
import type { Fapi2Modules } from './module.ts'
import { type Fapi2, startFapi2 } from './parties.ts'
import { requests } from './requests.ts'
import { tokens } from './tokens.ts'

/**
 * The modules of the OpenID Foundation's plan for the FAPI 2.0 Security Profile (final), for `private_key_jwt`, DPoP
 * and OpenID Connect, without those for signed requests: an application with `securityProfile: "fapi2"`, the issuer,
 * and an API behind the gateway.
 */

const modules: Fapi2Modules = { ...requests, ...tokens }

/** The plan, by names without `fapi2-security-profile-final-`. */
const plan = `discovery-end-point-verification happy-flow user-rejects-authentication
  ensure-authorization-request-without-state-success ensure-authorization-request-without-nonce-success
  ensure-authorization-request-with-64-char-nonce-success ensure-authorization-request-with-long-nonce
  ensure-authorization-request-with-long-state ensure-other-scope-order-succeeds test-claims-parameter-identity-claims
  access-token-type-header-case-sensitivity check-dpop-proof-nbf-exp ensure-dpopproof-with-iat-10seconds-before-succeeds
  ensure-dpopproof-with-iat-10seconds-after-succeeds ensure-mismatched-dpop-jkt-fails
  ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt ensure-token-endpoint-fails-with-mismatched-dpop-jkt
  ensure-dpopproof-at-par-endpoint-binding-success ensure-dpop-auth-code-binding-success dpop-negative-tests
  ensure-different-nonce-inside-and-outside-request-object ensure-different-state-inside-and-outside-request-object
  state-only-outside-request-object-not-used ensure-registered-redirect-uri plain-fapi-tolerate-unregistered-redirect-uri
  ensure-unsigned-authorization-request-without-using-par-fails ensure-redirect-uri-in-authorization-request
  ensure-response-type-code-idtoken-fails ensure-response-type-token-fails ensure-client-id-in-token-endpoint
  ensure-holder-of-key-required ensure-authorization-code-is-bound-to-client
  attempt-reuse-authorization-code-after-one-second ensure-token-endpoint-fails-with-expired-auth-code
  ensure-signed-client-assertion-with-RS256-fails ensure-client-assertion-in-token-endpoint
  ensure-client-assertion-with-exp-is-5-minutes-in-past-fails ensure-client-assertion-with-wrong-aud-fails
  ensure-client-assertion-with-no-sub-fails refresh-token test-essential-acr-sca-claim par-attempt-reuse-request_uri
  par-ensure-reused-request-uri-prior-to-auth-completion-succeeds par-attempt-to-use-expired-request_uri
  par-attempt-to-use-request_uri-for-different-client par-authorization-request-containing-request_uri-form-param
  par-attempt-invalid-http-method par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted
  par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails par-ensure-pkce-required
  par-plain-pkce-rejected ensure-pkce-code-verifier-required incorrect-pkce-code-verifier-rejected
  par-without-duplicate-parameters par-test-array-as-audience-fails par-test-par-endpoint-url-as-audience-fails
  par-test-token-endpoint-url-as-audience-fails`.split(/\s+/)

let fapi2: Fapi2
beforeAll(async () => {
  fapi2 = await startFapi2()
})
afterAll(() => fapi2.close())

test('every module of the plan is here, or why it does not apply', () => {
  expect(Object.keys(modules).sort()).toEqual([...plan].sort())
})

describe('FAPI 2.0 Security Profile', () => {
  const rows = Object.entries(modules).flatMap(([name, module]) => ('run' in module ? [[name, module] as const] : []))
  test.each(rows)('%s', async (_, module) => {
    await module.run(fapi2)
  })
})

describe('beyond the plan', () => {
  test('the profile takes no secret, whatever else is registered', async () => {
    const { id } = fapi2.clients.first
    const made = await fapi2.issuer.api('POST', `/applications/${id}/secrets`, { name: 'A secret' })
    expect(made.status).toBe(201)
    const answer = await fapi2.issuer.token(
      { id, secret: made.body.value },
      { grant_type: 'authorization_code', code: 'c' },
    )
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  test('a proof by RS256 is refused, and uses nothing up', async () => {
    const flow = await fapi2.begin()
    const code = await flow.code()

    const key = await createDpopParty(fapi2.issuer, 'RS256')
    expect((await flow.redeem(code, {}, { key })).body.error).toBe('invalid_dpop_proof')
    expect((await flow.redeem(code)).status).toBe(200)
  })

  test('an application without a key of its own cannot be held to it', async () => {
    const answer = await fapi2.issuer.api('POST', '/applications', {
      ...{ name: 'A page', type: 'SPA', customClientMetadata: { securityProfile: 'fapi2' } },
    })
    expect(answer).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  })

  test('RS256 is refused when it is configured, for ID tokens and for keys, whichever half comes last', async () => {
    const { issuer } = fapi2
    const profile = { customClientMetadata: { securityProfile: 'fapi2' } }
    const rsa = { oidcClientMetadata: { redirectUris: [], idTokenSignedResponseAlg: 'RS256' } }
    const refused = (member: string) => ({
      status: 422,
      body: { code: 'application.algorithm_not_of_profile', data: { algorithm: 'RS256', member } },
    })
    const idTokens = refused('oidcClientMetadata.idTokenSignedResponseAlg')
    const application = { name: 'A bank', type: 'Traditional' }
    expect(await issuer.api('POST', '/applications', { ...application, ...profile, ...rsa })).toMatchObject(idTokens)
    const make = async (more: object) =>
      `/applications/${(await issuer.api('POST', '/applications', { ...application, ...more })).body.id}`
    expect(await issuer.api('PATCH', await make(rsa), profile)).toMatchObject(idTokens)
    const bank = await make(profile)
    expect(await issuer.api('PATCH', bank, rsa)).toMatchObject(idTokens)
    expect((await issuer.api('PATCH', await make(rsa), { name: 'No bank' })).status).toBe(200)

    const jwkOf = (alg?: string) => ({
      ...generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
      ...{ kid: 'a key', ...(alg && { alg }) },
    })
    const keys = (alg?: string) => ({ oidcClientMetadata: { jwks: { keys: [jwkOf(alg)] } } })
    expect(await issuer.api('PATCH', bank, keys('RS256'))).toMatchObject(refused('oidcClientMetadata.jwks'))
    for (const alg of ['PS256', undefined]) expect((await issuer.api('PATCH', bank, keys(alg))).status).toBe(200)
  })

  test('others may name the token endpoint as audience, or the issuer in a list', async () => {
    const { issuer } = fapi2
    const client = await registerKeyClient(issuer, { alg: 'RS256' })
    for (const aud of [`${issuer.issuer}/token`, [issuer.issuer]]) {
      const form = { grant_type: 'client_credentials', resource: 'https://unknown.example.test' }
      const answer = await issuer.token(
        { id: client.id },
        { ...form, ...(await client.assertion({ claims: { aud } })) },
      )
      expect(answer.body.error, 'after authentication').toBe('invalid_target')
    }
  })
})
