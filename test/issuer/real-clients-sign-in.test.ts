import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Browser, createBrowser, type Visit } from '../support/browser.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'
import type { TestApplication } from '../support/issuer-data.ts'

/** People sign in to what integrators use, as its documentation says; a browser goes where it is sent. */

const redirectUri = 'https://app.example.test/callback'
const signedOutUri = 'https://app.example.test/signed-out'
const password = 'correct horse battery staple'
const email = 'ada@example.test'

let issuer: TestIssuer
let orders: string
let invoices: string
let web: TestApplication
let page: TestApplication
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  invoices = await issuer.createResource({ scopes: ['read:invoices'] })
  web = await createApplication('Traditional')
  page = await createApplication('SPA')
  const answer = await issuer.api('POST', '/users', { name: 'Ada', primaryEmail: email, password })
  user = answer.body
  await issuer.grantUser(user.id, orders, ['read:orders'])
  await issuer.grantUser(user.id, invoices, ['read:invoices'])
})
afterAll(() => issuer.close())

let browser: Browser
beforeEach(() => {
  browser = createBrowser(issuer.baseUrl)
})

const createApplication = async (type: string): Promise<TestApplication> => {
  const { body } = await issuer.api('POST', '/applications', {
    name: 'An application',
    type,
    oidcClientMetadata: { redirectUris: [redirectUri], postLogoutRedirectUris: [signedOutUri] },
  })
  return body
}

/** Opens the URL and signs in if asked. Answers where the browser is sent, or the page it stays on. */
const visit = async (url: URL): Promise<Visit> => {
  const shown = await browser.get(url.href)
  if (!shown.forms.some(({ names }) => names.includes('password'))) return shown
  return browser.submit(shown, { identifier: email, password, choice: 'sign_in' })
}
const callbackOf = async (url: URL) => new URL((await visit(url)).location!)

/** What an application of a page and an API asks for. */
const request = () => ({
  redirect_uri: redirectUri,
  scope: 'openid profile email offline_access read:orders read:invoices',
  resource: [orders, invoices],
})

