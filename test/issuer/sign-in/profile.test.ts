import { afterAll, beforeAll, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const problemsOf = ({ text }: Visit) =>
  [...text.matchAll(/<p class="message" id="[^"]*">([\s\S]*?)<\/p>/g)].map(([, message]) => message)

const open = async (from: TestClient = client) => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, from)
  const submit = (from: Visit, values: Record<string, string>) => browser.submit(from, values, { with: 'choice' })
  return { browser, page, submit }
}

const byEmail = { signUp: { identifiers: ['email'], password: true, verify: true } }

/** Somebody without an address. */
const withoutEmail = async () => {
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET primary_email = NULL WHERE id = $1', [person.id])
  return person
}
const emailOf = async (id: string) =>
  (await signIn.sql<{ email: string | null }>('SELECT primary_email AS email FROM users WHERE id = $1', [id]))[0]!.email

test('an address that everybody here has is asked for at signing in, and shown to be theirs by a code', async () => {
  signIn.settings = experienceWith(byEmail)
  const person = await withoutEmail()
  const { page, submit } = await open()
  const ask = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
  expect(headingOf(ask)).toBe('One more step')
  const check = await submit(ask, { choice: 'code', address: 'mine@example.test' })
  expect(headingOf(check)).toBe('Check your email')
  expect(await emailOf(person.id)).toBeNull()
  const back = await submit(check, { choice: 'verify', code: await signIn.lastCode('mine@example.test') })
  expect(answerOf(back)).toHaveProperty('code')
  expect(await emailOf(person.id)).toBe('mine@example.test')
})

test('an address that somebody else has stays theirs, and another one is asked for', async () => {
  signIn.settings = experienceWith(byEmail)
  const [owner, person] = [await signIn.createPerson(), await withoutEmail()]
  const { page, submit } = await open()
  const ask = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
  const check = await submit(ask, { choice: 'code', address: owner.email })
  // Told only to who can read the mail of that address.
  expect(headingOf(check)).toBe('Check your email')
  const again = await submit(check, { choice: 'verify', code: await signIn.lastCode(owner.email) })
  expect(again.status).toBe(200)
  expect(problemsOf(again)).toEqual(['This email address belongs to another account. Use another one.'])
  expect(await emailOf(owner.id)).toBe(owner.email)
  const next = await submit(again, { choice: 'code', address: 'free@example.test' })
  const back = await submit(next, { choice: 'verify', code: await signIn.lastCode('free@example.test') })
  expect(answerOf(back)).toHaveProperty('code')
  expect(await emailOf(person.id)).toBe('free@example.test')
})

/** Of what happened to the account. */
const noticesTo = async (address: string) =>
  (await signIn.messages()).filter(({ to, variables }) => to === address && variables['code'] === undefined)

test('an address that comes where there was none changes none: it is told of the new browser, nobody of a change', async () => {
  signIn.settings = experienceWith(byEmail)
  const person = await withoutEmail()
  const { page, submit } = await open()
  const ask = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
  const check = await submit(ask, { choice: 'code', address: 'first-of-mine@example.test' })
  await submit(check, { choice: 'verify', code: await signIn.lastCode('first-of-mine@example.test') })
  expect((await noticesTo('first-of-mine@example.test')).map(({ type }) => type)).toEqual(['NewDevice'])
  expect((await signIn.messages()).filter(({ type }) => type === 'AddressChanged')).toEqual([])
})

test('an address that another tab has added meanwhile is told when this one replaces it', async () => {
  signIn.settings = experienceWith(byEmail)
  const person = await withoutEmail()
  const addAddress = async (address: string, from: TestClient) => {
    const { page, submit } = await open(from)
    const ask = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
    const check = await submit(ask, { choice: 'code', address })
    const next = await submit(check, { choice: 'verify', code: await signIn.lastCode(address) })
    return { next, submit }
  }
  const [first, second] = [`${person.id}-1@example.test`, `${person.id}-2@example.test`]
  const partner = await signIn.createClient({ isThirdParty: true })
  const consent = await addAddress(second, partner)
  expect(answerOf((await addAddress(first, client)).next)).toHaveProperty('code')
  expect(await emailOf(person.id)).toBe(first)
  expect(answerOf(await consent.submit(consent.next, { choice: 'allow' }))).toHaveProperty('code')
  expect(await emailOf(person.id)).toBe(second)
  expect((await noticesTo(first)).filter(({ type }) => type === 'AddressChanged')).toMatchObject([
    { text: expect.stringContaining('replaced by') },
  ])
  expect(await noticesTo(second)).toEqual([])
})

test('who signs in by code, and has no password, chooses one where everybody has one', async () => {
  const methods = [{ identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }]
  signIn.settings = experienceWith({ ...byEmail, signIn: { methods } })
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET password_digest = NULL, password_algorithm = NULL WHERE id = $1', [person.id])
  const { page, submit } = await open()
  const check = await submit(page, { choice: 'code', identifier: person.email })
  const ask = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
  expect(headingOf(ask)).toBe('One more step')
  expect(ask.text).toContain(`value="${person.email}" autocomplete="username"`)
  const empty = await submit(ask, { choice: 'details', password: '' })
  expect(problemsOf(empty)).toEqual(['Choose a password'])
  const back = await submit(empty, { choice: 'details', password: 'four words make sense' })
  expect(answerOf(back)).toHaveProperty('code')
})

test('nobody is let through by sending the form of another page', async () => {
  signIn.settings = experienceWith(byEmail)
  const person = await withoutEmail()
  const { page, submit } = await open()
  const ask = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
  const forms: Record<string, string>[] = [
    { choice: 'details', password: 'x' },
    { choice: 'verify', code: '123456' },
    { choice: 'none' },
  ]
  for (const values of forms) {
    const visit = await submit(ask, values)
    expect([200, 400]).toContain(visit.status)
    expect(visit.location).toBeUndefined()
  }
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
})
