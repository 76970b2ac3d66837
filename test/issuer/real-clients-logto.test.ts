import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generateCodeChallenge, generateCodeVerifier, generateState } from '@logto/browser'
import BrowserlessClient, {
  type ClientAdapter,
  createRequester,
  type LogtoConfig,
  type PersistKey,
  Prompt,
  type StandardLogtoClient,
  type Storage,
  type StorageKey,
  UserScope,
} from '@logto/client'
import { handleAuthRoutes, type LogtoExpressConfig, withLogto } from '@logto/express'
import NodeClient, { type LogtoContext } from '@logto/node'
import express from 'express'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { newId } from '../../platform/ids.ts'
import { type Browser, createBrowser } from '../support/browser.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'

/** Applications made with Logto's SDKs, with nothing of ours between SDK and issuer. */

const redirectUri = 'https://shop.example.test/callback'
const home = 'https://shop.example.test/'
const credentials = { identifier: 'ada', password: 'a good password', choice: 'sign_in' }

let issuer: TestIssuer
let ada: { id: string }
let orders: string
let stock: string
let organizationId: string
let browser: Browser
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
  stock = await issuer.createResource({ scopes: ['read:stock'] })
  ada = await create('/users', {
    username: 'ada',
    password: credentials.password,
    primaryEmail: 'ada@example.test',
    name: 'Ada Lovelace',
    customData: { plan: 'gold' },
  })
  await issuer.grantUser(ada.id, orders, ['read:orders'], 'clerk')
  await issuer.grantUser(ada.id, stock, ['read:stock'], 'porter')
  const scope = await create('/organization-scopes', { name: 'edit:team' })
  const role = await create('/organization-roles', { name: 'editor', organizationScopeIds: [scope.id] })
  organizationId = (await create('/organizations', { name: 'Acme' })).id
  await issuer.api('POST', `/organizations/${organizationId}/users`, { userIds: [ada.id] })
  await issuer.api('PUT', `/organizations/${organizationId}/users/${ada.id}/roles`, { organizationRoleIds: [role.id] })
})
afterAll(() => issuer.close())

beforeEach(() => {
  browser = createBrowser(issuer.baseUrl)
  // The SDK prints what it was refused.
  vi.spyOn(console, 'error').mockReturnValue()
})
afterEach(() => vi.restoreAllMocks())

