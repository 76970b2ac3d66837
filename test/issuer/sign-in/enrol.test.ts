import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { factorsOf, totpCode } from '../../support/factors.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** Adding a second factor while signing in, over its pages. */

let signIn: TestSignIn
let client: TestClient
let give: Awaited<ReturnType<typeof factorsOf>>
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
  give = await factorsOf(signIn)
})
afterAll(() => signIn?.close())

const withFactors = (factors: readonly string[], policy = 'Mandatory') => {
  signIn.settings = experienceWith({ mfa: { factors, policy } })
}
beforeEach(() => withFactors(['Totp']))

const alert = ({ text }: Visit) => /role="alert"[\s\S]*?<p>(?:<a[^>]*>)?([^<]*)/.exec(text)?.[1]
const code = { code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: expect.any(String) }
const secretOf = ({ text }: Visit) => /class="secret"><code>([A-Z2-7 ]+)</.exec(text)?.[1]?.replaceAll(' ', '') ?? ''
const codesOf = ({ text }: Visit) => [...text.matchAll(/<li><code>([^<]+)</g)].map(([, one]) => one!)

type Browsing = ReturnType<TestSignIn['browser']>
const confirm = (browser: Browsing, page: Visit, typed: string) =>
  browser.submit(page, { code: typed, choice: 'verify' }, { with: 'code' })

const atEnrolment = async (options?: { email?: string }) => {
  const person = await signIn.createPerson(options)
  const browser = signIn.browser()
  return { person, browser, page: await signIn.signIn(browser, client, person) }
}

const factorsHeld = (userId: string) =>
  signIn.sql(
    `SELECT (SELECT count(*) FROM totp_secrets WHERE user_id = $1)::int AS totp,
       (SELECT count(*) FROM backup_codes WHERE user_id = $1)::int AS codes`,
    [userId],
  )

test('an authenticator app is set up, and is theirs only when the sign-in is complete', async () => {
  withFactors(['Totp', 'BackupCode'])
  const { person, browser, page } = await atEnrolment()
  expect(headingOf(page)).toBe('Set up your authenticator app')
  const secret = secretOf(page)
  expect(secret).toMatch(/^[A-Z2-7]{32}$/)
  expect(page.text).toContain(`otpauth://totp/127.0.0.1:${encodeURIComponent(person.email)}?secret=${secret}`)
  // Loaded again it is the same: an app that scanned it stays right.
  expect(secretOf(await browser.get(page.url))).toBe(secret)
  const backup = await confirm(browser, page, totpCode(secret))
  expect(headingOf(backup)).toBe('Keep your backup codes')
  expect(await factorsHeld(person.id)).toEqual([{ totp: 0, codes: 0 }])
  const answer = await browser.submit(backup, { choice: 'kept' })
  expect(answerOf(answer)).toEqual(code)
  expect(await factorsHeld(person.id)).toEqual([{ totp: 1, codes: 10 }])
  expect(await signIn.events('User.Data.Updated')).toHaveLength(1)
  // From now on it is asked for, and the codes work.
  const next = await signIn.signIn(signIn.browser(), client, person)
  expect(next.text).toContain('Code from your authenticator app')
})

test('backup codes are shown once: loaded again they are others, and those of before are void', async () => {
  withFactors(['Totp', 'BackupCode'])
  const { person, browser, page } = await atEnrolment()
  const first = await confirm(browser, page, totpCode(secretOf(page)))
  const second = await browser.get(first.url)
  expect(codesOf(first)).toHaveLength(10)
  expect(codesOf(second).filter((one) => codesOf(first).includes(one))).toEqual([])
  const stale = await browser.submit(first, { choice: 'kept' })
  expect([stale.status, alert(stale)]).toEqual([
    400,
    'These codes are new: those that you saw before are void. Please keep these.',
  ])
  expect(answerOf(await browser.submit(stale, { choice: 'kept' }))).toEqual(code)
  const use = async (typed: string) => {
    const other = signIn.browser()
    const asked = await signIn.signIn(other, client, person)
    const chosen = await other.submit(asked, { factor: 'backup_code' }, { with: 'factor' })
    return confirm(other, chosen, typed)
  }
  expect((await use(codesOf(first)[0]!)).status).toBe(400)
  expect(answerOf(await use(codesOf(stale)[0]!))).toEqual(code)
})

test('a wrong code binds nothing; after five there is another secret', async () => {
  const { person, browser, page } = await atEnrolment()
  const secret = secretOf(page)
  expect(alert(await confirm(browser, page, ''))).toBe('Enter the code')
  const wrong = totpCode(secret, 500)
  let last = page
  for (let tries = 0; tries < 6; tries++) last = await confirm(browser, page, wrong)
  expect(alert(last)).toBe('Too many codes were wrong. Please scan the new picture.')
  expect(secretOf(last)).not.toBe(secret)
  expect((await confirm(browser, page, totpCode(secret))).status).toBe(400)
  expect(await factorsHeld(person.id)).toEqual([{ totp: 0, codes: 0 }])
  expect(answerOf(await confirm(browser, last, totpCode(secretOf(last))))).toEqual(code)
})

test('the step of the code that confirmed an app is used up', async () => {
  const { person, browser, page } = await atEnrolment()
  const secret = secretOf(page)
  const typed = totpCode(secret)
  await confirm(browser, page, typed)
  const other = signIn.browser()
  const next = await signIn.signIn(other, client, person)
  expect((await confirm(other, next, typed)).status).toBe(400)
})

