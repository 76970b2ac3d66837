import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'
import { until } from '../../support/until.ts'

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn()
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const blocks = () =>
  signIn.sql<{ user_id: string; reasons: string[] }>(
    `SELECT user_id, payload->'reasons' AS reasons FROM logs WHERE key = 'Interaction.SignIn.Blocked' ORDER BY created_at`,
  )

test('why somebody does not get on is noted once, however often they look at the page', async () => {
  const [ada, bob] = [await signIn.createPerson(), await signIn.createPerson()]
  await signIn.sql('UPDATE users SET is_suspended = true')
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, ada)
  expect(page.status).toBe(403)
  for (let views = 0; views < 3; views++) expect((await browser.get(page.url)).status).toBe(403)
  const start = await browser.submit(page, { choice: 'another' })
  expect((await browser.submit(start, { identifier: bob.username, password: bob.password })).status).toBe(403)
  // Rows are written in order: whatever was noted of the first one stands before the other.
  await until(async () =>
    expect(await blocks()).toEqual([
      { user_id: ada.id, reasons: ['user_suspended'] },
      { user_id: bob.id, reasons: ['user_suspended'] },
    ]),
  )
})
