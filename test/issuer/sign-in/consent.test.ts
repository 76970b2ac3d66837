import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuthorizationRequest } from '../../../issuer/interaction/authorization-request.ts'
import { newId } from '../../../platform/ids.ts'
import type { Browser, Visit } from '../../support/browser.ts'
import { answerOf, startTestSignIn, type TestClient, type TestPerson, type TestSignIn } from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
let person: TestPerson
let browser: Browser

beforeAll(async () => {
  signIn = await startTestSignIn()
})
beforeEach(async () => {
  client = await signIn.createClient({ isThirdParty: true, name: 'Partner' })
  person = await signIn.createPerson()
  browser = signIn.browser()
})
afterAll(() => signIn.close())

const code = { code: expect.any(String) }
const isConsent = ({ status, forms }: Visit) =>
  status === 200 && forms.length === 2 && !forms[0]!.names.includes('password')
const decide = (page: Visit, choice: string, more: Record<string, string | string[]> = {}) =>
  browser.submit({ ...page, forms: [page.forms.at(-1)!] }, { choice, ...more })
const ask = (request?: Partial<AuthorizationRequest>) => signIn.authorize(browser, client, request)
const consents = () =>
  signIn.sql('SELECT scopes, resources, organizations FROM consents WHERE user_id = $1', [person.id])
const authorizations = () =>
  signIn.sql('SELECT scopes, is_offline FROM authorizations WHERE user_id = $1 ORDER BY created_at', [person.id])

test('a third-party application is allowed once, and asks again only for more', async () => {
  const resource = await signIn.createResource({ scopes: ['read:orders', 'write:orders'] })
  await signIn.sql(`UPDATE scopes SET description = 'See your orders' WHERE name = 'read:orders'`)
  const page = await signIn.signIn(browser, client, person, {
    scopes: ['openid', 'profile', 'read:orders'],
    resources: [resource],
    resourceScopes: { [resource]: ['read:orders'] },
  })
  expect(isConsent(page)).toBe(true)
  for (const text of ['Partner', 'See your orders', 'shop.example.test', person.email])
    expect(page.text).toContain(text)
  expect(answerOf(await decide(page, 'allow'))).toMatchObject(code)
  expect(await consents()).toEqual([
    { scopes: ['openid', 'profile'], resources: { [resource]: ['read:orders'] }, organizations: [] },
  ])
  expect(answerOf(await ask({ scopes: ['openid'] }))).toMatchObject(code)
  const none = { prompts: ['none' as const], scopes: ['openid', 'email'] }
  expect(answerOf(await ask(none))).toMatchObject({ error: 'consent_required' })
  const more = await ask({ scopes: ['openid', 'email'] })
  expect(isConsent(more)).toBe(true)
  expect(answerOf(await decide(more, 'allow'))).toMatchObject(code)
  expect(await consents()).toEqual([
    { scopes: ['openid', 'profile', 'email'], resources: { [resource]: ['read:orders'] }, organizations: [] },
  ])
  expect(isConsent(await ask({ prompts: ['consent'] }))).toBe(true)
})

test('a refusal signs the person in, and leaves no consent and no code', async () => {
  const page = await signIn.signIn(browser, client, person)
  expect(answerOf(await decide(page, 'deny'))).toMatchObject({ error: 'access_denied', state: 'the state' })
  expect(await consents()).toEqual([])
  expect(await authorizations()).toEqual([])
  expect(browser.cookies.has('surrogate_session')).toBe(true)
  expect(isConsent(await ask())).toBe(true)
})

test('a consent that was revoked or not used for long is asked for again', async () => {
  await decide(await signIn.signIn(browser, client, person), 'allow')
  for (const end of ['revoked_at = now()', 'expires_at = now()']) {
    await signIn.sql(`UPDATE consents SET ${end} WHERE user_id = $1`, [person.id])
    const page = await ask({ scopes: ['openid'] })
    expect(isConsent(page), end).toBe(true)
    await decide(page, 'allow')
  }
  // Nothing of what had ended came back.
  expect(await consents()).toEqual([{ scopes: ['openid'], resources: {}, organizations: [] }])
  await signIn.sql(`UPDATE consents SET expires_at = now() + interval '1 day'`)
  await ask({ scopes: ['openid'] })
  expect(await signIn.sql(`SELECT id FROM consents WHERE expires_at > now() + interval '179 days'`)).toHaveLength(1)
})

