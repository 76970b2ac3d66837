import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Visit } from '../../support/browser.ts'
import { answerOf, startTestSignIn, type TestClient, type TestPerson, type TestSignIn } from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient

beforeAll(async () => {
  signIn = await startTestSignIn({ instances: 2 })
  client = await signIn.createClient()
})
afterAll(() => signIn.close())

let lastAddress = 0
/** Each has its own, so that no limit of addresses is in the way. */
const address = () => ({ 'x-test-address': `198.51.100.${++lastAddress % 250}` })
const code = { code: expect.any(String) }

const attempt = async (
  identifier: string,
  password: string,
  {
    browser = signIn.browser(),
    headers = address(),
  }: { browser?: ReturnType<TestSignIn['browser']>; headers?: Record<string, string> } = {},
): Promise<Visit> => {
  const page = await signIn.authorize(browser, client, { prompts: ['login'] })
  return browser.submit(page, { identifier, password, choice: 'sign_in' }, { headers })
}

/** What the page says was wrong. */
const problemOf = ({ text }: Visit): string => /<div class="problem"[\s\S]*?<\/div>/.exec(text)?.[0] ?? ''
const isLocked = (page: Visit) => /15 minutes/.test(problemOf(page))
const lockoutsOf = async ({ id }: TestPerson) =>
  (
    await signIn.sql<{ payload: Buffer }>(
      `SELECT payload FROM outbox WHERE type = 'Identifier.Lockout' AND entity_id = $1`,
      [id],
    )
  ).map(({ payload }) => JSON.parse(payload.toString()))
/** As if there had been nine. */
const failNineTimes = async (identifier: string, options?: Parameters<typeof attempt>[2]) => {
  await attempt(identifier, 'wrong', options)
  await signIn.sql('UPDATE sign_in_failures SET count = 9 WHERE count BETWEEN 1 AND 8')
}
const lockOut = async (identifier: string, options?: Parameters<typeof attempt>[2]) => {
  await failNineTimes(identifier, options)
  await attempt(identifier, 'wrong', options)
}

test('of a hundred wrong passwords at once ten are looked at, and the lock is told once', async () => {
  const person = await signIn.createPerson()
  const pages = await Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const browser = signIn.browser()
      const page = await signIn.authorize(browser, client)
      return {
        browser,
        page: {
          ...page,
          forms: page.forms.map((form) => ({ ...form, action: page.url.replace(signIn.url, signIn.urls[n % 2]!) })),
        },
      }
    }),
  )
  const before = signIn.verified.count
  const values = { identifier: person.username, password: 'wrong', choice: 'sign_in' }
  const answers = await Promise.all(
    pages.map(({ browser, page }) => browser.submit(page, values, { headers: { ...address(), origin: signIn.url } })),
  )
  expect(signIn.verified.count - before).toBe(10)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400]))
  expect(answers.filter(isLocked)).toHaveLength(90)
  expect(await lockoutsOf(person)).toMatchObject([
    {
      event: 'Identifier.Lockout',
      data: null,
      type: 'username',
      value: person.username,
      interactionEvent: 'SignIn',
      sessionId: expect.any(String),
      application: { id: client.id, type: 'SPA', name: 'Shop', description: null },
    },
  ])
})

test('the tenth attempt still gets in, and success clears the counter', async () => {
  const person = await signIn.createPerson()
  for (let round = 0; round < 2; round++) {
    await failNineTimes(person.username)
    expect(answerOf(await attempt(person.username, person.password))).toMatchObject(code)
  }
  expect(await lockoutsOf(person)).toEqual([])
})

test('a lock refuses the right password without looking at it, and lasts longer each time', async () => {
  const person = await signIn.createPerson()
  await lockOut(person.username)
  const before = signIn.verified.count
  const refused = await attempt(person.username, person.password)
  expect(refused.status).toBe(400)
  expect(isLocked(refused)).toBe(true)
  expect(signIn.verified.count).toBe(before)
  const minutes = async () => {
    const rows = await signIn.sql<{ left: number }>(
      `SELECT round(extract(epoch FROM max(locked_until) - now()) / 60)::integer AS left FROM sign_in_failures`,
    )
    return rows[0]?.left
  }
  expect(await minutes()).toBe(15)
  await signIn.sql('UPDATE sign_in_failures SET locked_until = now() WHERE locked_until IS NOT NULL')
  await lockOut(person.username)
  expect(await minutes()).toBe(30)
  expect(await lockoutsOf(person)).toHaveLength(2)
  await signIn.sql('UPDATE sign_in_failures SET locked_until = now() WHERE locked_until IS NOT NULL')
  expect(answerOf(await attempt(person.username, person.password))).toMatchObject(code)
})

