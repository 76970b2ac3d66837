import { afterAll, beforeAll, expect, test } from 'vitest'
import { Secret } from '../../platform/secret.ts'
import { createBrowser, type Hop } from '../../testing/browser.ts'
import { type SignInOptions, signIn } from '../../testing/sign-in.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'

/** The walk of `surrogate login` against the issuer itself. */

const redirectUri = 'https://app.example.test/callback'
const orders = 'https://api.example.test/orders'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer()
})
afterAll(() => issuer.close())

const person = async () => {
  const username = `ada_${crypto.randomUUID().slice(0, 8)}`
  const password = 'correct horse battery staple'
  const { status, body } = await issuer.api('POST', '/users', { username, password })
  expect(status).toBe(200)
  return { id: body.id as string, username, password }
}

const application = async (type: 'SPA' | 'Traditional', members: object = {}) => {
  const { body } = await issuer.api('POST', '/applications', {
    name: 'Shop',
    type,
    oidcClientMetadata: { redirectUris: [redirectUri], postLogoutRedirectUris: [] },
    ...members,
  })
  return body as { id: string; secret: string }
}

const walk = async (
  who: { username: string; password: string },
  options: Partial<SignInOptions> & { clientId: string },
) => {
  const hops: Hop[] = []
  const outcome = await signIn({
    issuer: new URL(issuer.issuer),
    clientSecret: undefined,
    redirectUri,
    user: who.username,
    password: new Secret(who.password),
    scope: 'openid profile',
    resources: [],
    parameters: {},
    consent: false,
    browser: createBrowser({ onHop: (hop) => hops.push(hop) }),
    ...options,
  }).catch((error: Error) => `${error.name}: ${error.message}`)
  return { outcome, hops: hops.map(({ method, status, title }) => [method, status, ...(title ? [title] : [])]) }
}

test('a person signs in to an application of the house, and gets a token for an API', async () => {
  const ada = await person()
  const api = await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  await issuer.grantUser(ada.id, api, ['read:orders'])
  const { id } = await application('SPA')
  const { outcome, hops } = await walk(ada, { clientId: id, resources: [api], scope: 'openid read:orders' })
  expect(outcome).toMatchObject({
    idToken: { sub: ada.id, aud: id, sid: expect.stringMatching(/^ps_/), acr: 'urn:surrogate:acr:basic', amr: ['pwd'] },
    accessToken: { sub: ada.id, aud: orders, scope: 'read:orders', sid: expect.stringMatching(/^ps_/) },
  })
  expect(hops).toEqual([
    ['GET', 200],
    ['GET', 303],
    ['GET', 200, expect.stringContaining('Sign in')],
    ['POST', 303],
    ['POST', 200],
    ['GET', 200],
  ])
})

test('a confidential application redeems with its secret', async () => {
  const ada = await person()
  const { id, secret } = await application('Traditional')
  const { outcome } = await walk(ada, { clientId: id, clientSecret: new Secret(secret) })
  expect(outcome).toMatchObject({ idToken: { sub: ada.id, aud: id } })
})

test('a wrong password ends the walk with what the page says', async () => {
  const ada = await person()
  const { id } = await application('SPA')
  const { outcome } = await walk({ ...ada, password: 'wrong' }, { clientId: id })
  expect(outcome).toMatch(/^SignInFailed: The issuer shows the sign-in again: \S/)
})

test('a third-party application gets nothing without consent, and everything with it', async () => {
  const ada = await person()
  const { id, secret } = await application('Traditional', { isThirdParty: true })
  const asked = { clientId: id, clientSecret: new Secret(secret), scope: 'openid' }
  expect((await walk(ada, asked)).outcome).toContain('--consent gives it')
  expect((await walk(ada, { ...asked, consent: true })).outcome).toMatchObject({ idToken: { sub: ada.id } })
})

test('a redirect URI that is not registered is told on a page', async () => {
  const ada = await person()
  const { id } = await application('SPA')
  const { outcome } = await walk(ada, { clientId: id, redirectUri: 'https://evil.example.test/' })
  expect(outcome).toContain('answered 400 with a page that says: This return address is not registered')
})

test('a second factor: the code of an app is made of its secret, and without one the walk ends there', async () => {
  await issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
  const ada = await person()
  const { id } = await application('SPA')
  const made = await issuer.api('POST', `/users/${ada.id}/mfa-verifications`, { type: 'Totp' })
  const totpSecret = new Secret(made.body.secret)
  const { outcome, hops } = await walk(ada, { clientId: id, totpSecret })
  expect(outcome).toMatchObject({ idToken: { sub: ada.id, acr: 'urn:surrogate:acr:mfa' } })
  expect(hops.map(([, , title]) => title)).toContainEqual(expect.stringContaining('Confirm that it is you'))
  expect((await walk(ada, { clientId: id })).outcome).toMatch(/^SignInFailed: .*authenticator app/)
  // The same step again is refused, and not tried a second time.
  expect((await walk(ada, { clientId: id, totpSecret })).outcome).toMatch(
    /^SignInFailed: The issuer shows the code of an authenticator app again: There is a problem/,
  )
  await issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: [], policy: 'NoPrompt' } })
})

test('terms are agreed to where that is said, and an offer of a second factor is put off', async () => {
  const terms = { agreeToTermsPolicy: 'Manual', termsOfUseUrl: 'https://shop.example.test/terms' }
  const mfa = { factors: ['Totp', 'WebAuthn'], policy: 'PromptAtSignInAndSignUp' }
  await issuer.api('PATCH', '/sign-in-exp', { ...terms, mfa })
  const ada = await person()
  const { id } = await application('SPA')
  expect((await walk(ada, { clientId: id })).outcome).toMatch(/^SignInFailed: There are terms to agree to; --consent/)
  expect((await walk(ada, { clientId: id, consent: true })).outcome).toMatchObject({ idToken: { sub: ada.id } })
  await issuer.api('PATCH', '/sign-in-exp', {
    agreeToTermsPolicy: 'Automatic',
    mfa: { factors: [], policy: 'NoPrompt' },
  })
})
