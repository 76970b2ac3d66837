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

const method = (identifier: string, password: boolean, verificationCode: boolean) => ({
  ...{ identifier, password, verificationCode, isPasswordPrimary: password },
})
const codesToo = { signIn: { methods: [method('username', true, false), method('email', true, true)] } }
beforeEach(() => {
  signIn.settings = experienceWith(codesToo)
})

const problemsOf = ({ text }: Visit) =>
  [...text.matchAll(/<p class="message" id="[^"]*">([\s\S]*?)<\/p>/g)].map(([, message]) => message)
const summaryOf = ({ text }: Visit) => /role="alert"[\s\S]*?<p>(?:<a [^>]*>)?([\s\S]*?)(?:<\/a>)?<\/p>/.exec(text)?.[1]
const other = (code: string) => (code === '000000' ? '000001' : '000000')
const shown = ({ status, text }: Visit, address: string) => ({
  status,
  text: text.replaceAll(address, '').replace(/(name="csrf" value|action)="[^"]*"/g, ''),
})

const open = async (request = {}) => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client, request)
  const submit = (from: Visit, values: Record<string, string>, headers: Record<string, string> = {}) =>
    browser.submit(from, values, { with: 'choice', headers })
  return { browser, page, submit }
}

describe('signing in by code', () => {
  test('is a second button; the code signs in, and the person stays signed in as they asked', async () => {
    const person = await signIn.createPerson()
    const { browser, page, submit } = await open()
    expect(page.text).toContain('Send me a code')
    const check = await submit(page, { choice: 'code', identifier: person.email, keep: 'yes' })
    expect(headingOf(check)).toBe('Check your email')
    expect(check.text).toMatch(/inputmode="numeric"[^>]*autocomplete="one-time-code"/)
    const back = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
    expect(answerOf(back)).toHaveProperty('code')
    expect(browser.setCookies.find((line) => line.startsWith('surrogate_session='))).toMatch(/Max-Age=/i)
    const [session] = await signIn.sql('SELECT amr FROM sessions WHERE user_id = $1', [person.id])
    expect(session).toEqual({ amr: ['otp'] })
  })

  test('is the only way where passwords are none', async () => {
    signIn.settings = experienceWith({ signIn: { methods: [method('email', false, true)] } })
    const { page, submit } = await open()
    expect(page.text).not.toContain('name="password"')
    expect(page.text).toContain('<label for="identifier">Email address</label>')
    const empty = await submit(page, { choice: 'code', identifier: 'ada' })
    expect(problemsOf(empty)).toEqual(['Enter an email address such as name@example.com'])
  })

  test('is refused where it is not enabled', async () => {
    signIn.settings = experienceWith({})
    const { page, submit } = await open()
    expect(page.text).not.toContain('value="code"')
    const person = await signIn.createPerson()
    const forced = await submit(page, { choice: 'code', identifier: person.email })
    expect(forced.status).toBe(400)
    expect((await signIn.messages()).filter(({ to }) => to === person.email)).toEqual([])
  })

  test('looks the same for an address that is nobody’s, right to the lock', async () => {
    signIn.settings = experienceWith({ ...codesToo, signInMode: 'SignIn', sentinelPolicy: { maxAttempts: 3 } })
    const seen = async (address: string) => {
      const { page, submit } = await open()
      const visits = [await submit(page, { choice: 'code', identifier: address })]
      const codes = (await signIn.messages()).filter(({ to }) => to === address)
      const wrong = other(codes[0]?.variables['code'] ?? '')
      for (let count = 0; count < 4; count++)
        visits.push(await submit(visits.at(-1)!, { choice: 'verify', code: wrong }))
      return visits.map((visit) => shown(visit, address))
    }
    const person = await signIn.createPerson()
    const known = await seen(person.email)
    expect(known).toEqual(await seen('nobody@example.test'))
    expect(known[0]!.text).toContain('belongs to an account')
    expect(known.at(-1)!.text).toContain('Too many attempts have failed')
    expect((await signIn.messages()).filter(({ to }) => to === 'nobody@example.test')).toEqual([])
  })

  test('tells a suspended person so only after the right code', async () => {
    const person = await signIn.createPerson()
    await signIn.sql('UPDATE users SET is_suspended = true WHERE id = $1', [person.id])
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email })
    const code = await signIn.lastCode(person.email)
    const wrong = await submit(check, { choice: 'verify', code: other(code) })
    expect(headingOf(wrong)).toBe('Check your email')
    const blocked = await submit(wrong, { choice: 'verify', code })
    expect(blocked.status).toBe(403)
    expect(headingOf(blocked)).toBe('Your account is suspended')
    // There is a way on from it: with another account, or back.
    expect(blocked.text).toContain('Back to <bdi>Shop</bdi>')
    const again = await submit(blocked, { choice: 'another' })
    expect(headingOf(again)).toBe('Sign in')
    const another = await signIn.createPerson()
    const back = await submit(again, { choice: 'sign_in', identifier: another.username, password: another.password })
    expect(answerOf(back)).toHaveProperty('code')
  })

  test('with an address of nobody offers an account for it, and makes none by itself', async () => {
    const count = async () => (await signIn.sql('SELECT FROM users')).length
    const before = await count()
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: 'new@example.test' })
    const offer = await submit(check, { choice: 'verify', code: await signIn.lastCode('new@example.test') })
    expect(headingOf(offer)).toBe('There is no account yet')
    expect(offer.text).toContain('<bdi>new@example.test</bdi>')
    expect(await count()).toBe(before)
    const form = await submit(offer, { choice: 'begin_account' })
    expect(headingOf(form)).toBe('Create an account')
    const back = await submit(form, { choice: 'details', username: 'newcomer', password: 'four words make sense' })
    expect(answerOf(back)).toHaveProperty('code')
    const [user] = await signIn.sql('SELECT * FROM users WHERE username = $1', ['newcomer'])
    expect(user).toMatchObject({ primary_email: 'new@example.test' })
  })

  test('with an address of nobody can be done with another one', async () => {
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: 'mistyped@example.test' })
    const offer = await submit(check, { choice: 'verify', code: await signIn.lastCode('mistyped@example.test') })
    const again = await submit(offer, { choice: 'other' })
    expect(headingOf(again)).toBe('Sign in')
  })
})

