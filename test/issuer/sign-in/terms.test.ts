import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** Terms of use, over their page. */

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn()
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const terms = { agreeToTermsPolicy: 'Manual', termsOfUseUrl: 'https://shop.example.test/terms' }
const code = { code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: expect.any(String) }

const atTerms = async (settings: Record<string, unknown> = terms) => {
  signIn.settings = experienceWith(settings)
  const person = await signIn.createPerson()
  const browser = signIn.browser()
  return { person, browser, page: await signIn.signIn(browser, client, person) }
}

test('nobody goes on who has not agreed', async () => {
  const { person, browser, page } = await atTerms({ ...terms, privacyPolicyUrl: 'https://shop.example.test/privacy' })
  expect(page.text).toContain('href="https://shop.example.test/terms" target="_blank" rel="noopener noreferrer"')
  expect(page.text).toContain('href="https://shop.example.test/privacy"')
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
  expect((await browser.submit(page, { choice: 'something else' })).status).toBe(400)
  expect(answerOf(await browser.submit(page, { choice: 'agree' }))).toEqual(code)
})

test('who does not agree goes back to the application', async () => {
  const { person, browser, page } = await atTerms()
  expect(answerOf(await browser.submit(page, { choice: 'cancel' }))).toMatchObject({ error: 'access_denied' })
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
})

test('what somebody on the way could change is no link', async () => {
  const { page } = await atTerms({ ...terms, termsOfUseUrl: 'http://shop.example.test/terms' })
  expect(page.text).not.toContain('href="http:')
  expect(page.text).toContain('http://shop.example.test/terms')
})
