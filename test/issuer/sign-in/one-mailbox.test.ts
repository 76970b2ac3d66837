import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, headingOf, type Visit } from '../../support/browser.ts'
import { factorsOf } from '../../support/factors.ts'
import {
  answerOf,
  experienceWith,
  startTestSignIn,
  type TestClient,
  type TestPerson,
  type TestSignIn,
} from '../../support/sign-in.ts'

/** Signing in by a code, where codes by mail are the only second factor there is: one mailbox is not two. */

let signIn: TestSignIn
let client: TestClient
let give: Awaited<ReturnType<typeof factorsOf>>
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
  give = await factorsOf(signIn)
})
afterAll(() => signIn?.close())

const withMethods = (policy: string, { password = true, ...more }: { password?: boolean } & object = {}) => {
  signIn.settings = experienceWith({
    mfa: { factors: ['EmailVerificationCode'], policy },
    signIn: { methods: [{ identifier: 'email', password, verificationCode: true, isPasswordPrimary: password }] },
    signUp: { identifiers: ['email'], password: false, verify: true },
    ...more,
  })
}
const lead = ({ text }: Visit) => /<p class="lead">([\s\S]*?)<\/p>/.exec(text)?.[1]
const enter = (browser: Browser, page: Visit, code: string) =>
  browser.submit(page, { code, choice: 'verify' }, { with: 'code' })
const acrOf = async ({ id }: TestPerson) =>
  (await signIn.sql('SELECT acr FROM sessions WHERE user_id = $1', [id])).map(({ acr }) => acr)

/** Somebody who has entered a code from their mail, to say who they are. */
const byMail = async () => {
  const person = await signIn.createPerson()
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const sent = await browser.submit(await signIn.authorize(browser, client), {
    identifier: person.email,
    choice: 'code',
  })
  return { person, browser, page: await enter(browser, sent, await signIn.lastCode(person.email)) }
}

test('whoever has a password begins with it, and the code is the second step', async () => {
  withMethods('Mandatory')
  const { person, browser, page } = await byMail()
  expect([page.status, headingOf(page)]).toEqual([200, 'Confirm that it is you'])
  expect(lead(page)).toMatch(/two different steps/)
  expect(page.text).toContain('name="password"')
  expect(page.text).not.toContain('value="code"')
  expect(await acrOf(person)).toEqual([])
  const second = await browser.submit(page, { password: person.password, choice: 'sign_in' })
  const sent = await browser.submit(second, { choice: 'send' }, { with: 'kind' })
  expect(answerOf(await enter(browser, sent, await signIn.lastCode(person.email)))).toMatchObject({
    state: 'the state',
  })
  expect(await acrOf(person)).toEqual(['urn:surrogate:acr:mfa'])
})

test('whoever has none sets one with "Forgot your password?"', async () => {
  withMethods('Mandatory')
  const { person, browser, page } = await byMail()
  await signIn.sql('UPDATE users SET password_digest = NULL, password_algorithm = NULL WHERE id = $1', [person.id])
  const again = await browser.get(page.url)
  expect(lead(again)).toMatch(/two different steps/)
  expect(again.text).toContain('value="reset"')
})

test('where there is no other way to begin, the page says why it does not go on', async () => {
  withMethods('Mandatory', { password: false })
  const { person, page } = await byMail()
  expect([page.status, headingOf(page)]).toEqual([403, 'Your account needs a second step to sign in'])
  expect(await acrOf(person)).toEqual([])
})

test('settings that demand no second factor ask nobody for one that cannot be had', async () => {
  withMethods('NoPrompt', { password: false })
  const { person, page } = await byMail()
  expect(answerOf(page)).toMatchObject({ state: 'the state', code: expect.any(String) })
  expect(await acrOf(person)).toEqual(['urn:surrogate:acr:basic'])
})

test('and do not let the code stand for both where there is a password', async () => {
  withMethods('NoPrompt')
  const { person, page } = await byMail()
  expect(lead(page)).toMatch(/two different steps/)
  expect(page.text).toContain('name="password"')
  expect(await acrOf(person)).toEqual([])
})

test('a password alone is still followed by the code', async () => {
  withMethods('NoPrompt')
  const person = await signIn.createPerson()
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const page = await browser.submit(await signIn.authorize(browser, client), {
    identifier: person.email,
    password: person.password,
  })
  expect(page.forms.some(({ fields }) => fields['kind'] === 'email_code')).toBe(true)
  expect(await acrOf(person)).toEqual([])
})