describe('a code', () => {
  test('can be sent anew after a minute, and the one before is void', async () => {
    const person = await signIn.createPerson()
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email })
    const first = await signIn.lastCode(person.email)
    const soon = await submit(check, { choice: 'resend' })
    expect(soon.status).toBe(429)
    expect(summaryOf(soon)).toContain('less than a minute ago')
    await signIn.sql(`UPDATE proofs SET created_at = now() - interval '61 seconds' WHERE verified_at IS NULL`)
    const sent = await submit(soon, { choice: 'resend' })
    expect(sent.status).toBe(200)
    expect(sent.text).toContain('A new code is on its way.')
    const second = await signIn.lastCode(person.email)
    if (first !== second) expect((await submit(sent, { choice: 'verify', code: first })).status).toBe(400)
    expect(answerOf(await submit(sent, { choice: 'verify', code: second }))).toHaveProperty('code')
  })

  test('that was tried too often leads back to asking for one', async () => {
    const person = await signIn.createPerson()
    const { page, submit } = await open()
    let at = await submit(page, { choice: 'code', identifier: person.email })
    const code = await signIn.lastCode(person.email)
    for (let count = 0; count < 5; count++) at = await submit(at, { choice: 'verify', code: other(code) })
    expect(problemsOf(at)).toEqual(['This code is not right. Check it, or ask for a new one.'])
    at = await submit(at, { choice: 'verify', code })
    expect(headingOf(at)).toBe('Sign in')
    expect(summaryOf(at)).toBe('This code no longer works. Ask for a new one.')
  })

  test('that is sent five times at once signs in once, and leads every one of them to the same place', async () => {
    const person = await signIn.createPerson()
    const { browser, page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email })
    const code = await signIn.lastCode(person.email)
    const twice = () => browser.submit(check, { choice: 'verify', code }, { with: 'choice', follow: false })
    const visits = await Promise.all(Array.from({ length: 5 }, twice))
    expect(new Set(visits.map(({ location }) => location)).size).toBe(1)
    expect(answerOf(visits[0]!)).toHaveProperty('code')
    expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)
  })

  test('that is too old, too', async () => {
    const person = await signIn.createPerson()
    const { page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email })
    await signIn.sql(`UPDATE proofs SET expires_at = now() WHERE verified_at IS NULL`)
    const over = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
    expect(headingOf(over)).toBe('Sign in')
    expect(summaryOf(over)).toBe('This code no longer works. Ask for a new one.')
  })

  test('is verified by no link: who follows one to the page, with the code in it, changes nothing', async () => {
    const person = await signIn.createPerson()
    const { browser, page, submit } = await open()
    const check = await submit(page, { choice: 'code', identifier: person.email })
    const code = await signIn.lastCode(person.email)
    const values = { ...check.forms.find(({ names }) => names.includes('code'))!.fields, choice: 'verify', code }
    // A scanner of mails has no cookies; the person's own browser has.
    expect((await signIn.browser().get(`${check.url}?${new URLSearchParams(values)}`)).status).toBe(400)
    const followed = await browser.get(`${check.url}?${new URLSearchParams(values)}`)
    expect([followed.status, headingOf(followed), followed.location]).toEqual([200, 'Check your email', undefined])
    const [proof] = await signIn.sql(
      `SELECT tries, verified_at FROM proofs WHERE kind = 'email_code' AND interaction_id = $1`,
      [/[0-9a-z]{21}$/.exec(check.url)![0]],
    )
    expect(proof).toEqual({ tries: 0, verified_at: null })
    expect(answerOf(await submit(followed, { choice: 'verify', code }))).toHaveProperty('code')
  })

  test('of one browser is good in no other', async () => {
    const person = await signIn.createPerson()
    const [mine, theirs] = [await open(), await open()]
    await mine.submit(mine.page, { choice: 'code', identifier: person.email })
    const code = await signIn.lastCode(person.email)
    const check = await theirs.submit(theirs.page, { choice: 'code', identifier: 'nobody-else@example.test' })
    const refused = await theirs.submit(check, { choice: 'verify', code })
    expect(refused.status).toBe(400)
    expect(refused.location).toBeUndefined()
  })
})

