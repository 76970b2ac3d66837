import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startWebApplication, type WebApplication } from '../../../bin/demo/web-application.ts'
import { type Browser, createBrowser, type Visit } from '../../support/browser.ts'
import { startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** What integrators copy from: it must be right in more than the good case. */

const password = 'correct horse battery staple'

let issuer: TestIssuer
let gateway: TestUpstream
let resource: string
let user: { id: string; username: string }
let shop: WebApplication
let client: { clientId: string; clientSecret: string }

beforeAll(async () => {
  issuer = await startTestIssuer()
  gateway = await startUpstream()
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  const { body } = await issuer.api('POST', '/users', { username: 'ada', name: 'Ada <3', password })
  user = body
  await issuer.grantUser(user.id, resource, ['read:orders'])
})
afterAll(async () => {
  await gateway.close()
  await issuer.close()
})

beforeEach(async () => {
  gateway.answer = (_request, response) =>
    void response.end(JSON.stringify({ orders: [{ id: '1', item: 'Cup', total: 4 }] }))
  gateway.seen.length = 0
  shop = await startWebApplication({ host: '127.0.0.1', port: 0 })
  const { body } = await issuer.api('POST', '/applications', {
    name: 'Shop',
    type: 'Traditional',
    oidcClientMetadata: { redirectUris: [`${shop.url}/callback`], postLogoutRedirectUris: [`${shop.url}/`] },
    customClientMetadata: { alwaysIssueRefreshToken: true },
  })
  client = { clientId: body.id, clientSecret: body.secret }
  await shop.use(settings())
})
afterEach(() => shop.close(0))

const support = () => ({ role: 'Support', managementApi: `${issuer.baseUrl}/api`, backend: client })
const settings = () => ({
  ...{ issuer: issuer.issuer, client, support: support(), gatewayUrl: gateway.url, ordersResource: resource },
})

/** Of one person: what they see of the shop, and of the issuer. */
const browsers = () => ({ shop: createBrowser(shop.url), issuer: createBrowser(issuer.baseUrl) })
type Browsers = ReturnType<typeof browsers>

const toCallback = async (person: Browsers, choice = 'sign_in'): Promise<string> => {
  const begun = await person.shop.send('/sign-in')
  const page = await person.issuer.get(begun.location!)
  // Whoever has a session at the issuer sees no page.
  if (page.location !== undefined) return page.location
  return (await person.issuer.submit(page, { identifier: 'ada', password, choice })).location!
}

const signIn = async (person: Browsers): Promise<Visit> => person.shop.get(await toCallback(person))

const home = async (browser: Browser) => (await browser.get('/')).text

test('a person signs in, sees orders, and signs out here and at the issuer', async () => {
  const person = browsers()
  expect(await home(person.shop)).toContain('You are not signed in.')
  const page = await signIn(person)
  expect(page.text).toContain('Signed in as <b>Ada &lt;3</b>')
  expect(page.text).toContain('<td>Cup<td>4.00')
  expect(await issuer.verify(gateway.seen[0]!.headers['authorization']!.slice(7), resource)).toMatchObject({
    sub: user.id,
  })

  const left = await person.shop.submit(page)
  expect((await person.issuer.get(left.location!)).location).toBe(`${shop.url}/`)
  expect(await home(person.shop)).toContain('You are not signed in.')
  const again = await person.issuer.get((await person.shop.send('/sign-in')).location!)
  expect(again.text).toContain('name="password"')
})

test('whoever wants an account comes to the form for one, with the same proof as whoever signs in', async () => {
  const person = browsers()
  const page = await person.issuer.get((await person.shop.send('/register')).location!)
  expect(page.text).toContain('<h1>Create an account</h1>')
  const asked = new URL((await person.shop.send('/register')).location!).searchParams
  expect(asked.get('prompt')).toBe('create')
  expect(asked.get('code_challenge_method')).toBe('S256')
})

test('the cookie that a browser had before somebody signed in is worth nothing afterwards', async () => {
  const person = browsers()
  const callback = await toCallback(person)
  const [planted] = [...person.shop.cookies]
  expect((await person.shop.get(callback)).text).toContain('Signed in as')
  const other = createBrowser(shop.url)
  other.cookies.set(...planted!)
  expect(await home(other)).toContain('You are not signed in.')
})

test('an access token that the gateway takes no longer is renewed once', async () => {
  const person = browsers()
  await signIn(person)
  const first = gateway.seen[0]!.headers['authorization']
  const { answer } = gateway
  gateway.answer = (request, response, seen) =>
    seen.headers['authorization'] === first ? void response.writeHead(401).end() : answer(request, response, seen)
  expect(await home(person.shop)).toContain('<td>Cup')
  expect(gateway.seen).toHaveLength(3)
})

test('a sign-in that was ended at the issuer ends here too', async () => {
  const person = browsers()
  await signIn(person)
  const { body } = await issuer.api('GET', `/users/${user.id}/sessions`)
  for (const { payload, id } of body.sessions)
    expect((await issuer.api('DELETE', `/users/${user.id}/sessions/${id ?? payload.uid}`)).status).toBe(204)
  gateway.answer = (_request, response) => void response.writeHead(401).end()
  expect(await home(person.shop)).toContain('Your sign-in has ended (invalid_grant).')
  expect(await home(person.shop)).toContain('You are not signed in.')
})

test('cookies and callbacks of before a restart lead to the beginning', async () => {
  const person = browsers()
  const callback = await toCallback(person)
  await shop.close(0)
  shop = await startWebApplication({ host: '127.0.0.1', port: shop.port })
  await expect.poll(async () => (await person.shop.get('/').catch(() => undefined))?.status).toBe(503)
  await shop.use(settings())
  expect((await person.shop.get(callback)).text).toContain('You are not signed in.')
  expect((await signIn(person)).text).toContain('Signed in as')
})

test('whoever cancels, and whoever brings the answer to another request, is not signed in', async () => {
  const person = browsers()
  expect((await person.shop.get(await toCallback(person, 'cancel'))).text).toContain('You did not sign in.')
  const callback = new URL(await toCallback(person))
  callback.searchParams.set('state', 'another')
  expect(await person.shop.get(callback.href)).toMatchObject({ status: 502, text: expect.stringContaining('state') })
  expect(await home(person.shop)).toContain('You are not signed in.')
})

test('a page of another port cannot sign anybody out', async () => {
  const person = browsers()
  await signIn(person)
  const headers = { origin: 'http://127.0.0.1:9' }
  expect((await person.shop.send('/sign-out', { method: 'POST', headers })).status).toBe(403)
  expect(await home(person.shop)).toContain('Signed in as')
})

test('no address stops the demo: a page anywhere may make a browser send one', async () => {
  for (const path of ['//', '/\\\\', '/nowhere'])
    expect((await fetch(`${shop.url}${path}`, { redirect: 'manual' })).status).toBe(404)
})
