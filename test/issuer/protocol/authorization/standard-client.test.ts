import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { request } from '../../../support/issuer.ts'
import { type AuthorizationServer, startAuthorizationServer } from './authorization-server.ts'

let server: AuthorizationServer
beforeAll(async () => {
  server = await startAuthorizationServer()
})
afterAll(() => server.close())

test('a standard client sends its request ahead and believes the answer, which names its issuer', async () => {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const url = new URL(server.issuer.issuer)
  const discovered = await oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, insecure))
  expect(discovered).toMatchObject({
    authorization_endpoint: `${server.issuer.issuer}/auth`,
    pushed_authorization_request_endpoint: `${server.issuer.issuer}/request`,
  })
  const metadata = { ...discovered, pushed_authorization_request_endpoint: `${server.url}/oidc/request` }
  const shop = await server.createClient()
  const client = { client_id: shop.id }
  const state = oauth.generateRandomState()
  const parameters = new URLSearchParams({
    redirect_uri: 'https://shop.test/cb',
    response_type: 'code',
    scope: 'openid',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier()),
    code_challenge_method: 'S256',
  })
  const proof = oauth.ClientSecretBasic(shop.secret!)
  const answer = await oauth.pushedAuthorizationRequest(metadata, client, proof, parameters, insecure)
  const { request_uri } = await oauth.processPushedAuthorizationResponse(metadata, client, answer)

  server.leadTo({ kind: 'authorized', code: 'the-code', setCookies: [] })
  const back = await request(`${server.url}/oidc/auth?${new URLSearchParams({ ...client, request_uri })}`)
  const checked = oauth.validateAuthResponse(metadata, client, new URL(back.headers.get('location')!), state)
  expect(checked.get('code')).toBe('the-code')

  // What it did not ask for, or another issuer sent, it would not believe.
  const foreign = back.headers
    .get('location')!
    .replace(encodeURIComponent(server.issuer.issuer), 'https%3A%2F%2Fevil.test')
  expect(() => oauth.validateAuthResponse(metadata, client, new URL(foreign), state)).toThrow('iss')
})
