import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Visit } from '../../support/browser.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** The test for machines on the form that signs in. */

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn()
  client = await signIn.createClient()
  signIn.settings = experienceWith({ captchaPolicy: { enabled: true } })
})
afterAll(() => signIn?.close())

/** As the script of the page does it. */
const solved = ({ text }: Visit): string => {
  const [, challenge = '', difficulty = ''] = /data-challenge="([^"]+)" data-difficulty="(\d+)"/.exec(text) ?? []
  const [, mac] = challenge.split('.')
  for (let number = 0; ; number++) {
    const digest = createHash('sha256').update(`${mac}.${number}`).digest()
    if (Math.clz32(digest.readUInt32BE()) >= Number(difficulty)) return `${challenge}.${number}`
  }
}

test('no password is looked at before the test is passed, and once passed it is for the whole sign-in', async () => {
  const person = await signIn.createPerson()
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client)
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  const entered = { identifier: person.username, password: person.password, choice: 'sign_in' }
  const before = signIn.verified.count
  for (const captcha of ['', 'made.up.1']) {
    const refused = await browser.submit(page, { ...entered, captcha })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('data-challenge')
  }
  const { captcha: _none, ...without } = page.forms[0]!.fields
  expect((await browser.submit({ ...page, forms: [{ ...page.forms[0]!, fields: without }] }, entered)).status).toBe(400)
  expect(signIn.verified.count).toBe(before)
  const wrong = await browser.submit(page, { ...entered, password: 'not the password', captcha: solved(page) })
  expect(wrong.status).toBe(400)
  expect(wrong.text).not.toContain('data-challenge')
  expect(answerOf(await browser.submit(wrong, entered))).toMatchObject({ code: expect.any(String) })
})

test('an answer is good once', async () => {
  const person = await signIn.createPerson()
  const [one, other] = [signIn.browser(), signIn.browser()]
  const [page, another] = [await signIn.authorize(one, client), await signIn.authorize(other, client)]
  const entered = { identifier: person.username, password: person.password, captcha: solved(page) }
  expect(answerOf(await one.submit(page, entered))).toMatchObject({ code: expect.any(String) })
  expect((await other.submit(another, entered)).status).toBe(400)
})

test('who cancels solves nothing', async () => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client)
  expect(answerOf(await browser.submit(page, { choice: 'cancel' }))).toMatchObject({ error: 'access_denied' })
})
