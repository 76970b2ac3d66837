import { decodeJwt, decodeProtectedHeader } from 'jose'
import { expect } from 'vitest'
import { type FormValues, formOf, request } from '../../../support/issuer.ts'
import type { Fapi2Module, Fapi2Modules } from './module.ts'
import type { Fapi2Flow } from './parties.ts'
import { createRelyingKeys } from './relying-keys.ts'

const invalidRequest = { status: 400, body: { error: 'invalid_request' } }

const succeedsWith = (proves: string, parameters: FormValues, check?: (found: SignIn) => void): Fapi2Module => ({
  proves,
  async run({ begin }) {
    const flow = await begin()
    const found = await flow.signIn(parameters)
    expect(await flow.call(found.tokens.access_token)).toBe(200)
    check?.(found)
  },
})
type SignIn = Awaited<ReturnType<Fapi2Flow['signIn']>>

const isRefusedAhead = (proves: string, parameters: FormValues, error = 'invalid_request'): Fapi2Module => ({
  proves,
  async run({ begin }) {
    expect(await (await begin()).push(parameters)).toMatchObject({ status: 400, body: { error } })
  },
})

/** A page that is no redirect to the client. */
const isRefusedOnPage = async (flow: Fapi2Flow, requestUri: string, parameters?: FormValues) => {
  const { page, callback } = await flow.visit(requestUri, parameters)
  expect([page.status, page.location, callback]).toEqual([400, undefined, undefined])
}