test('a passkey is asked for where it is enabled, and what is none is refused', async () => {
  signIn.settings = experienceWith({ passkeySignIn: { enabled: true } })
  const { browser, page, submit } = await open()
  const form = page.forms.find(({ names }) => names.includes('credential'))!
  expect(form.fields).toMatchObject({ choice: 'passkey', proofId: expect.any(String), credential: '' })
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  const script = /<script src="([^"]*)"/.exec(page.text)![1]!
  const asset = await browser.send(script)
  expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  for (const credential of ['', '{', 'null', '{"id":"x"}']) {
    const refused = await submit(page, { choice: 'passkey', proofId: form.fields['proofId']!, credential })
    expect(refused.status).toBe(400)
    expect(summaryOf(refused)).toContain('No passkey was accepted.')
  }
  signIn.settings = experienceWith({})
  expect((await browser.get(page.url)).text).not.toContain('<script')
})

test('wrong codes from one address are refused after a while, whomever they are for', async () => {
  const headers = { 'x-test-address': '198.51.100.99' }
  await signIn.sql('DELETE FROM sign_in_failures')
  const person = await signIn.createPerson()
  const { page, submit } = await open()
  const check = await submit(page, { choice: 'code', identifier: person.email }, headers)
  // As many as an address may fail, by all that verifies.
  const wrong = await submit(check, { choice: 'verify', code: 'xxxxxx' }, headers)
  expect(wrong.status).toBe(400)
  await signIn.sql('UPDATE sign_in_failures SET count = 101')
  const refused = await submit(wrong, { choice: 'verify', code: await signIn.lastCode(person.email) }, headers)
  expect(refused.status).toBe(429)
  expect(summaryOf(refused)).toContain('Too many requests')
})