test('nobody gets a factor before the ones there are have been proven', async () => {
  const owner = await signIn.createPerson()
  const secret = await give.totp(owner.id)
  const newcomer = await signIn.createPerson()
  const browser = signIn.browser()
  // In one interaction: the page of the second step, then the page of somebody else who adds a factor.
  const asked = await signIn.signIn(browser, client, owner)
  const start = await browser.submit(asked, { choice: 'another' })
  const adding = await browser.submit(start, { identifier: newcomer.username, password: newcomer.password })
  expect(headingOf(adding)).toBe('Set up your authenticator app')
  // Ten minutes later the owner sits there again.
  await signIn.sql("UPDATE proofs SET expires_at = now() WHERE user_id = $1 AND purpose = 'sign_in'", [newcomer.id])
  const startAgain = await browser.get(adding.url)
  const asksOwner = await browser.submit(startAgain, { identifier: owner.username, password: owner.password })
  expect(asksOwner.text).toContain('Code from your authenticator app')
  // The form of before shows what is due, and binds nothing.
  const stale = await confirm(browser, adding, totpCode(secretOf(adding)))
  expect(stale.text).toContain('Code from your authenticator app')
  expect(
    await signIn.sql("SELECT FROM proofs WHERE purpose = 'bind' AND verified_at IS NOT NULL AND user_id = ANY ($1)", [
      [owner.id, newcomer.id],
    ]),
  ).toEqual([])
  expect(answerOf(await confirm(browser, stale, totpCode(secret)))).toEqual(code)
  expect(await factorsHeld(newcomer.id)).toEqual([{ totp: 0, codes: 0 }])
})

test('who is only asked may go on without, and is not asked again', async () => {
  withFactors(['Totp', 'EmailVerificationCode'], 'PromptAtSignInAndSignUp')
  const { person, browser } = await atEnrolment()
  await signIn.sql('UPDATE users SET email_verified_at = NULL WHERE id = $1', [person.id])
  const page = await signIn.signIn(browser, client, person)
  expect(headingOf(page)).toBe('Protect your account')
  const chosen = await browser.submit(page, { factor: 'totp' }, { with: 'factor' })
  const list = await browser.submit(chosen, { choice: 'back' }, { with: 'choice' })
  expect(list.status).toBeLessThan(401)
  const again = await browser.get(page.url)
  const answer = await browser.submit(
    { ...again, forms: again.forms.filter(({ names }) => names.includes('choice')).slice(-1) },
    { choice: 'skip' },
  )
  expect(answerOf(answer)).toEqual(code)
  const next = await signIn.signIn(signIn.browser(), client, person)
  expect(answerOf(next)).toEqual(code)
})

test('who has to have one cannot skip it, only cancel', async () => {
  const { person, browser, page } = await atEnrolment()
  expect(page.text).not.toContain('Not now')
  const forced = await browser.submit(page, { choice: 'skip' })
  expect(forced.status).toBe(400)
  const cancelled = await browser.submit(page, { choice: 'cancel' }, { with: 'choice' })
  expect(answerOf(cancelled)).toMatchObject({ error: 'access_denied' })
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
})

test('an address is proven by its code before it is a factor', async () => {
  withFactors(['EmailVerificationCode'])
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET primary_email = NULL, email_verified_at = NULL WHERE id = $1', [person.id])
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  expect(headingOf(page)).toBe('Add your email address')
  expect(alert(await browser.submit(page, { address: '', choice: 'send' }))).toBe('Enter where we should send the code')
  expect(alert(await browser.submit(page, { address: 'not an address', choice: 'send' }))).toBe(
    'We cannot send a code there. Check what you entered.',
  )
  const address = `${person.id}.new@example.test`
  const sent = await browser.submit(page, { address, choice: 'send' })
  expect(sent.text).toContain(address)
  const other = await browser.submit(sent, { choice: 'address' })
  expect(other.text).toContain('name="address"')
  const again = await browser.submit(other, { address, choice: 'send' })
  expect((await confirm(browser, again, '000000')).status).toBe(400)
  expect(answerOf(await confirm(browser, again, await signIn.lastCode(address)))).toEqual(code)
  expect(
    await signIn.sql('SELECT primary_email, email_verified_at IS NOT NULL AS verified FROM users WHERE id = $1', [
      person.id,
    ]),
  ).toEqual([{ primary_email: address, verified: true }])
})

test('an address that was never proven is replaced by the factor, and is told so', async () => {
  withFactors(['EmailVerificationCode'])
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET email_verified_at = NULL WHERE id = $1', [person.id])
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  const address = `${person.id}.new@example.test`
  const sent = await browser.submit(page, { address, choice: 'send' })
  expect(answerOf(await confirm(browser, sent, await signIn.lastCode(address)))).toEqual(code)
  const told = (await signIn.messages()).filter(({ type }) => type === 'AddressChanged')
  expect(told.map(({ to }) => to)).toEqual([person.email])
})

test("somebody else's address is told only to whoever reads its mail, and ends in no circle", async () => {
  withFactors(['EmailVerificationCode'])
  const owner = await signIn.createPerson()
  const person = await signIn.createPerson()
  await signIn.sql('UPDATE users SET primary_email = NULL, email_verified_at = NULL WHERE id = $1', [person.id])
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  const sent = await browser.submit(page, { address: owner.email, choice: 'send' })
  expect(sent.text).toContain('one-time-code')
  const taken = await confirm(browser, sent, await signIn.lastCode(owner.email))
  expect(taken.text).toContain('This belongs to another account. Please enter another one.')
})
