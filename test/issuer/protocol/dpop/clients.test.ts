import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CodeFlow, callback, createCodeFlow, type Person } from '../../../support/code-flow.ts'
import { orders, startTestGateway, type TestGateway } from '../../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { startProcess } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'

/** Clients that are not ours, from discovery to an API behind the gateway, whose route requires a bound token. */

let issuer: TestIssuer
let gateway: TestGateway
let flow: CodeFlow
let person: Person
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  person = await flow.createPerson()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  await issuer.grantUser(person.id, orders, ['read:orders'])
  const { id, secret } = await issuer.createMachine(issuer.managementResource, ['revocations'])
  const introspection = { url: `${issuer.issuer}/token/introspection`, client: { id, secret } }
  gateway = await startTestGateway({
    config: () => ({
      issuers: [{ issuer: issuer.issuer, client: { id, secret }, revocations: { mode: 'feed' }, introspection }],
      routes: [
        {
          ...{ id: 'orders', path: '/orders/**', audience: [orders], upstream: 'orders' },
          ...{ dpop: 'required', scopes: ['read:orders'] },
        },
      ],
    }),
  })
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }))
})
afterAll(async () => {
  await gateway.close()
  await issuer.close()
})

const trial = { [oauth.allowInsecureRequests]: true }
const order = () => new URL(`${gateway.url}/orders/1`)

/** As the libraries say: the nonce of a refusal is known for the next try. */
const withNonce = async <Result>(send: () => Promise<Result>): Promise<Result> =>
  send().catch((error: unknown) => {
    if (!oauth.isDPoPNonceError(error)) throw error
    return send()
  })

