import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())

const byEmail = { signUp: { identifiers: ['email'], password: true, verify: true } }
const problemsOf = ({ text }: Visit) =>
  [...text.matchAll(/<p class="message" id="[^"]*">([\s\S]*?)<\/p>/g)].map(([, message]) => message)
const summaryOf = ({ text }: Visit) => /role="alert"[\s\S]*?<p>([\s\S]*?)<\/p>/.exec(text)?.[1]
const userBy = async (column: string, value: string) =>
  (await signIn.sql(`SELECT * FROM users WHERE ${column} = $1`, [value]))[0] as Record<string, unknown> | undefined

const open = async (request = {}) => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client, request)
  const submit = (from: Visit, values: Record<string, string>) =>
    browser.submit(from, { ...values }, { with: 'choice' })
  return { browser, page, submit }
}

describe('with a user name', () => {
  beforeEach(() => {
    signIn.settings = experienceWith({})
  })

  test('it leads to an account and back with a code, in one transaction with its events', async () => {
    const { page, submit } = await open()
    const form = await submit(page, { choice: 'register' })
    expect(headingOf(form)).toBe('Create an account')
    const back = await submit(form, { choice: 'details', username: 'grace', password: 'four words make sense' })
    expect(answerOf(back)).toMatchObject({ code: expect.any(String), state: 'the state' })
    const user = await userBy('username', 'grace')
    expect(user).toMatchObject({ primary_email: null, password_algorithm: 'Argon2id' })
    const events = await signIn.sql<{ type: string }>(
      `SELECT type FROM outbox WHERE convert_from(payload, 'UTF8') LIKE '%' || $1 || '%' ORDER BY seq`,
      [user!['id']],
    )
    expect(events.map(({ type }) => type)).toEqual(['User.Created', 'PostRegister'])
  })

  test('what is wrong stands at its field; the password alone is asked for again', async () => {
    const { page, submit } = await open({ prompts: ['create'] })
    expect(headingOf(page)).toBe('Create an account')
    const empty = await submit(page, { choice: 'details', username: '', password: '' })
    expect(empty.status).toBe(400)
    expect(problemsOf(empty)).toEqual(['Enter a username', 'Choose a password'])
    const odd = await submit(empty, { choice: 'details', username: '1 two', password: 'four words make sense' })
    expect(problemsOf(odd)).toEqual([expect.stringContaining('Use letters from a to z')])
    expect(odd.text).toContain('value="1 two"')
    const half = await submit(odd, { choice: 'details', username: 'hopper', password: '' })
    expect(problemsOf(half)).toEqual(['Choose a password'])
    expect(half.text).not.toContain('name="username"')
    const back = await submit(half, { choice: 'details', password: 'four words make sense' })
    expect(answerOf(back)).toHaveProperty('code')
    expect(await userBy('username', 'hopper')).toBeDefined()
  })

  test('a password that is not good enough is refused, with all that is wrong with it', async () => {
    signIn.settings = experienceWith({ passwordPolicy: { length: { min: 12 } } })
    const { page, submit } = await open({ prompts: ['create'] })
    expect(page.text).toContain('At least 12 characters.')
    const refused = await submit(page, { choice: 'details', username: 'lovelace', password: 'lovelace' })
    expect(refused.status).toBe(400)
    expect(problemsOf(refused)[0]).toContain('Use at least 12 characters')
    expect(problemsOf(refused)[0]).toContain('your name or address')
    // The name is kept; nothing of the password is.
    expect(refused.text).not.toContain('name="username"')
    const back = await submit(refused, { choice: 'details', password: 'four words make sense' })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('a name that somebody has is refused, whether it is taken before or meanwhile', async () => {
    const person = await signIn.createPerson({ username: 'taken_name' })
    const { page, submit } = await open({ firstScreen: 'register' })
    const password = 'four words make sense'
    const refused = await submit(page, { choice: 'details', username: person.username, password })
    expect(problemsOf(refused)).toEqual(['This username is taken. Choose another one.'])

    // A third-party application keeps the new person on the page of consent, while somebody else takes the name.
    const stranger = await signIn.createClient({ isThirdParty: true })
    const browser = signIn.browser()
    const form = await signIn.authorize(browser, stranger, { prompts: ['create'] })
    const consent = await browser.submit(form, { choice: 'details', username: 'racing_name', password })
    expect(consent.text).toContain('value="allow"')
    await signIn.createPerson({ username: 'racing_name' })
    const again = await browser.submit(consent, { choice: 'allow' }, { with: 'choice' })
    expect(again.status).toBe(200)
    expect(problemsOf(again)).toEqual(['This username is taken. Choose another one.'])
    const allow = await browser.submit(again, { choice: 'details', username: 'other_name' })
    const back = allow.location === undefined ? await browser.submit(allow, { choice: 'allow' }) : allow
    expect(answerOf(back)).toHaveProperty('code')
    expect(await signIn.sql(`SELECT FROM users WHERE username = 'racing_name'`)).toHaveLength(1)
  })

  test('an address may ask for twenty names an hour', async () => {
    const headers = { 'x-test-address': '198.51.100.20' }
    const browser = signIn.browser()
    let page = await signIn.authorize(browser, client, { prompts: ['create'] })
    await signIn.createPerson({ username: 'guessed' })
    const ask = (username: string) =>
      browser.submit(page, { choice: 'details', username, password: '' }, { with: 'choice', headers })
    for (let count = 0; count < 20; count++) {
      page = await ask('guessed')
      expect(problemsOf(page)[0]).toContain('taken')
    }
    page = await ask('guessed')
    expect(page.status).toBe(429)
    expect(summaryOf(page)).toContain('Too many requests')
    expect(page.text).not.toContain('This username is taken')
  })

  test('"I already have an account" leads back, and nothing that was entered goes along', async () => {
    const { browser, page, submit } = await open({ prompts: ['create'] })
    const half = await submit(page, { choice: 'details', username: 'turing', password: '' })
    const back = await submit(half, { choice: 'back' })
    expect(headingOf(back)).toBe('Sign in')
    const person = await signIn.createPerson()
    const answer = await browser.submit(back, { identifier: person.username, password: person.password })
    expect(answerOf(answer)).toHaveProperty('code')
    expect(await userBy('username', 'turing')).toBeUndefined()
    expect(await userBy('username', person.username)).toBeDefined()
  })
})

describe('with an address', () => {
  beforeEach(() => {
    signIn.settings = experienceWith(byEmail)
  })

  test('a code shows that it is theirs, and no account is there before the end', async () => {
    const { page, submit } = await open({ prompts: ['create'] })
    const wrong = await submit(page, { choice: 'code', address: 'no address' })
    expect(problemsOf(wrong)).toEqual(['Enter an email address such as name@example.com'])
    expect(wrong.text).toContain('value="no address"')
    const check = await submit(wrong, { choice: 'code', address: 'Grace@Example.test' })
    expect(check.status).toBe(200)
    expect(headingOf(check)).toBe('Check your email')
    const missing = await submit(check, { choice: 'verify', code: ' ' })
    expect(problemsOf(missing)).toEqual(['Enter the code'])
    const code = await signIn.lastCode('grace@example.test')
    const mistyped = await submit(missing, { choice: 'verify', code: code === '000000' ? '000001' : '000000' })
    expect(problemsOf(mistyped)).toEqual(['This code is not right. Check it, or ask for a new one.'])
    const details = await submit(mistyped, { choice: 'verify', code: `${code.slice(0, 3)} ${code.slice(3)}` })
    expect(details.text).toContain('autocomplete="new-password"')
    // Password managers keep the password under the address.
    expect(details.text).toContain('value="grace@example.test" autocomplete="username"')
    expect(await userBy('primary_email', 'grace@example.test')).toBeUndefined()
    const back = await submit(details, { choice: 'details', password: 'four words make sense' })
    expect(answerOf(back)).toHaveProperty('code')
    expect(await userBy('primary_email', 'grace@example.test')).toMatchObject({ email_verified_at: expect.any(Date) })
  })

  test('whose address it is shows nowhere but in their mailbox', async () => {
    const person = await signIn.createPerson()
    const pageFor = async (address: string) => {
      const { page, submit } = await open({ prompts: ['create'] })
      const { text, status } = await submit(page, { choice: 'code', address })
      return { status, text: text.replaceAll(address, '').replace(/(name="csrf" value|action)="[^"]*"/g, '') }
    }
    expect(await pageFor(person.email)).toEqual(await pageFor('somebody-new@example.test'))
    const [told] = (await signIn.messages()).filter(({ to }) => to === person.email)
    expect(told).toMatchObject({ type: 'AlreadyRegistered', variables: {} })
  })

  test('another address can be taken; the code of the first is void', async () => {
    const { page, submit } = await open({ prompts: ['create'] })
    const first = await submit(page, { choice: 'code', address: 'first@example.test' })
    const code = await signIn.lastCode('first@example.test')
    const again = await submit(first, { choice: 'other' })
    expect(again.text).toContain('name="address"')
    const second = await submit(again, { choice: 'code', address: 'second@example.test' })
    expect(second.text).toContain('second@example.test')
    const refused = await submit(second, { choice: 'verify', code })
    expect(refused.status).toBe(400)
    const details = await submit(refused, { choice: 'verify', code: await signIn.lastCode('second@example.test') })
    expect(details.text).toContain('name="password"')
  })

  test('reloading and going back ask for what is due, and an old form does nothing', async () => {
    const { browser, page, submit } = await open({ prompts: ['create'] })
    const check = await submit(page, { choice: 'code', address: 'reloads@example.test' })
    expect(headingOf(await browser.get(check.url))).toBe('Check your email')
    const details = await submit(check, { choice: 'verify', code: await signIn.lastCode('reloads@example.test') })
    // The form of the code, sent again from the history.
    const old = await submit(check, { choice: 'verify', code: '000000' })
    expect(old.text).toContain('name="password"')
    const back = await submit(details, { choice: 'details', password: 'four words make sense' })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('either a telephone number or an address will do, each with its code', async () => {
    signIn.settings = experienceWith({ signUp: { identifiers: ['email', 'phone'], password: false, verify: true } })
    const { page, submit } = await open({ prompts: ['create'] })
    expect(page.text).toContain('Email address or phone number')
    const check = await submit(page, { choice: 'code', address: '+44 (0)20 7946 0018' })
    expect(headingOf(check)).toBe('Check your phone')
    expect(check.text).toContain('<bdi>+442079460018</bdi>')
    const other = await submit(check, { choice: 'other' })
    const mail = await submit(other, { choice: 'code', address: 'either@example.test' })
    const back = await submit(mail, { choice: 'verify', code: await signIn.lastCode('either@example.test') })
    expect(answerOf(back)).toHaveProperty('code')
  })
})

describe('who may not', () => {
  test('finds no way to it, however they ask', async () => {
    signIn.settings = experienceWith({ signInMode: 'SignIn' })
    const { browser, page, submit } = await open({ prompts: ['create'] })
    expect(headingOf(page)).toBe('Sign in')
    expect(page.text).not.toContain('value="register"')
    const forced = await submit(page, { choice: 'register' })
    expect(headingOf(forced)).toBe('Sign in')

    // It was allowed when the page was shown.
    signIn.settings = experienceWith({})
    const form = await submit(forced, { choice: 'register' })
    signIn.settings = experienceWith({ signInMode: 'SignIn' })
    const blocked = await submit(form, { choice: 'details', username: 'late', password: 'four words make sense' })
    expect(blocked.status).toBe(403)
    expect(headingOf(blocked)).toBe('Accounts cannot be created here')
    expect(blocked.text).toContain('Back to <bdi>Shop</bdi>')
    const back = await browser.submit(blocked, { choice: 'back' })
    expect(headingOf(back)).toBe('Sign in')
    expect(await userBy('username', 'late')).toBeUndefined()
  })

  test('is told so where an address is asked for and nothing can send there', async () => {
    const silent = await startTestSignIn({ settings: byEmail })
    try {
      const shop = await silent.createClient()
      const page = await silent.authorize(silent.browser(), shop, { prompts: ['create'] })
      expect(headingOf(page)).toBe('Accounts cannot be created here')
    } finally {
      await silent.close()
    }
  })
})
