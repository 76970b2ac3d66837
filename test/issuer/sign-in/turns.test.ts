import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Visit } from '../../support/browser.ts'
import { answerOf, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** Turns to have a password hashed: as many as the threads can use, for everybody. */

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn()
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const idOf = ({ url }: Visit) => /\/sign-in\/(\w+)/.exec(url)![1]

test('a form that is sent many times, whose attempts wait for each other, keeps nobody else from signing in', async () => {
  const [ada, eve] = [await signIn.createPerson(), await signIn.createPerson()]
  const [browser, other] = [signIn.browser(), signIn.browser()]
  const page = await signIn.authorize(browser, client)
  const busy = `UPDATE interactions SET state = state || jsonb_build_object('busyUntil', $2::float8) WHERE id = $1`
  await signIn.sql(busy, [idOf(page), Date.now() / 1_000 + 3_600])
  let answered = 0
  // More than there are turns, on any machine.
  const many = Array.from({ length: 20 }, async () => {
    const answer = await browser.submit(page, { identifier: eve.email, password: eve.password })
    answered++
    return answer
  })
  const mine = await other.submit(await signIn.authorize(other, client), {
    identifier: ada.email,
    password: ada.password,
  })
  expect(answerOf(mine)).toMatchObject({ code: expect.any(String) })
  expect(answered).toBe(0)
  await signIn.sql(busy, [idOf(page), 0])
  const codes = (await Promise.all(many)).map((answer) => answerOf(answer)['code'])
  expect(codes).toEqual(Array(20).fill(codes[0] ?? 'a code'))
})