test('a first-party application never asks; a native one of others always does', async () => {
  const own = await signIn.createClient()
  expect(answerOf(await signIn.signIn(browser, own, person, { prompts: ['consent'] }))).toMatchObject(code)
  expect(
    answerOf(await signIn.authorize(browser, own, { prompts: ['none'], scopes: ['openid', 'email'] })),
  ).toMatchObject(code)
  client = await signIn.createClient({ isThirdParty: true, type: 'Native', redirectUris: ['com.example.app:/cb'] })
  for (let count = 0; count < 2; count++) {
    const page = await ask()
    expect(isConsent(page)).toBe(true)
    expect((await decide(page, 'allow')).location).toMatch(/^com\.example\.app:\/cb\?code=/)
  }
})

test('offline access: granted to our own, to others with prompt=consent or when it was allowed before', async () => {
  const offline = { scopes: ['openid', 'offline_access'], wantsOfflineAccess: true }
  const own = await signIn.createClient()
  await signIn.signIn(browser, own, person, offline)
  await decide(await ask(offline), 'allow')
  await decide(await ask({ ...offline, prompts: ['consent'] }), 'allow')
  expect(answerOf(await ask(offline))).toMatchObject(code)
  expect(await authorizations()).toEqual([
    { scopes: ['openid', 'offline_access'], is_offline: true },
    { scopes: ['openid'], is_offline: false },
    { scopes: ['openid', 'offline_access'], is_offline: true },
    { scopes: ['openid', 'offline_access'], is_offline: true },
  ])
})

test('only organizations of the person can be chosen', async () => {
  const [own, foreign] = [newId(12), newId(12)]
  for (const id of [own, foreign])
    await signIn.sql('INSERT INTO organizations (id, name) VALUES ($1, $2)', [id, `Org ${id}`])
  await signIn.sql('INSERT INTO organization_users (organization_id, user_id) VALUES ($1, $2)', [own, person.id])
  const page = await signIn.signIn(browser, client, person, { scopes: ['openid', 'urn:logto:scope:organizations'] })
  expect(page.text).toContain(`Org ${own}`)
  expect(page.text).not.toContain(`Org ${foreign}`)
  expect((await decide(page, 'allow', { organizationIds: [own, foreign] })).status).toBe(400)
  expect(await consents()).toEqual([])
  expect(answerOf(await decide(page, 'allow', { organizationIds: [own], scope: 'everything' }))).toMatchObject(code)
  expect(await consents()).toMatchObject([
    { organizations: [own], scopes: ['openid', 'urn:logto:scope:organizations'] },
  ])
})

test('a click of one person allows nothing for another who has signed in meanwhile', async () => {
  const own = await signIn.createClient()
  await signIn.signIn(browser, own, person)
  const page = await ask()
  expect(isConsent(page)).toBe(true)
  const other = await signIn.createPerson()
  await signIn.signIn(browser, own, other, { prompts: ['login'] })
  const again = await decide(page, 'allow')
  expect(isConsent(again)).toBe(true)
  expect(again.text).toContain(other.email)
  expect(await signIn.sql('SELECT id FROM consents WHERE client_id = $1', [client.id])).toEqual([])
})

test('somebody else can sign in on the consent page', async () => {
  const page = await signIn.signIn(browser, client, person)
  const back = await browser.submit(page, { choice: 'another' })
  expect(back.forms[0]?.names).toContain('password')
  const other = await signIn.createPerson()
  const again = await browser.submit(back, { identifier: other.username, password: other.password })
  expect(again.text).toContain(other.email)
  expect(answerOf(await decide(again, 'allow'))).toMatchObject(code)
  expect(await signIn.sql('SELECT user_id FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
})
