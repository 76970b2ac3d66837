import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser, Visit } from '../../support/browser.ts'
import { factorsOf, totpCode } from '../../support/factors.ts'
import {
  answerOf,
  experienceWith,
  startTestSignIn,
  type TestClient,
  type TestPerson,
  type TestSignIn,
} from '../../support/sign-in.ts'

/** A page that is still open in another tab while the sign-in has gone on: its forms do nothing any more. */

let signIn: TestSignIn
let client: TestClient
let ada: TestPerson
let secret: string
beforeAll(async () => {
  signIn = await startTestSignIn()
  signIn.settings = experienceWith({ mfa: { factors: ['Totp'], policy: 'NoPrompt' } })
  client = await signIn.createClient()
  ada = await signIn.createPerson()
  secret = await (await factorsOf(signIn)).totp(ada.id)
})
afterAll(() => signIn?.close())

const idOf = ({ url }: Visit) => /\/sign-in\/(\w+)/.exec(url)![1]
const stateOf = async (page: Visit) => ({
  interaction: await signIn.sql('SELECT event, state, user_id, finished_at FROM interactions WHERE id = $1', [
    idOf(page),
  ]),
  proofs: await signIn.sql('SELECT id, kind, tries, consumed_at FROM proofs WHERE interaction_id = $1 ORDER BY id', [
    idOf(page),
  ]),
})

type Leave = (browser: Browser, first: Visit, other: TestPerson) => Promise<{ old: Visit; now: Visit }>

/** Pages that are left behind, and the sign-in page that follows. */
const leaving: Record<string, Leave> = {
  sign_in: async (_browser, first) => ({ old: first, now: first }),
  async register(browser, first) {
    const old = await browser.submit(first, { choice: 'register' }, { with: 'choice' })
    return { old, now: await browser.submit(old, { choice: 'back' }, { with: 'choice' }) }
  },
  async blocked(browser, first, other) {
    await signIn.sql('UPDATE users SET is_suspended = true WHERE id = $1', [other.id])
    const old = await browser.submit(first, { identifier: other.username, password: other.password })
    expect(old.status).toBe(403)
    return { old, now: await browser.submit(old, { choice: 'another' }) }
  },
}

test.each<[page: keyof typeof leaving, button: string]>([
  ['sign_in', 'sign_in'],
  ['sign_in', 'code'],
  ['sign_in', 'register'],
  ['sign_in', 'cancel'],
  ['sign_in', 'verify'],
  ['register', 'back'],
  ['register', 'details'],
  ['blocked', 'another'],
  ['blocked', 'back'],
])('the form of an old page, %s, with its button %s, shows what is due and changes nothing', async (page, choice) => {
  const [browser, other] = [signIn.browser(), await signIn.createPerson()]
  const { old, now } = await leaving[page]!(browser, await signIn.authorize(browser, client), other)
  const due = await browser.submit(now, { identifier: ada.username, password: ada.password })
  expect(due.text).toContain('Code from your authenticator app')
  const before = await stateOf(due)
  const { count } = signIn.verified

  const answer = await browser.submit(
    old,
    { choice, identifier: other.username, username: other.username, password: other.password, code: '000000' },
    { with: 'csrf' },
  )
  expect([answer.status, answer.url, answer.text]).toEqual([200, due.url, expect.stringContaining(ada.username)])
  expect(answer.text).toContain('Code from your authenticator app')
  expect(await stateOf(due)).toEqual(before)
  expect(signIn.verified.count).toBe(count)
})

test('the form that led on, sent once more, counts no second attempt, and the code is asked for once', async () => {
  const browser = signIn.browser()
  const first = await signIn.authorize(browser, client)
  const typed = { identifier: ada.username, password: ada.password }
  const due = await browser.submit(first, typed)
  const before = await stateOf(due)
  expect((await browser.submit(first, typed)).url).toBe(due.url)
  expect(await stateOf(due)).toEqual(before)
  const code = { code: totpCode(secret), choice: 'verify' }
  const answer = await browser.submit(due, code, { with: 'code' })
  expect(answerOf(answer)).toMatchObject({ code: expect.any(String) })
  // Finished: the same answer, for some seconds.
  expect(answerOf(await browser.submit(first, typed))).toEqual(answerOf(answer))
})