test('the program of the documentation gets its token and calls the API', async () => {
  const machine = await issuer.createMachine(orders, ['read:orders'])
  const folder = await mkdtemp(join(tmpdir(), 'dpop-issuer-'))
  const page = await readFile(new URL('../../../../docs/dpop.md', import.meta.url), 'utf8')
  await writeFile(join(folder, 'client.mjs'), /```js\n([\s\S]*?)```/.exec(page)![1]!)
  await symlink(fileURLToPath(new URL('../../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
  const child = startProcess(process.execPath, ['client.mjs'], {
    cwd: folder,
    env: {
      ISSUER: issuer.issuer,
      CLIENT_ID: machine.id,
      CLIENT_SECRET: machine.secret!,
      RESOURCE: orders,
      URL: `${order()}?page=2`,
    },
  })
  await child.exited
  await rm(folder, { recursive: true })
  expect(child.output()).toBe('a token of the type dpop\n200\n200\n200\n')
})

describe.each([
  ['Traditional', 'ES256'],
  ['Native', 'Ed25519'],
])('oauth4webapi for an application of type %s, with %s', (type, alg) => {
  test('signs a person in with a code for its key, calls the API, refreshes, asks userinfo, gives up', async () => {
    const application = await flow.createClient({ type })
    const client: oauth.Client = { client_id: application.id }
    const auth = application.secret === undefined ? oauth.None() : oauth.ClientSecretBasic(application.secret)
    const at = new URL(issuer.issuer)
    const server = await oauth.processDiscoveryResponse(at, await oauth.discoveryRequest(at, trial))
    expect(server.dpop_signing_alg_values_supported).toContain(alg)
    const dpop = oauth.DPoP(client, await oauth.generateKeyPair(alg))
    const options = { ...trial, DPoP: dpop }

    const verifier = oauth.generateRandomCodeVerifier()
    const parameters = {
      redirect_uri: callback,
      response_type: 'code',
      scope: 'openid offline_access read:orders',
      resource: orders,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    const pushed = await withNonce(async () =>
      oauth.processPushedAuthorizationResponse(
        server,
        client,
        await oauth.pushedAuthorizationRequest(server, client, auth, new URLSearchParams(parameters), options),
      ),
    )
    const browser = flow.browser()
    const page = await browser.get(
      `${server.authorization_endpoint}?${new URLSearchParams({ client_id: client.client_id, request_uri: pushed.request_uri })}`,
    )
    const { location } = await browser.submit(page, flow.credentials(person))
    const back = oauth.validateAuthResponse(server, client, new URL(location!))
    const redeem = (handle: oauth.DPoPHandle) =>
      withNonce(async () =>
        oauth.processAuthorizationCodeResponse(
          server,
          client,
          await oauth.authorizationCodeGrantRequest(server, client, auth, back, callback, verifier, {
            ...trial,
            DPoP: handle,
            additionalParameters: { resource: orders },
          }),
        ),
      )
    const stranger = oauth.DPoP(client, await oauth.generateKeyPair(alg))
    await expect(redeem(stranger), 'with another key').rejects.toMatchObject({ error: 'invalid_grant' })
    const tokens = await redeem(dpop)
    expect(tokens.token_type).toBe('dpop')

    const call = async (token: string, handle = dpop) =>
      withNonce(() =>
        oauth.protectedResourceRequest(token, 'GET', order(), undefined, undefined, { ...trial, DPoP: handle }),
      )
    expect((await call(tokens.access_token)).status).toBe(200)
    await expect(call(tokens.access_token, stranger)).rejects.toMatchObject({ status: 401 })
    expect((await gateway.call('/orders/1', { token: tokens.access_token })).status, 'as a bearer token').toBe(401)

    const refreshed = await withNonce(async () =>
      oauth.processRefreshTokenResponse(
        server,
        client,
        await oauth.refreshTokenGrantRequest(server, client, auth, tokens.refresh_token!, options),
      ),
    )
    expect(refreshed.access_token, 'for userinfo, so opaque').not.toContain('.')
    const info = await withNonce(async () =>
      oauth.processUserInfoResponse(
        server,
        client,
        person.id,
        await oauth.userInfoRequest(server, client, refreshed.access_token, options),
      ),
    )
    expect(info.sub).toBe(person.id)

    const revoked = await oauth.revocationRequest(server, client, auth, refreshed.refresh_token!, trial)
    expect(await oauth.processRevocationResponse(revoked)).toBe(undefined)
    await until(async () => await expect(call(tokens.access_token)).rejects.toMatchObject({ status: 401 }))
  })
})

describe('openid-client', () => {
  const connect = async ({ id, secret }: TestApplication) =>
    openid.discovery(
      new URL(issuer.issuer),
      id,
      undefined,
      secret === undefined ? openid.None() : openid.ClientSecretBasic(secret),
      { execute: [openid.allowInsecureRequests] },
    )

  test('finds its way through nonces by itself: code, refresh, userinfo, API', async () => {
    const config = await connect(await flow.createClient({ type: 'SPA', custom: { dpopBoundAccessTokens: true } }))
    const DPoP = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair())
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: callback,
      scope: 'openid offline_access read:orders',
      resource: orders,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      dpop_jkt: await DPoP.calculateThumbprint(),
    })
    const browser = flow.browser()
    const { location } = await browser.submit(await browser.get(url.href), flow.credentials(person))
    const tokens = await openid.authorizationCodeGrant(config, new URL(location!), { pkceCodeVerifier }, undefined, {
      DPoP,
    })
    expect(tokens.token_type).toBe('dpop')
    expect(await openid.fetchUserInfo(config, tokens.access_token, person.id, { DPoP })).toMatchObject({
      sub: person.id,
    })
    const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token!, { resource: orders }, { DPoP })
    const answer = await openid.fetchProtectedResource(
      config,
      refreshed.access_token,
      order(),
      'GET',
      undefined,
      undefined,
      { DPoP },
    )
    expect(answer.status).toBe(200)
    await expect(openid.refreshTokenGrant(config, refreshed.refresh_token!), 'without a proof').rejects.toMatchObject({
      error: 'invalid_dpop_proof',
    })
  })
})