test('failures are forgotten after a quarter of an hour', async () => {
  const person = await signIn.createPerson()
  await failNineTimes(person.username)
  await signIn.sql(`UPDATE sign_in_failures SET since = since - interval '16 minutes'`)
  await failNineTimes(person.username)
  expect(answerOf(await attempt(person.username, person.password))).toMatchObject(code)
})

test('strangers do not lock the owner out of a browser that is known; a device of somebody else helps nobody', async () => {
  const [owner, other] = [await signIn.createPerson(), await signIn.createPerson()]
  const [browser, foreign] = [signIn.browser(), signIn.browser()]
  await attempt(owner.username, owner.password, { browser })
  await attempt(other.username, other.password, { browser: foreign })
  await lockOut(owner.username)
  const stolen = signIn.browser()
  stolen.cookies.set('surrogate_device', foreign.cookies.get('surrogate_device')!)
  expect(isLocked(await attempt(owner.username, owner.password, { browser: stolen }))).toBe(true)
  const forged = signIn.browser()
  forged.cookies.set('surrogate_device', 'C'.repeat(43))
  expect(isLocked(await attempt(owner.username, owner.password, { browser: forged }))).toBe(true)
  expect(answerOf(await attempt(owner.username, owner.password, { browser }))).toMatchObject(code)
  // The known browser has a counter of its own.
  await lockOut(owner.username, { browser })
  expect(isLocked(await attempt(owner.username, owner.password, { browser }))).toBe(true)
})

test('every way to write an identifier is one counter, also of nobody', async () => {
  const person = await signIn.createPerson({ username: 'grace', email: 'grace@example.test', phone: '493012345678' })
  const variants = [
    'grace',
    'GRACE',
    ' Grace ',
    'ｇｒａｃｅ',
    'Grace@Example.TEST',
    '+49 30 12345678',
    '0049 (0)30/1234.5678',
  ]
  for (let count = 0; count < 10; count++) await attempt(variants[count % variants.length]!, 'wrong')
  for (const variant of variants) expect(isLocked(await attempt(variant, person.password)), variant).toBe(true)
  for (let count = 0; count < 10; count++)
    await attempt(['nobody@example.test', 'NOBODY@example.test '][count % 2]!, 'x')
  expect(isLocked(await attempt('Nobody@Example.test', 'x'))).toBe(true)
})

test('what an unknown person sees is what a known one sees, a suspended one too, and when locked', async () => {
  const { id: passwordless } = await signIn.createUser()
  // Of one length, as the page repeats what was entered.
  const names = ['person_known', 'person_other', 'person_nopas', 'person_susp1']
  await signIn.createPerson({ username: names[0]! })
  await signIn.sql('UPDATE users SET username = $2 WHERE id = $1', [passwordless, names[2]])
  await signIn.suspend((await signIn.createPerson({ username: names[3]! })).id)
  const seen = async (name: string) => {
    const before = signIn.verified.count
    const page = await attempt(name, 'wrong')
    const hashed = signIn.verified.count - before
    const text = page.text.replaceAll(name, '').replace(/value="sign_in\.[^"]*"|\/sign-in\/\w+/g, '')
    const headers = Object.fromEntries(
      [...page.headers].map(([header, value]) => [header, header === 'date' ? '' : value]),
    )
    return { status: page.status, text, headers, length: page.text.length, hashed }
  }
  for (const lockFirst of [false, true]) {
    if (lockFirst) for (const name of names) await lockOut(name)
    const [known, ...others] = await Promise.all(names.map(seen))
    expect(known).toMatchObject({ status: 400, headers: { 'content-type': 'text/html; charset=utf-8' } })
    for (const other of others) expect(other).toEqual({ ...known, hashed: expect.any(Number) })
  }
  // One at a time, as what is hashed is counted for all together.
  for (const hashed of [0, 1]) {
    for (const name of names) expect((await seen(name)).hashed).toBe(hashed)
    await signIn.sql('DELETE FROM sign_in_failures')
  }
})

test('one address may fail a hundred times in ten minutes, and success is no failure', async () => {
  const person = await signIn.createPerson()
  const headers = { 'x-test-address': '2001:db8:1:2::1' }
  await signIn.sql('DELETE FROM sign_in_failures')
  for (let count = 0; count < 3; count++) await attempt(person.username, person.password, { headers })
  const counted = await signIn.sql('SELECT count FROM sign_in_failures WHERE count = 0')
  expect(counted).toHaveLength(1)
  await signIn.sql('UPDATE sign_in_failures SET count = 100 WHERE count = 0')
  const before = signIn.verified.count
  const refused = await attempt(person.username, person.password, {
    headers: { 'x-test-address': '2001:db8:1:2:ffff::9' },
  })
  expect(refused.status).toBe(429)
  expect(signIn.verified.count).toBe(before)
  const elsewhere = { 'x-test-address': '2001:db8:1:3::1' }
  expect(answerOf(await attempt(person.username, person.password, { headers: elsewhere }))).toMatchObject(code)
})
