import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { solvedOn as solved } from '../../support/proof-of-work.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** The test for machines on the forms that prove or send something. */

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())
beforeEach(() => {
  signIn.settings = experienceWith(tested)
})

const tested = { captchaPolicy: { enabled: true } }
const messagesTo = async (to: string) => (await signIn.messages()).filter((message) => message.to === to).length
let numbers = 1_000
const newNumber = () => `+1555555${++numbers}`

const open = async (request = {}) => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client, request)
  const submit = (visit: Visit, values: Record<string, string>) => browser.submit(visit, values, { with: 'choice' })
  return { page, submit }
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

describe('a text message to somebody unknown is sent after the test only:', () => {
  const either = { identifiers: ['email', 'phone'], password: false, verify: true }

  /** The test on a form not solved, solved wrongly, and solved. */
  const sentAfterTheTest = async (
    page: Visit,
    submit: Awaited<ReturnType<typeof open>>['submit'],
    number: string,
    sending: Record<string, string> = { choice: 'code', address: number },
  ) => {
    expect(page.text).toContain('data-challenge')
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    let shown = page
    for (const captcha of ['', 'made.up.1']) {
      shown = await submit(shown, { ...sending, captcha })
      expect(shown.status).toBe(400)
      expect(shown.text).toContain('Your browser could not be checked. Please try again.')
      expect(shown.text).toContain(`value="${number}"`)
      expect(shown.text).toContain('data-challenge')
    }
    expect(await messagesTo(number)).toBe(0)
    const check = await submit(shown, { ...sending, captcha: solved(shown) })
    expect(await messagesTo(number)).toBe(1)
    return check
  }

  test('of a registration, which goes on to an account', async () => {
    signIn.settings = experienceWith({ ...tested, signUp: either })
    const number = newNumber()
    const { page, submit } = await open({ prompts: ['create'] })
    expect(page.text).toContain('An email address needs no check')
    const check = await sentAfterTheTest(page, submit, number)
    expect(headingOf(check)).toBe('Check your phone')
    // Another number needs no other test.
    const other = await submit(check, { choice: 'other' })
    expect(other.text).not.toContain('data-challenge')
    const again = await submit(other, { choice: 'code', address: number })
    const back = await submit(again, { choice: 'verify', code: await signIn.lastCode(number) })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('of a reset', async () => {
    const number = newNumber()
    await signIn.createPerson({ phone: number.slice(1) })
    const { page, submit } = await open()
    const form = await submit(page, { choice: 'reset' })
    expect(form.text).toContain('An email address needs no check')
    const check = await sentAfterTheTest(form, submit, number)
    const choose = await submit(check, { choice: 'verify', code: await signIn.lastCode(number) })
    expect(headingOf(choose)).toBe('Choose a new password')
  })

  test('of signing in by a code', async () => {
    const method = { identifier: 'phone', password: false, verificationCode: true, isPasswordPrimary: false }
    signIn.settings = experienceWith({ ...tested, signIn: { methods: [method] } })
    const number = newNumber()
    await signIn.createPerson({ phone: number.slice(1) })
    const { page, submit } = await open()
    const check = await sentAfterTheTest(page, submit, number, { choice: 'code', identifier: number })
    const back = await submit(check, { choice: 'verify', code: await signIn.lastCode(number) })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('of a second factor that a new account gets, where nobody was tested before', async () => {
    signIn.settings = experienceWith({
      ...tested,
      signUp: { identifiers: ['username'], password: true, verify: false },
      mfa: { factors: ['PhoneVerificationCode'], policy: 'Mandatory' },
    })
    const number = newNumber()
    const { page, submit } = await open({ prompts: ['create'] })
    const form = await submit(page, {
      choice: 'details',
      username: `u${number.slice(1)}`,
      password: 'four words make sense',
    })
    const check = await sentAfterTheTest(form, submit, number, { choice: 'send', address: number })
    const back = await submit(check, { choice: 'verify', code: await signIn.lastCode(number) })
    expect(answerOf(back)).toHaveProperty('code')
  })
})

test('a test that comes to be due before another text message leads back to the form where it stands', async () => {
  const signUp = { identifiers: ['phone'], password: false, verify: true }
  signIn.settings = experienceWith({ signUp })
  const number = newNumber()
  const { page, submit } = await open({ prompts: ['create'] })
  const check = await submit(page, { choice: 'code', address: number })
  expect(await messagesTo(number)).toBe(1)
  signIn.settings = experienceWith({ ...tested, signUp })
  await signIn.sql(`UPDATE proofs SET created_at = now() - interval '61 seconds' WHERE verified_at IS NULL`)
  const form = await submit(check, { choice: 'resend' })
  expect(form.text).toContain('data-challenge')
  expect(await messagesTo(number)).toBe(1)
  const sent = await submit(form, { choice: 'code', address: number, captcha: solved(form) })
  expect(headingOf(sent)).toBe('Check your phone')
  expect(await messagesTo(number)).toBe(2)
})

describe('a mailed code needs no test, as browsers without scripts have no answer:', () => {
  test('of a registration', async () => {
    const signUp = { identifiers: ['email', 'phone'], password: false, verify: true }
    signIn.settings = experienceWith({ ...tested, signUp })
    const { page, submit } = await open({ prompts: ['create'] })
    const check = await submit(page, { choice: 'code', address: 'grace@example.test', captcha: '' })
    expect(headingOf(check)).toBe('Check your email')
    const back = await submit(check, { choice: 'verify', code: await signIn.lastCode('grace@example.test') })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('of a reset', async () => {
    const person = await signIn.createPerson()
    const { page, submit } = await open()
    const form = await submit(page, { choice: 'reset' })
    const check = await submit(form, { choice: 'code', address: person.email, captcha: '' })
    const choose = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
    expect(headingOf(choose)).toBe('Choose a new password')
  })

  test('of signing in', async () => {
    const method = { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }
    signIn.settings = experienceWith({ ...tested, signIn: { methods: [method] } })
    const person = await signIn.createPerson()
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email, captcha: 'made.up.1' })
    const back = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('where only mails are sent no test is shown', async () => {
    signIn.settings = experienceWith({ ...tested, signUp: { identifiers: ['email'], password: false, verify: true } })
    const { page } = await open({ prompts: ['create'] })
    expect(page.text).not.toContain('data-challenge')
  })
})