describe('openid-client', () => {
  const connect = ({ id, secret }: TestApplication) =>
    openid.discovery(
      new URL(issuer.issuer),
      id,
      undefined,
      secret === undefined ? openid.None() : openid.ClientSecretBasic(secret),
      { execute: [openid.allowInsecureRequests] },
    )

  const begin = async (parameters: Record<string, string> = {}) => {
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const expectedState = openid.randomState()
    const expectedNonce = openid.randomNonce()
    const sent = new URLSearchParams({ redirect_uri: redirectUri, scope: request().scope })
    for (const resource of request().resource) sent.append('resource', resource)
    const own = {
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      state: expectedState,
      nonce: expectedNonce,
      ...parameters,
    }
    for (const [name, value] of Object.entries(own)) sent.set(name, value)
    return { sent, checks: { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true } }
  }

  const signIn = async (config: openid.Configuration, parameters?: Record<string, string>) => {
    const { sent, checks } = await begin(parameters)
    const callback = await callbackOf(openid.buildAuthorizationUrl(config, sent))
    return openid.authorizationCodeGrant(config, callback, checks)
  }

  test.each([
    ['that keeps a secret', () => web],
    ['in a page', () => page],
  ])('signs a person in to an application %s, and calls APIs', async (_, client) => {
    const config = await connect(client())
    const tokens = await signIn(config)
    expect(tokens.claims()).toMatchObject({
      sub: user.id,
      acr: 'urn:surrogate:acr:basic',
      amr: ['pwd'],
      auth_time: expect.any(Number),
      sid: expect.any(String),
    })
    expect(await openid.fetchUserInfo(config, tokens.access_token, user.id)).toMatchObject({
      name: 'Ada',
      email,
      email_verified: true,
    })

    let refreshToken = tokens.refresh_token!
    for (const [resource, scope] of [
      [orders, 'read:orders'],
      [invoices, 'read:invoices'],
    ] as const) {
      const refreshed = await openid.refreshTokenGrant(config, refreshToken, { resource })
      expect(await issuer.verify(refreshed.access_token, resource)).toMatchObject({
        sub: user.id,
        client_id: client().id,
        scope,
        sid: tokens.claims()!['sid'],
        auth_time: tokens.claims()!.auth_time,
      })
      expect(refreshed.claims()).toMatchObject({ sub: user.id, auth_time: tokens.claims()!.auth_time })
      refreshToken = refreshed.refresh_token ?? refreshToken
    }

    await openid.tokenRevocation(config, refreshToken)
    await expect(openid.refreshTokenGrant(config, refreshToken)).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('sends its request ahead (RFC 9126)', async () => {
    const config = await connect(web)
    const { sent, checks } = await begin()
    const url = await openid.buildAuthorizationUrlWithPAR(config, sent)
    expect([...url.searchParams.keys()].sort()).toEqual(['client_id', 'request_uri'])
    const tokens = await openid.authorizationCodeGrant(config, await callbackOf(url), checks)
    expect(tokens.claims()).toMatchObject({ sub: user.id, nonce: checks.expectedNonce })
  })

  test('takes the code from a form that the browser posts', async () => {
    const config = await connect(web)
    const { sent, checks } = await begin({ response_mode: 'form_post' })
    const { forms } = await visit(openid.buildAuthorizationUrl(config, sent))
    expect(forms).toMatchObject([{ action: redirectUri, method: 'POST' }])
    const posted = new Request(redirectUri, { method: 'POST', body: new URLSearchParams(forms[0]!.fields) })
    const tokens = await openid.authorizationCodeGrant(config, posted, checks)
    expect(tokens.claims()).toMatchObject({ sub: user.id })
  })

  test('sees the session of the browser, and that it is too old', async () => {
    const config = await connect(web)
    const first = await signIn(config, { max_age: '3600' })
    const { sent, checks } = await begin({ prompt: 'none' })
    const silent = await callbackOf(openid.buildAuthorizationUrl(config, sent))
    const tokens = await openid.authorizationCodeGrant(config, silent, { ...checks, maxAge: 3600 })
    expect(tokens.claims()).toMatchObject({ sub: user.id, auth_time: first.claims()!.auth_time })

    await issuer.sql(`UPDATE sessions SET authenticated_at = authenticated_at - interval '2 hours'`)
    const late = await begin({ prompt: 'none', max_age: '3600' })
    const refused = await callbackOf(openid.buildAuthorizationUrl(config, late.sent))
    await expect(openid.authorizationCodeGrant(config, refused, late.checks)).rejects.toMatchObject({
      error: 'login_required',
    })
  })

  test('does not believe an answer that names another issuer, or none (RFC 9207)', async () => {
    const config = await connect(web)
    for (const iss of ['https://evil.example.test/oidc', undefined]) {
      const { sent, checks } = await begin()
      const callback = await callbackOf(openid.buildAuthorizationUrl(config, sent))
      if (iss === undefined) callback.searchParams.delete('iss')
      else callback.searchParams.set('iss', iss)
      await expect(openid.authorizationCodeGrant(config, callback, checks)).rejects.toMatchObject({
        cause: { message: expect.stringContaining('"iss"') },
      })
    }
  })

  test('signs a person out, and nobody is signed in afterwards', async () => {
    const config = await connect(web)
    const tokens = await signIn(config)
    const state = openid.randomState()
    const url = openid.buildEndSessionUrl(config, {
      id_token_hint: tokens.id_token!,
      post_logout_redirect_uri: signedOutUri,
      state,
    })
    expect((await browser.get(url.href)).location).toBe(`${signedOutUri}?state=${state}`)
    await expect(openid.refreshTokenGrant(config, tokens.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
      cause: { reason: 'session_ended' },
    })
    const { sent, checks } = await begin({ prompt: 'none' })
    const callback = await callbackOf(openid.buildAuthorizationUrl(config, sent))
    await expect(openid.authorizationCodeGrant(config, callback, checks)).rejects.toMatchObject({
      error: 'login_required',
      error_description: expect.any(String),
    })
  })
})

describe('oauth4webapi', () => {
  const insecure = { [oauth.allowInsecureRequests]: true }
  let server: oauth.AuthorizationServer
  beforeAll(async () => {
    const url = new URL(issuer.issuer)
    server = await oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, insecure))
  })

  /** Where the browser is sent, with what proves that it is an answer to this request. */
  const authorize = async (client: oauth.Client, parameters: Record<string, string> = {}) => {
    const [verifier, state, nonce] = [
      oauth.generateRandomCodeVerifier(),
      oauth.generateRandomState(),
      oauth.generateRandomNonce(),
    ]
    const url = new URL(server.authorization_endpoint!)
    const { resource, ...single } = request()
    for (const [name, value] of Object.entries({
      ...single,
      client_id: client.client_id,
      response_type: 'code',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
      ...parameters,
    }))
      url.searchParams.set(name, value)
    for (const name of resource) url.searchParams.append('resource', name)
    return { callback: await callbackOf(url), verifier, state, nonce }
  }

  test.each<[string, () => TestApplication, (secret: string) => oauth.ClientAuth]>([
    ['client_secret_basic', () => web, oauth.ClientSecretBasic],
    ['client_secret_post', () => web, oauth.ClientSecretPost],
    ['none', () => page, oauth.None],
  ])('goes through the code flow with %s, and every answer holds', async (_, application, authenticate) => {
    const { id, secret = '' } = application()
    const client = { client_id: id }
    const authentication = authenticate(secret)
    const { callback, verifier, state, nonce } = await authorize(client)
    const answer = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authentication,
      oauth.validateAuthResponse(server, client, callback, state),
      redirectUri,
      verifier,
      insecure,
    )
    const options = { expectedNonce: nonce, requireIdToken: true }
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, options)
    await oauth.validateApplicationLevelSignature(server, answer, insecure)
    const claims = oauth.getValidatedIdTokenClaims(tokens)!
    expect(tokens).toMatchObject({ token_type: 'bearer', scope: expect.stringContaining('openid') })

    const userinfo = await oauth.userInfoRequest(server, client, tokens.access_token, insecure)
    expect(await oauth.processUserInfoResponse(server, client, claims.sub, userinfo)).toMatchObject({ name: 'Ada' })

    const refreshed = await oauth.processRefreshTokenResponse(
      server,
      client,
      await oauth.refreshTokenGrantRequest(server, client, authentication, tokens.refresh_token!, {
        ...insecure,
        additionalParameters: { resource: orders },
      }),
    )
    const call = new Request(orders, { headers: { authorization: `Bearer ${refreshed.access_token}` } })
    expect(await oauth.validateJwtAccessToken(server, call, orders, insecure)).toMatchObject({
      sub: user.id,
      scope: 'read:orders',
      acr: 'urn:surrogate:acr:basic',
      auth_time: claims.auth_time,
    })
    const elsewhere = oauth.validateJwtAccessToken(server, call, invoices, insecure)
    await expect(elsewhere).rejects.toThrow('aud')

    const refreshToken = refreshed.refresh_token ?? tokens.refresh_token!
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(server, client, authentication, refreshToken, insecure),
    )
    const late = await oauth.userInfoRequest(server, client, tokens.access_token, insecure)
    await expect(oauth.processUserInfoResponse(server, client, claims.sub, late)).rejects.toMatchObject({
      cause: [{ scheme: 'bearer', parameters: { error: 'invalid_token' } }],
    })
  })

  test('reads why a code is refused the second time', async () => {
    const client = { client_id: web.id }
    const { callback, verifier, state } = await authorize(client)
    const parameters = oauth.validateAuthResponse(server, client, callback, state)
    const redeem = () =>
      oauth.authorizationCodeGrantRequest(
        server,
        client,
        oauth.ClientSecretBasic(web.secret!),
        parameters,
        redirectUri,
        verifier,
        insecure,
      )
    expect((await redeem()).status).toBe(200)
    await expect(oauth.processAuthorizationCodeResponse(server, client, await redeem())).rejects.toMatchObject({
      error: 'invalid_grant',
      status: 400,
    })
  })

  test.each([
    ['a scope that no resource has', { scope: 'openid read:nothing' }, 'invalid_scope'],
    ['a resource that is unknown', { resource: 'https://unknown.example.test' }, 'invalid_target'],
    ['prompt=none without a session', { prompt: 'none' }, 'login_required'],
    ['an implicit response', { response_type: 'token' }, 'unsupported_response_type'],
    ['PKCE with plain', { code_challenge_method: 'plain' }, 'invalid_request'],
  ])('reads at its address why it gets no code: %s', async (_, parameters, error) => {
    const client = { client_id: web.id }
    const { callback, state } = await authorize(client, parameters)
    const read = () => oauth.validateAuthResponse(server, client, callback, state)
    expect(read).toThrow(expect.objectContaining({ error, error_description: expect.any(String) }))
  })
})