const create = async (path: string, body: unknown) => {
  const answer = await issuer.api('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body
}

const scopes = [
  ...[UserScope.Email, UserScope.CustomData, UserScope.Roles],
  ...[UserScope.Organizations, UserScope.OrganizationRoles],
  ...['read:orders', 'write:orders', 'read:stock', 'edit:team'],
]

const registered = { redirectUris: [redirectUri], postLogoutRedirectUris: [home] }

interface Application {
  id: string
  secret?: string
}

const createClientApplication = async (type: string, uris = registered): Promise<Application> => {
  const { id } = await create('/applications', { name: 'Shop', type, oidcClientMetadata: uris })
  if (type !== 'Traditional') return { id }
  const { value } = await create(`/applications/${id}/secrets`, { name: 'for the tests' })
  return { id, secret: value }
}

/** What stays between two visits: as `localStorage` does, or the session of a web application. */
const createStorage = (items = new Map<string, string>()): Storage<StorageKey | PersistKey> => ({
  getItem: async (key) => items.get(key) ?? null,
  setItem: async (key, value) => void items.set(key, value),
  removeItem: async (key) => void items.delete(key),
})

type Adapter = Pick<ClientAdapter, 'navigate' | 'storage'>
interface Kind {
  type: string
  open(config: LogtoConfig, adapter: Adapter): StandardLogtoClient
}

const generators = { generateCodeChallenge, generateCodeVerifier, generateState }
const kinds: Record<string, Kind> = {
  '@logto/client, single-page': {
    type: 'SPA',
    open: (config, adapter) =>
      new BrowserlessClient(config, { requester: createRequester(fetch), ...generators, ...adapter }),
  },
  '@logto/node, native': { type: 'Native', open: (config, adapter) => new NodeClient(config, adapter) },
  '@logto/node, with a secret': { type: 'Traditional', open: (config, adapter) => new NodeClient(config, adapter) },
}

describe.each(Object.entries(kinds))('%s', (_, { type, open }) => {
  let application: Application
  let config: LogtoConfig
  beforeAll(async () => {
    application = await createClientApplication(type)
    config = {
      ...{ endpoint: issuer.baseUrl, appId: application.id, scopes, resources: [orders, stock] },
      ...(application.secret === undefined ? {} : { appSecret: application.secret }),
    }
  })

  /** An application that was just opened; `led` is where the SDK last sent the browser. */
  const start = (storage = createStorage(), changed: Partial<LogtoConfig> = {}) => {
    const led = { to: '' }
    const client = open(
      { ...config, ...changed },
      {
        storage,
        navigate: (url) => {
          led.to = url
        },
      },
    )
    return { client, storage, led }
  }

  const signIn = async (changed?: Partial<LogtoConfig>) => {
    const application = start(undefined, changed)
    await application.client.signIn(redirectUri)
    const page = await browser.get(application.led.to)
    const { location } = await browser.submit(page, credentials)
    expect(await application.client.isSignInRedirected(location!)).toBe(true)
    await application.client.handleSignInCallback(location!)
    return application
  }

  const refused = (code: string) => ({ name: 'LogtoRequestError', code, message: expect.any(String) })

  test('signs in, and knows who it is', async () => {
    const { client } = await signIn()
    expect(await client.isAuthenticated()).toBe(true)
    expect(await client.getIdTokenClaims()).toMatchObject({
      ...{ iss: issuer.issuer, aud: application.id, sub: ada.id },
      ...{ name: 'Ada Lovelace', username: 'ada', email: 'ada@example.test', email_verified: true },
      ...{ organizations: [organizationId], organization_roles: [`${organizationId}:editor`] },
    })
    expect((await client.getIdTokenClaims()).roles?.toSorted()).toEqual(['clerk', 'porter'])
    expect(await client.fetchUserInfo()).toMatchObject({
      ...{ sub: ada.id, name: 'Ada Lovelace', email: 'ada@example.test', email_verified: true },
      custom_data: { plan: 'gold' },
    })
  })

  test('gets tokens for APIs and an organization, all at once', async () => {
    const { client, storage } = await signIn()
    const first = await client.getRefreshToken()
    const [forOrders, forStock, forTeam, opaque] = await Promise.all([
      client.getAccessToken(orders),
      client.getAccessToken(stock),
      client.getOrganizationToken(organizationId),
      client.getAccessToken(),
    ])
    expect(await issuer.verify(forOrders, orders)).toMatchObject({ sub: ada.id, scope: 'read:orders' })
    expect(await issuer.verify(forStock, stock)).toMatchObject({ sub: ada.id, scope: 'read:stock' })
    const urn = `urn:logto:organization:${organizationId}`
    expect(await issuer.verify(forTeam, urn)).toMatchObject({ sub: ada.id, scope: 'edit:team' })
    expect(opaque).toMatch(/^[\w-]{43}$/)
    expect((await client.getOrganizationTokenClaims(organizationId)).aud).toBe(urn)
    expect((await client.getAccessTokenClaims(orders)).client_id).toBe(application.id)
    expect((await client.getRefreshToken()) === first).toBe(application.secret !== undefined)

    // Long after all that: whichever answer came last, the refresh token that stayed is the one that counts.
    await issuer.sql(`UPDATE refresh_tokens SET rotated_at = rotated_at - interval '1 minute'`)
    await client.clearAccessToken()
    expect(await start(storage).client.getAccessToken(orders)).not.toBe(forOrders)
  })

  test('gets another token when the first has expired, after a restart too', async () => {
    const { client, storage } = await signIn()
    const before = await client.getAccessToken(orders)
    expect(await start(storage).client.getAccessToken(orders)).toBe(before)
    const tokens = JSON.parse((await storage.getItem('accessToken'))!)
    for (const token of Object.values<{ expiresAt: number }>(tokens)) token.expiresAt -= 7200
    await storage.setItem('accessToken', JSON.stringify(tokens))
    const { client: restarted } = start(storage)
    const after = await restarted.getAccessToken(orders)
    expect(after).not.toBe(before)
    expect(await issuer.verify(after, orders)).toMatchObject({ sub: ada.id })
    expect((await restarted.fetchUserInfo()).sub).toBe(ada.id)
  })

  test('signs out here, without a question', async () => {
    const { client, storage, led } = await signIn()
    const [refreshToken, accessToken] = [await client.getRefreshToken(), await client.getAccessToken()]
    await client.signOut(home)
    expect((await browser.get(led.to)).location).toBe(home)
    expect(await client.isAuthenticated()).toBe(false)
    await expect(client.getAccessToken(orders)).rejects.toMatchObject({ code: 'not_authenticated' })

    const me = await fetch(`${issuer.issuer}/me`, { headers: { authorization: `Bearer ${accessToken}` } })
    expect(me.status).toBe(401)
    const token = { grant_type: 'refresh_token', refresh_token: refreshToken! }
    expect(await issuer.token(application, token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const again = start(storage)
    await again.client.signIn(redirectUri)
    expect((await browser.get(again.led.to)).forms[0]!.names).toContain('password')
  })

  test('finds the session of another application: no password the second time', async () => {
    await signIn()
    const { client, led } = start()
    await client.signIn({ redirectUri, postRedirectUri: home })
    await client.handleSignInCallback((await browser.get(led.to)).location!)
    expect(led.to).toBe(home)
    expect((await client.getIdTokenClaims()).sub).toBe(ada.id)
  })

  test('asks for the password with prompt=login, whatever else the SDK can say', async () => {
    await signIn()
    const { client, led } = start()
    await client.signIn({
      ...{ redirectUri, prompt: Prompt.Login, loginHint: 'ada', firstScreen: 'identifier:sign_in' as const },
      ...{ identifiers: ['email', 'username'] as const, clearTokens: false },
      ...{ directSignIn: { method: 'social' as const, target: 'github' }, extraParams: { ui_locales: 'de' } },
    })
    const page = await browser.get(led.to)
    expect(page.text).toContain('lang="de"')
    expect(page.forms[0]!.fields).toMatchObject({ identifier: 'ada' })
    await client.handleSignInCallback((await browser.submit(page, credentials)).location!)
    expect(await client.isAuthenticated()).toBe(true)
  })

  test('is told why it gets no token, in words that the SDK reads', async () => {
    const { client, storage } = await signIn()
    await expect(client.getAccessToken('https://elsewhere.example.test')).rejects.toMatchObject(
      refused('oidc.invalid_target'),
    )
    await expect(client.getOrganizationToken(newId())).rejects.toMatchObject(refused('oidc.access_denied'))
    await issuer.suspend(ada.id)
    await expect(client.getAccessToken(orders)).rejects.toMatchObject(refused('oidc.invalid_grant'))
    await issuer.suspend(ada.id, false)
    expect(await start(storage).client.getAccessToken(orders)).toEqual(expect.any(String))
  })

  test('is told when the person does not want to', async () => {
    const { client, led } = start()
    await client.signIn(redirectUri)
    const page = await browser.get(led.to)
    const { location } = await browser.submit(page, { choice: 'cancel' })
    await expect(client.handleSignInCallback(location!)).rejects.toMatchObject({
      code: 'callback_uri_verification.error_found',
      data: { error: 'access_denied', errorDescription: expect.any(String) },
    })
  })
})

describe('@logto/express, with a secret', () => {
  let server: Server
  let application: Application
  let visitor: Browser
  let baseUrl: string
  let page: (path: string) => Promise<{ status: number; body: LogtoContext }>
  beforeAll(async () => {
    const app = express()
    server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    application = await createClientApplication('Traditional', {
      redirectUris: [`${baseUrl}/logto/sign-in-callback`],
      postLogoutRedirectUris: [baseUrl],
    })
    const config: LogtoExpressConfig = {
      ...{ endpoint: issuer.baseUrl, appId: application.id, appSecret: application.secret!, baseUrl },
      ...{ scopes, resources: [orders, stock] },
    }
    const sessions = new Map<string, Record<string, string | undefined>>()
    app.use((request, response, next) => {
      const known = /\bshop=(\w+)/.exec(request.headers.cookie ?? '')?.[1]
      const id = known ?? newId()
      if (known === undefined) response.cookie('shop', id, { httpOnly: true })
      request.session = sessions.get(id) ?? {}
      sessions.set(id, request.session)
      next()
    })
    app.use(handleAuthRoutes(config))
    const tell: express.RequestHandler = (request, response) => void response.json(request.user)
    app.get('/', withLogto(config), tell)
    app.get('/me', withLogto({ ...config, fetchUserInfo: true, getOrganizationToken: true }), tell)
    app.get('/orders', withLogto({ ...config, getAccessToken: true, resource: orders }), tell)

    visitor = createBrowser(baseUrl)
    page = async (path) => {
      const { status, text } = await visitor.get(path)
      return { status, body: JSON.parse(text) }
    }
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  test('a web application signs somebody in, calls APIs for them, and signs them out', async () => {
    expect(await page('/')).toEqual({ status: 200, body: { isAuthenticated: false } })
    const form = await browser.get((await visitor.get('/logto/sign-in')).location!)
    await visitor.get((await browser.submit(form, credentials)).location!)

    const signedIn = { isAuthenticated: true, claims: { sub: ada.id, aud: application.id, username: 'ada' } }
    expect(await page('/')).toMatchObject({ status: 200, body: signedIn })
    const { body: me } = await page('/me')
    expect(me).toMatchObject({ ...signedIn, userInfo: { sub: ada.id, custom_data: { plan: 'gold' } } })
    const ofTeam = me.organizationTokens![organizationId]!
    expect(await issuer.verify(ofTeam, `urn:logto:organization:${organizationId}`)).toMatchObject({
      scope: 'edit:team',
    })
    const { body: shopping } = await page('/orders')
    expect(shopping).toMatchObject({ ...signedIn, scopes: ['read:orders'] })
    expect(await issuer.verify(shopping.accessToken!, orders)).toMatchObject({ sub: ada.id })

    const leaving = await browser.get((await visitor.get('/logto/sign-out')).location!)
    expect(leaving.location).toBe(new URL(baseUrl).href)
    expect(await page('/')).toEqual({ status: 200, body: { isAuthenticated: false } })
    expect((await browser.get((await visitor.get('/logto/sign-up')).location!)).forms[0]!.names).toContain('password')
  })
})
