import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { headingOf, type Visit } from '../../support/browser.ts'
import {
  answerOf,
  experienceWith,
  startTestSignIn,
  type TestClient,
  type TestPerson,
  type TestSignIn,
} from '../../support/sign-in.ts'

/** A passkey for next time, offered after signing in with something else, over its page. */

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn({ host: 'localhost', sends: 'outbox' })
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const withPasskeys = (more: object = {}) => {
  signIn.settings = experienceWith({ passkeySignIn: { enabled: true }, ...more })
}
beforeEach(() => withPasskeys())

const code = { code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: expect.any(String) }
const offer = 'Sign in faster next time'
const passkeyForm = ({ forms }: Visit) => forms.find(({ names }) => names.includes('credential'))!
const optionsOf = ({ text }: Visit) =>
  JSON.parse(/data-options="([^"]+)"/.exec(text)![1]!.replaceAll('&quot;', '"').replaceAll('&amp;', '&'))
const isConditional = ({ text }: Visit) => / data-conditional/.test(text)
/** As Level 3 of WebAuthn has it where a password manager makes one by itself. */
const unseen = { flags: { up: false, uv: false } }

type Browsing = ReturnType<TestSignIn['browser']>

/** Signs in with the password, in a browser whose script has found out that it can make passkeys, or not. */
const enter = async (person: TestPerson, { browser = signIn.browser(), makesPasskeys = 'yes', request = {} } = {}) => {
  const page = await signIn.authorize(browser, client, request)
  const entered = { identifier: person.username, password: person.password, choice: 'sign_in' }
  return { browser, page: await browser.submit(page, { ...entered, makesPasskeys }, { with: 'makesPasskeys' }) }
}

const make = (browser: Browsing, page: Visit, device = createAuthenticator({ origin: signIn.url }), faults = {}) => {
  const credential = JSON.stringify(device.create(optionsOf(page), faults))
  return browser.submit(page, { credential }, { with: 'credential' })
}

const passkeysOf = ({ id }: TestPerson) => signIn.sql('SELECT id FROM passkeys WHERE user_id = $1', [id])
const acrOf = async ({ id }: TestPerson) =>
  (await signIn.sql('SELECT acr FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1', [id]))[0]?.['acr']

test('a browser that cannot make passkeys is never shown the offer', async () => {
  const person = await signIn.createPerson()
  const { page } = await enter(person, { makesPasskeys: '' })
  expect(answerOf(page)).toEqual(code)
})

test('a passkey is made, proves nothing in this sign-in, and is all that is needed in the next', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect(headingOf(page)).toBe(offer)
  const device = createAuthenticator({ origin: signIn.url })
  const before = (await signIn.events('User.Data.Updated')).length
  expect(answerOf(await make(browser, page, device))).toEqual(code)
  expect(await acrOf(person)).toBe('urn:surrogate:acr:basic')
  expect(await passkeysOf(person)).toHaveLength(1)
  expect(await signIn.events('User.Data.Updated')).toHaveLength(before + 1)

  const next = signIn.browser()
  const first = await signIn.authorize(next, client)
  const credential = JSON.stringify(device.get(optionsOf(first)))
  expect(answerOf(await next.submit(first, { credential }, { with: 'credential' }))).toEqual(code)
  expect(await acrOf(person)).toBe('urn:surrogate:acr:phr')
  // Whoever has one is offered no other.
  expect(answerOf((await enter(person)).page)).toEqual(code)
})

test('one that a password manager made by itself is taken, and signs in only whoever is verified', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect(isConditional(page)).toBe(true)
  const device = createAuthenticator({ origin: signIn.url })
  expect(answerOf(await make(browser, page, device, unseen))).toEqual(code)

  const next = signIn.browser()
  const first = await signIn.authorize(next, client)
  const silent = JSON.stringify(device.get(optionsOf(first), unseen))
  const refused = await next.submit(first, { credential: silent }, { with: 'credential' })
  expect([refused.status, headingOf(refused)]).toEqual([400, 'Sign in'])
  const verified = JSON.stringify(device.get(optionsOf(refused)))
  expect(answerOf(await next.submit(refused, { credential: verified }, { with: 'credential' }))).toEqual(code)
})

