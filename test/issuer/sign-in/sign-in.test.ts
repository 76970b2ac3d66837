import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  answerOf,
  redirectUri,
  startTestSignIn,
  type TestClient,
  type TestPerson,
  type TestSignIn,
} from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
let ada: TestPerson

beforeAll(async () => {
  signIn = await startTestSignIn({ instances: 2 })
  client = await signIn.createClient()
  ada = await signIn.createPerson({ username: 'ada', email: 'Ada@Example.test', phone: '491701234567' })
})
afterAll(() => signIn.close())

test('a person signs in with a password, and the client gets a code', async () => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client)
  expect(page).toMatchObject({ status: 200, url: expect.stringMatching(/\/sign-in\/[0-9a-z]{21}$/) })
  const back = await browser.submit(page, { identifier: 'ada', password: ada.password, choice: 'sign_in' })
  expect(back.status).toBe(303)
  expect(back.location?.startsWith(`${redirectUri}?`)).toBe(true)
  expect(answerOf(back)).toEqual({ code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: signIn.issuer })
  expect(await signIn.sql('SELECT user_id, amr, acr, is_persistent FROM sessions')).toEqual([
    { user_id: ada.id, amr: ['pwd'], acr: 'urn:surrogate:acr:basic', is_persistent: false },
  ])
  // Single sign-on: the next client gets its code without a page.
  const other = await signIn.createClient({ name: 'Other' })
  const again = await signIn.authorize(browser, other)
  expect(answerOf(again)).toMatchObject({ code: expect.any(String) })
  const counted = await signIn.sql('SELECT count(*)::integer AS open FROM interactions')
  expect(counted).toEqual([{ open: 1 }])
})