/** The way to a code. */
export const requests: Fapi2Modules = {
  'discovery-end-point-verification': {
    proves: 'the metadata says what the profile needs',
    async run({ issuer }) {
      const { status, body } = await request(`${issuer.issuer}/.well-known/openid-configuration`)
      expect([status, body.issuer]).toEqual([200, issuer.issuer])
      for (const [name, needed] of Object.entries({
        token_endpoint_auth_methods_supported: ['private_key_jwt'],
        token_endpoint_auth_signing_alg_values_supported: ['PS256', 'ES256', 'EdDSA'],
        dpop_signing_alg_values_supported: ['PS256', 'ES256', 'EdDSA'],
        id_token_signing_alg_values_supported: ['ES256'],
        code_challenge_methods_supported: ['S256'],
        grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
        response_types_supported: ['code'],
      }))
        expect(body[name], name).toEqual(expect.arrayContaining(needed))
      expect(body).toMatchObject({
        authorization_response_iss_parameter_supported: true,
        pushed_authorization_request_endpoint: `${issuer.issuer}/request`,
      })
    },
  },
  'happy-flow': {
    proves: 'a person signs in, and the API behind the gateway is called with a bound token',
    async run({ issuer, begin }) {
      const flow = await begin()
      const { callback, tokens } = await flow.signIn({ state: 'the state', nonce: 'the nonce' })
      expect(Object.fromEntries(callback)).toEqual({ code: expect.any(String), state: 'the state', iss: issuer.issuer })
      expect(tokens).toMatchObject({ token_type: 'DPoP', expires_in: expect.any(Number) })
      expect(decodeJwt(tokens.access_token)['cnf']).toEqual(flow.key.cnf)
      expect(['PS256', 'ES256', 'EdDSA']).toContain(decodeProtectedHeader(tokens.id_token).alg)
      const claims = await createRelyingKeys(issuer).verify(tokens.id_token, flow.client.id)
      expect(claims).toMatchObject({ nonce: 'the nonce', aud: flow.client.id })
      expect(await flow.call(tokens.access_token)).toBe(200)
    },
  },
  'user-rejects-authentication': {
    proves: 'whoever cancels leads back with access_denied',
    async run({ issuer, begin }) {
      const flow = await begin()
      const requestUri = await flow.pushed({ state: 'the state' })
      const sent = formOf({ client_id: flow.client.id, request_uri: requestUri })
      const page = await flow.browser.get(`${issuer.issuer}/auth?${sent}`)
      const { location } = await flow.browser.submit(page, { choice: 'cancel' })
      expect(Object.fromEntries(new URL(location!).searchParams)).toMatchObject({
        ...{ error: 'access_denied', state: 'the state', iss: issuer.issuer },
      })
    },
  },
  'ensure-authorization-request-without-state-success': succeedsWith(
    'without state none comes back',
    { state: undefined },
    ({ callback }) => expect(callback.has('state')).toBe(false),
  ),
  'ensure-authorization-request-without-nonce-success': succeedsWith(
    'without nonce the ID token has none',
    { nonce: undefined },
    ({ tokens }) => expect(decodeJwt(tokens.id_token)).not.toHaveProperty('nonce'),
  ),
  'ensure-authorization-request-with-64-char-nonce-success': succeedsWith(
    'a nonce of 64 characters comes back',
    { nonce: 'n'.repeat(64) },
    ({ tokens }) => expect(decodeJwt(tokens.id_token)['nonce']).toBe('n'.repeat(64)),
  ),
  'ensure-authorization-request-with-long-nonce': succeedsWith(
    'a long nonce comes back',
    { nonce: 'n'.repeat(384) },
    ({ tokens }) => expect(decodeJwt(tokens.id_token)['nonce']).toBe('n'.repeat(384)),
  ),
  'ensure-authorization-request-with-long-state': succeedsWith(
    'a long state comes back',
    { state: 's'.repeat(1_000) },
    ({ callback }) => expect(callback.get('state')).toBe('s'.repeat(1_000)),
  ),
  'ensure-other-scope-order-succeeds': succeedsWith('scopes come in any order', { scope: 'read:orders openid' }),
  'test-claims-parameter-identity-claims': {
    doesNotApply: 'Optional, and the parameter claims is not supported; discovery says so.',
  },
  'test-essential-acr-sca-claim': {
    doesNotApply: 'Optional, and about an acr of one ecosystem that is asked for by the parameter claims.',
  },
  'ensure-different-nonce-inside-and-outside-request-object': {
    proves: 'what was sent ahead counts, not the nonce in the URL',
    async run({ begin }) {
      const flow = await begin()
      const { callback } = await flow.visit(await flow.pushed({ nonce: 'ahead' }), { nonce: 'in the URL' })
      const { body } = await flow.redeem(callback!.get('code')!)
      expect(decodeJwt(body.id_token)['nonce']).toBe('ahead')
    },
  },
  'ensure-different-state-inside-and-outside-request-object': {
    proves: 'what was sent ahead counts, not the state in the URL',
    async run({ begin }) {
      const flow = await begin()
      const { callback } = await flow.visit(await flow.pushed({ state: 'ahead' }), { state: 'in the URL' })
      expect(callback!.get('state')).toBe('ahead')
    },
  },
  'state-only-outside-request-object-not-used': {
    proves: 'a state in the URL alone does not come back',
    async run({ begin }) {
      const flow = await begin()
      const { callback } = await flow.visit(await flow.pushed({ state: undefined }), { state: 'in the URL' })
      expect([callback!.has('code'), callback!.has('state')]).toEqual([true, false])
    },
  },
  'ensure-registered-redirect-uri': isRefusedAhead('a redirect URI that is not registered is refused', {
    redirect_uri: 'https://client.example.test/another',
  }),
  'plain-fapi-tolerate-unregistered-redirect-uri': isRefusedAhead('and so it is where it might be tolerated', {
    redirect_uri: 'https://client.example.test/cb?unregistered',
  }),
  'ensure-unsigned-authorization-request-without-using-par-fails': {
    proves: 'a request that was not sent ahead is refused, on a page',
    async run({ issuer, begin }) {
      const { browser, client } = await begin()
      const sent = formOf({
        ...{ client_id: client.id, redirect_uri: 'https://client.example.test/cb', response_type: 'code' },
        ...{ scope: 'openid', code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' },
      })
      const page = await browser.get(`${issuer.issuer}/auth?${sent}`)
      expect([page.status, page.location]).toEqual([400, undefined])
    },
  },
  'ensure-redirect-uri-in-authorization-request': isRefusedAhead('a redirect URI is needed', {
    redirect_uri: undefined,
  }),
  'ensure-response-type-code-idtoken-fails': isRefusedAhead(
    'code id_token is no response type',
    { response_type: 'code id_token' },
    'unsupported_response_type',
  ),
  'ensure-response-type-token-fails': isRefusedAhead(
    'token is no response type',
    { response_type: 'token' },
    'unsupported_response_type',
  ),
  'par-attempt-reuse-request_uri': {
    proves: 'a request_uri that has led to a code leads to no other',
    async run({ begin }) {
      const flow = await begin()
      const { requestUri } = await flow.signIn()
      await isRefusedOnPage(flow, requestUri)
    },
  },
  'par-ensure-reused-request-uri-prior-to-auth-completion-succeeds': {
    proves: 'until then the page may be opened again',
    async run({ issuer, begin }) {
      const flow = await begin()
      const requestUri = await flow.pushed()
      const url = `${issuer.issuer}/auth?${formOf({ client_id: flow.client.id, request_uri: requestUri })}`
      expect((await flow.browser.get(url)).status).toBe(200)
      expect((await flow.visit(requestUri)).callback?.has('code')).toBe(true)
    },
  },
  'par-attempt-to-use-expired-request_uri': {
    proves: 'a request_uri is good for a minute',
    async run({ issuer, begin }) {
      const flow = await begin()
      const { body } = await flow.push()
      expect(body.expires_in).toBeLessThan(600)
      await issuer.sql(`UPDATE pushed_requests SET expires_at = expires_at - $1 * interval '1 second'`, [
        body.expires_in,
      ])
      await isRefusedOnPage(flow, body.request_uri)
    },
  },
  'par-attempt-to-use-request_uri-for-different-client': {
    proves: 'a request_uri is its client’s alone',
    async run({ begin, clients }) {
      const flow = await begin()
      await isRefusedOnPage(flow, await flow.pushed(), { client_id: clients.second.id })
    },
  },
  'par-authorization-request-containing-request_uri-form-param': isRefusedAhead('a request_uri is not sent ahead', {
    request_uri: 'urn:ietf:params:oauth:request_uri:another',
  }),
  'par-attempt-invalid-http-method': {
    proves: 'requests are sent ahead by POST',
    async run({ issuer }) {
      for (const method of ['GET', 'PUT'])
        expect((await request(`${issuer.url}/oidc/request`, { method })).status, method).toBe(405)
    },
  },
  'par-without-duplicate-parameters': {
    proves: 'client_id and request_uri are enough in the URL',
    async run({ begin }) {
      const flow = await begin()
      expect((await flow.visit(await flow.pushed())).callback?.has('code')).toBe(true)
    },
  },
  'par-ensure-pkce-required': isRefusedAhead('a challenge is needed', {
    ...{ code_challenge: undefined, code_challenge_method: undefined },
  }),
  'par-plain-pkce-rejected': isRefusedAhead('the challenge is S256', { code_challenge_method: 'plain' }),
  'ensure-mismatched-dpop-jkt-fails': {
    proves: 'the dpop_jkt is of the key of the proof',
    async run({ begin }) {
      const [flow, other] = [await begin(), await begin()]
      expect(await flow.push({ dpop_jkt: other.key.thumbprint }, { proof: {} })).toMatchObject(invalidRequest)
    },
  },
}