test('after one that is refused nothing is made by itself, so that nobody is held up by one refusal after the other', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect(isConditional(page)).toBe(true)
  const refused = await make(browser, page, createAuthenticator({ origin: 'http://localhost.example' }), unseen)
  expect([refused.status, isConditional(refused)]).toEqual([400, false])
  expect((await make(browser, refused, undefined, unseen)).status).toBe(400)
  expect(answerOf(await browser.submit(await browser.get(page.url), { choice: 'skip' }))).toEqual(code)
  expect(await passkeysOf(person)).toEqual([])
})

test('nothing is made by itself where it would change what the password opens', async () => {
  withPasskeys({ mfa: { factors: ['WebAuthn'], policy: 'NoPrompt' } })
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect([headingOf(page), isConditional(page)]).toEqual([offer, false])
  expect(page.text).toContain('From then on your password alone is not enough')
  const refused = await make(browser, page, undefined, unseen)
  expect([refused.status, headingOf(refused)]).toEqual([400, offer])
  expect(refused.text).toContain('No passkey was made.')
  expect(answerOf(await make(browser, refused))).toEqual(code)
  expect((await enter(person)).page.text).toContain('Use your passkey')
})

test('"not now" leads on, is remembered for the person, and is asked again after 90 days', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect(answerOf(await browser.submit(page, { choice: 'skip' }))).toEqual(code)
  expect(answerOf((await enter(person)).page)).toEqual(code)
  const ago = (days: number) =>
    signIn.sql(`UPDATE users SET passkey_skipped_at = now() - $2 * interval '1 day' WHERE id = $1`, [person.id, days])
  await ago(89)
  expect(answerOf((await enter(person)).page)).toEqual(code)
  await ago(91)
  expect(headingOf((await enter(person)).page)).toBe(offer)
})

test('whoever leaves without an answer has a sign-in that can be gone on with, and said nothing', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
  const again = await browser.get(page.url)
  expect(headingOf(again)).toBe(offer)
  expect(answerOf(await browser.submit(again, { choice: 'skip' }))).toEqual(code)
})

test('a challenge is used up by the first answer, and what is no passkey is none', async () => {
  const person = await signIn.createPerson()
  const { browser, page } = await enter(person)
  const junk = await browser.submit(page, { credential: '{"id":"x"}' }, { with: 'credential' })
  expect([junk.status, headingOf(junk)]).toEqual([400, offer])
  const elsewhere = createAuthenticator({ origin: 'http://localhost.example' })
  const refused = await make(browser, junk, elsewhere)
  expect(refused.status).toBe(400)
  const stale = await browser.submit(
    { ...refused, forms: [passkeyForm(junk)] },
    { credential: JSON.stringify(createAuthenticator({ origin: signIn.url }).create(optionsOf(junk))) },
  )
  expect([stale.status, await passkeysOf(person)]).toEqual([400, []])
})

test('a session that goes on, or is confirmed, is never held up by an offer', async () => {
  const person = await signIn.createPerson()
  const { browser } = await enter(person, { makesPasskeys: '' })
  expect(answerOf(await signIn.authorize(browser, client))).toEqual(code)
  expect(answerOf(await signIn.authorize(browser, client, { prompts: ['none'] }))).toEqual(code)
  expect(answerOf((await enter(person, { browser, request: { prompts: ['login'] } })).page)).toEqual(code)
})

test('the offer of one person is no answer of another who signs in at the same browser', async () => {
  const [ada, bob] = [await signIn.createPerson(), await signIn.createPerson()]
  const { browser, page } = await enter(ada)
  const other = await signIn.authorize(browser, client)
  const entered = { identifier: bob.username, password: bob.password, choice: 'sign_in', makesPasskeys: 'yes' }
  const ofBob = await browser.submit(other, entered, { with: 'makesPasskeys' })
  // The form of one sign-in with the challenge of the other.
  const credential = JSON.stringify(createAuthenticator({ origin: signIn.url }).create(optionsOf(page)))
  const { proofId } = passkeyForm(page).fields
  const mixed = await browser.submit(ofBob, { credential, proofId: proofId! }, { with: 'credential' })
  expect([mixed.status, await passkeysOf(bob), await passkeysOf(ada)]).toEqual([400, [], []])
})
