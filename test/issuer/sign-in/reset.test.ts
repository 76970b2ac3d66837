import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
})
afterAll(() => signIn?.close())
beforeEach(() => {
  signIn.settings = experienceWith({})
})

const problemsOf = ({ text }: Visit) =>
  [...text.matchAll(/<p class="message" id="[^"]*">([\s\S]*?)<\/p>/g)].map(([, message]) => message)

const open = async (request = {}) => {
  const browser = signIn.browser()
  const page = await signIn.authorize(browser, client, request)
  const submit = (from: Visit, values: Record<string, string>) => browser.submit(from, values, { with: 'choice' })
  return { browser, page, submit }
}

const verified = async () => {
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET email_verified_at = now() WHERE id = $1', [person.id])
  return person
}

test('a code leads to another password, and that to signing in: nobody is signed in by a code alone', async () => {
  const person = await verified()
  const elsewhere = signIn.browser()
  await signIn.signIn(elsewhere, client, person)
  const { browser, page, submit } = await open()
  const form = await submit(page, { choice: 'reset' })
  expect(headingOf(form)).toBe('Reset your password')
  const check = await submit(form, { choice: 'code', address: person.email })
  expect(headingOf(check)).toBe('Check your email')
  const choose = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
  expect(headingOf(choose)).toBe('Choose a new password')
  expect([...browser.cookies.keys()]).toEqual(['surrogate_browser'])
  const same = await submit(choose, { choice: 'details', password: person.password })
  expect(problemsOf(same)).toEqual(['This is the password that you have. Choose another one.'])
  const done = await submit(same, { choice: 'details', password: 'another good password' })
  expect(headingOf(done)).toBe('Sign in')
  expect(done.text).toContain('Your password was changed. Sign in with the new one.')
  expect([...browser.cookies.keys()]).toEqual(['surrogate_browser'])
  // The session that there was has ended.
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1 AND ended_at IS NULL', [person.id])).toEqual([])

  const old = await browser.submit(done, { identifier: person.email, password: person.password })
  expect(old.status).toBe(400)
  expect(old.text).not.toContain('Your password was changed')
  const back = await browser.submit(old, { identifier: person.email, password: 'another good password' })
  expect(answerOf(back)).toHaveProperty('code')
  const [event] = await signIn.events('PostResetPassword')
  expect(event).toBeDefined()
})

test('a browser that was known is known no more after it: whoever used it knew the old password', async () => {
  const person = await verified()
  const own = signIn.browser()
  await signIn.signIn(own, client, person)
  await signIn.signIn(own, client, person, { prompts: ['login'] })
  const noticed = async () =>
    (await signIn.messages()).filter(({ type, to }) => type === 'NewDevice' && to === person.email).length
  expect(await noticed()).toBe(1)
  const { page, submit } = await open({ firstScreen: 'reset_password' })
  const check = await submit(page, { choice: 'code', address: person.email })
  const choose = await submit(check, { choice: 'verify', code: await signIn.lastCode(person.email) })
  await submit(choose, { choice: 'details', password: 'another good password' })
  await signIn.signIn(own, client, { ...person, password: 'another good password' })
  expect(await noticed()).toBe(2)
})

test('T 129: a forged host reaches neither the mail nor the pages', async () => {
  const person = await verified()
  const browser = signIn.browser()
  const forged = { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
  const send = (url: string, body?: URLSearchParams) =>
    new Promise<{ status: number; location: string | undefined; text: string }>((resolve, reject) => {
      const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const headers = {
        ...forged,
        cookie,
        origin: signIn.url,
        ...(body && { 'content-type': 'application/x-www-form-urlencoded' }),
      }
      const asked = httpRequest(url, { method: body ? 'POST' : 'GET', headers }, async (answer) => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        const { statusCode: status = 0, headers } = answer
        resolve({ status, location: headers.location, text: Buffer.concat(chunks).toString() })
      })
      asked.on('error', reject).end(body?.toString())
    })
  const page = await signIn.authorize(browser, client, { firstScreen: 'reset_password' })
  const form = page.forms.find(({ names }) => names.includes('address'))!
  const sent = await send(page.url, new URLSearchParams({ ...form.fields, choice: 'code', address: person.email }))
  expect([sent.status, sent.location]).toEqual([303, new URL(page.url).pathname])
  const shown = await send(page.url)
  expect(shown.text).toContain('Check your email')
  expect(shown.text).not.toContain('evil.example')
  const mails = (await signIn.messages()).filter(({ to }) => to === person.email)
  expect(mails.length).toBeGreaterThan(0)
  expect(JSON.stringify(mails)).not.toContain('evil.example')
})

test('the message of success comes of the interaction alone: no address can bring it about', async () => {
  const { browser, page } = await open()
  for (const query of ['?notice=password_changed', '?reset=1'])
    expect((await browser.get(`${page.url}${query}`)).text).not.toContain('Your password was changed')
})

test('an address that is nobody’s gets the same page, and the same limit', async () => {
  const person = await verified()
  const seen = async (address: string) => {
    const { page, submit } = await open({ firstScreen: 'reset_password' })
    expect(headingOf(page)).toBe('Reset your password')
    const visits: { status: number; text: string }[] = []
    let at = page
    for (let count = 0; count < 6; count++) {
      const { status, text, ...rest } = await submit(at, { choice: 'code', address })
      visits.push({ status, text: text.replaceAll(address, '').replace(/(name="csrf" value|action)="[^"]*"/g, '') })
      const visit = { status, text, ...rest }
      at = status === 200 ? await submit(visit, { choice: 'other' }) : visit
    }
    return visits
  }
  const [known, unknown] = [await seen(person.email), await seen('nobody@example.test')]
  expect(known).toEqual(unknown)
  expect(known.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429])
  expect((await signIn.messages()).filter(({ to }) => to === 'nobody@example.test')).toEqual([])
})

test('it can be left, and is offered only where something sends codes', async () => {
  const { page, submit } = await open()
  const form = await submit(page, { choice: 'reset' })
  const back = await submit(form, { choice: 'back' })
  expect(headingOf(back)).toBe('Sign in')
  signIn.settings = experienceWith({ forgotPasswordMethods: [] })
  const without = await open()
  expect(without.page.text).not.toContain('value="reset"')
  expect(headingOf(await without.submit(without.page, { choice: 'reset' }))).toBe('Sign in')

  const silent = await startTestSignIn()
  try {
    const shop = await silent.createClient()
    const there = silent.browser()
    expect((await silent.authorize(there, shop)).text).not.toContain('value="reset"')
    const asked = await silent.authorize(there, shop, { firstScreen: 'reset_password' })
    expect(headingOf(asked)).toBe('Passwords cannot be reset here')
    expect(headingOf(await there.submit(asked, { choice: 'back' }))).toBe('Sign in')
  } finally {
    await silent.close()
  }
})

test('a password that is too old is replaced at once, and then leads on', async () => {
  const person = await signIn.createPerson()
  signIn.settings = experienceWith({ passwordExpiration: { enabled: true, validPeriodDays: 30 } })
  await signIn.sql(
    `UPDATE users SET password_changed_at = now() - interval '31 days', created_at = now() - interval '31 days' WHERE id = $1`,
    [person.id],
  )
  const { page, submit } = await open()
  const choose = await submit(page, { choice: 'sign_in', identifier: person.username, password: person.password })
  expect(headingOf(choose)).toBe('Choose a new password')
  expect(choose.text).toContain('Your password is too old.')
  const back = await submit(choose, { choice: 'details', password: 'another good password' })
  expect(answerOf(back)).toHaveProperty('code')
})
