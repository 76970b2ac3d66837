import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { headingOf, type Visit } from '../../support/browser.ts'
import { factorsOf, totpCode } from '../../support/factors.ts'
import { answerOf, experienceWith, startTestSignIn, type TestClient, type TestSignIn } from '../../support/sign-in.ts'

/** The second step of signing in, over its pages. */

let signIn: TestSignIn
let client: TestClient
let give: Awaited<ReturnType<typeof factorsOf>>
beforeAll(async () => {
  signIn = await startTestSignIn({ sends: 'outbox' })
  client = await signIn.createClient()
  give = await factorsOf(signIn)
})
afterAll(() => signIn?.close())

const all = ['Totp', 'WebAuthn', 'BackupCode', 'EmailVerificationCode', 'PhoneVerificationCode']
const withFactors = (factors: readonly string[] = all, policy = 'NoPrompt') => {
  signIn.settings = experienceWith({ mfa: { factors, policy } })
}
beforeEach(() => withFactors())

const alert = ({ text }: Visit) => /role="alert"[\s\S]*?<p>(?:<a[^>]*>)?([^<]*)/.exec(text)?.[1]
const code = { code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: expect.any(String) }
const kindOf = (page: Visit) => page.forms.find(({ fields }) => fields['kind'])?.fields['kind']
const verify = (browser: ReturnType<TestSignIn['browser']>, page: Visit, typed: string) =>
  browser.submit(page, { code: typed, choice: 'verify' }, { with: 'code' })

/** Somebody with an authenticator app, at its page. */
const atTotp = async (request?: Parameters<TestSignIn['signIn']>[3]) => {
  const person = await signIn.createPerson()
  const secret = await give.totp(person.id)
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person, request)
  return { person, secret, browser, page }
}

const acrOf = async (userId: string) =>
  (
    await signIn.sql<{ acr: string; amr: string[] }>(
      'SELECT acr, amr FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1',
      [userId],
    )
  )[0]

test('a password alone opens nothing that a second factor protects', async () => {
  const { person, secret, browser, page } = await atTotp()
  expect(page.status).toBe(200)
  expect(headingOf(page)).toBe('Confirm that it is you')
  expect(kindOf(page)).toBe('totp')
  expect(browser.cookies.has('surrogate_session')).toBe(false)
  // To begin the same again, or another request, leads to the same page.
  expect(kindOf(await browser.get(page.url))).toBe('totp')
  const answer = await verify(browser, page, totpCode(secret))
  expect(answerOf(answer)).toEqual(code)
  const session = await acrOf(person.id)
  expect(session).toMatchObject({ acr: 'urn:surrogate:acr:mfa' })
  expect(session!.amr.toSorted()).toEqual(['mfa', 'otp', 'pwd'])
})

test('"keep me signed in" is not forgotten on the way', async () => {
  const { person, secret, browser } = await atTotp()
  const first = await signIn.authorize(browser, client)
  const page = await browser.submit(first, { identifier: person.username, password: person.password, keep: 'yes' })
  await verify(browser, page, totpCode(secret))
  expect(browser.setCookies.findLast((line) => line.startsWith('surrogate_session'))).toMatch(/max-age/i)
})

test('nobody learns which second factor an account has before the password is right', async () => {
  const { person } = await atTotp()
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, { ...person, password: 'not the password' })
  expect(page.status).toBe(400)
  expect(page.text).not.toMatch(/authenticator|•••|one-time-code/)
  const right = await signIn.signIn(browser, client, person)
  expect(right.text).toContain('Code from your authenticator app')
})

test('addresses are masked, and stand only after the first factor', async () => {
  withFactors(['EmailVerificationCode'])
  const person = await signIn.createPerson({ email: 'ada.of.london@example.test' })
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  expect(page.text).toContain('a•••@example.test')
  const sent = await browser.submit(page, { choice: 'send' }, { with: 'kind' })
  expect(sent.text).toContain('a•••@example.test')
  // Nor does the rest of the page tell what was not entered.
  expect(sent.text).not.toContain('ada.of.london')
  expect(sent.text).not.toContain('Lovelace')
  expect(sent.text).toContain(person.username)
})

test('a code of an authenticator app is good once, also in parallel', async () => {
  const { person, secret, browser, page } = await atTotp()
  const typed = totpCode(secret)
  const other = signIn.browser()
  const second = await signIn.signIn(other, client, person)
  const both = await Promise.all([verify(browser, page, typed), verify(other, second, typed)])
  expect(both.filter(({ location }) => location?.startsWith(client.redirectUri))).toHaveLength(1)
  const refused = both.find(({ status }) => status === 400)!
  expect(alert(refused)).toBe('This code is wrong, or no longer good. Check it and try again.')
})

test('the clock of an app may be one step off, and not two; a step before the last one is over', async () => {
  const { person, secret, browser, page } = await atTotp()
  expect((await verify(browser, page, totpCode(secret, 2))).status).toBe(400)
  expect((await verify(browser, page, totpCode(secret, -2))).status).toBe(400)
  expect(answerOf(await verify(browser, page, totpCode(secret, 1)))).toEqual(code)
  const again = signIn.browser()
  const second = await signIn.signIn(again, client, person)
  expect((await verify(again, second, totpCode(secret))).status).toBe(400)
})

test("somebody else's code is a wrong one of the account that is signing in", async () => {
  const { person, browser, page } = await atTotp()
  const other = await signIn.createPerson()
  const otherSecret = await give.totp(other.id)
  const answer = await verify(browser, page, totpCode(otherSecret))
  expect(answer.status).toBe(400)
  const fresh = signIn.browser()
  // The other one's code is not used up by it, and nothing is counted there.
  const page2 = await signIn.signIn(fresh, client, other)
  expect(answerOf(await verify(fresh, page2, totpCode(otherSecret)))).toEqual(code)
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(0)
})

test('after five wrong codes the sign-in ends, and says how to start again', async () => {
  const { person, secret, browser, page } = await atTotp()
  const wrong = totpCode(secret, 500)
  let last = page
  for (let tries = 0; tries < 5; tries++) {
    last = await verify(browser, page, wrong)
    expect(last.status).toBe(400)
    expect(alert(last)).toBe('This code is wrong, or no longer good. Check it and try again.')
  }
  const ended = await verify(browser, last, totpCode(secret))
  expect(ended.status).toBe(403)
  expect(headingOf(ended)).toBe('This sign-in has ended')
  expect(ended.text).toContain('Start again')
  expect((await browser.get(page.url)).status).toBe(400)
  // The next sign-in finds the second factor locked: of a backup code too.
  const [backup] = await give.backupCodes(person.id)
  const fresh = signIn.browser()
  let next = await signIn.signIn(fresh, client, person)
  next = await fresh.submit(next, { factor: 'backup_code' }, { with: 'factor' })
  expect(kindOf(next)).toBe('backup_code')
  expect((await verify(fresh, next, backup!)).status).toBe(403)
  expect(await signIn.events('Identifier.Lockout')).toContainEqual(
    expect.objectContaining({ type: 'userId', value: person.id }),
  )
})

test('a backup code works once, in any case and without its dash; four at once are one', async () => {
  withFactors(['Totp', 'BackupCode'])
  const person = await signIn.createPerson()
  await give.totp(person.id)
  const [first] = await give.backupCodes(person.id)
  const visits = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const browser = signIn.browser()
      const page = await signIn.signIn(browser, client, person)
      return { browser, page: await browser.submit(page, { factor: 'backup_code' }, { with: 'factor' }) }
    }),
  )
  expect(visits.map(({ page }) => kindOf(page))).toEqual(['backup_code', 'backup_code', 'backup_code', 'backup_code'])
  const typed = first!.toLowerCase().replace('-', ' ')
  const answers = await Promise.all(visits.map(({ browser, page }) => verify(browser, page, typed)))
  expect(answers.filter(({ location }) => location?.startsWith(client.redirectUri))).toHaveLength(1)
})

test('a backup code of a set that was replaced is void', async () => {
  withFactors(['Totp', 'BackupCode'])
  const person = await signIn.createPerson()
  await give.totp(person.id)
  const [old] = await give.backupCodes(person.id)
  const [fresh] = await give.backupCodes(person.id)
  const browser = signIn.browser()
  const first = await signIn.signIn(browser, client, person)
  const page = await browser.submit(first, { factor: 'backup_code' }, { with: 'factor' })
  expect((await verify(browser, page, old!)).status).toBe(400)
  expect(answerOf(await verify(browser, page, fresh!))).toEqual(code)
})

test('another way is a click away, and stays chosen when the page is loaded again', async () => {
  const { person, browser, page } = await atTotp()
  await give.verifiedEmail(person.id)
  const [backup] = await give.backupCodes(person.id)
  const now = await browser.get(page.url)
  const other = await browser.submit(now, { factor: 'backup_code' }, { with: 'factor' })
  expect(kindOf(other)).toBe('backup_code')
  expect(kindOf(await browser.get(other.url))).toBe('backup_code')
  expect(answerOf(await verify(browser, other, backup!))).toEqual(code)
})

test('a code by mail proves it, survives a reload, and a newer one voids it', async () => {
  withFactors(['EmailVerificationCode'])
  const person = await signIn.createPerson()
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  const sent = await browser.submit(page, { choice: 'send' }, { with: 'kind' })
  expect(sent.text).toContain('one-time-code')
  expect((await browser.get(sent.url)).text).toContain('one-time-code')
  const old = await signIn.lastCode(person.email)
  // Too soon: nobody floods a mailbox from here.
  expect((await browser.submit(sent, { choice: 'send' }, { with: 'kind' })).status).toBe(429)
  await signIn.sql("UPDATE proofs SET created_at = created_at - interval '61 s' WHERE kind = 'email_code'")
  const again = await browser.submit(sent, { choice: 'send' }, { with: 'kind' })
  const fresh = await signIn.lastCode(person.email)
  if (fresh !== old) expect((await verify(browser, again, old)).status).toBe(400)
  expect(answerOf(await verify(browser, again, ` ${fresh.slice(0, 3)} ${fresh.slice(3)} `))).toEqual(code)
  expect(await acrOf(person.id)).toMatchObject({ acr: 'urn:surrogate:acr:mfa' })
})

test('too many wrong codes by mail end the sign-in as those of an app do', async () => {
  withFactors(['EmailVerificationCode'])
  const person = await signIn.createPerson()
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const page = await signIn.signIn(browser, client, person)
  const sent = await browser.submit(page, { choice: 'send' }, { with: 'kind' })
  const right = await signIn.lastCode(person.email)
  const wrong = right === '000000' ? '000001' : '000000'
  for (let tries = 0; tries < 5; tries++) expect((await verify(browser, sent, wrong)).status).toBe(400)
  // The sixth does not even reach the code.
  await browser.submit(await browser.get(page.url), { choice: 'send' }, { with: 'kind' })
  const ended = await verify(browser, sent, right)
  expect([ended.status, headingOf(ended)]).toEqual([403, 'This sign-in has ended'])
})

test('a mailbox that signed in is no second factor to itself', async () => {
  signIn.settings = experienceWith({
    mfa: { factors: ['EmailVerificationCode', 'Totp'], policy: 'NoPrompt' },
    signIn: {
      methods: [{ identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true }],
    },
  })
  const person = await signIn.createPerson()
  await give.verifiedEmail(person.id)
  const secret = await give.totp(person.id)
  const browser = signIn.browser()
  const first = await signIn.authorize(browser, client)
  const sent = await browser.submit(first, { identifier: person.email, choice: 'code' })
  const page = await verify(browser, sent, await signIn.lastCode(person.email))
  expect(kindOf(page)).toBe('totp')
  expect(page.text).not.toContain('Code by email')
  // Asked for all the same it is not given.
  const forced = await browser.submit(page, { kind: 'email_code', choice: 'send' }, { with: 'kind' })
  expect(forced.status).toBe(400)
  expect(answerOf(await verify(browser, page, totpCode(secret)))).toEqual(code)
})

test('a factor that the settings do not have is neither asked for nor taken', async () => {
  const person = await signIn.createPerson()
  const secret = await give.totp(person.id)
  const [backup] = await give.backupCodes(person.id)
  withFactors(['BackupCode', 'EmailVerificationCode'])
  const browser = signIn.browser()
  const first = await signIn.signIn(browser, client, person)
  expect(first.text).not.toContain('Authenticator')
  const page = await browser.submit(first, { factor: 'backup_code' }, { with: 'factor' })
  expect(
    (await browser.submit(page, { kind: 'totp', code: totpCode(secret), choice: 'verify' }, { with: 'code' })).status,
  ).toBe(400)
  expect(answerOf(await verify(browser, page, backup!))).toEqual(code)
})

test('"not you?" goes back to signing in, and the page of before proves nothing for the next one', async () => {
  const { secret, browser, page } = await atTotp()
  const start = await browser.submit(page, { choice: 'another' })
  expect(start.text).toContain('name="password"')
  const other = await signIn.createPerson()
  const otherSecret = await give.totp(other.id)
  const second = await browser.submit(start, { identifier: other.username, password: other.password })
  expect(kindOf(second)).toBe('totp')
  // A form about the first person shows the page of the second.
  const stale = await verify(browser, page, totpCode(secret))
  expect([stale.status, kindOf(stale)]).toEqual([200, 'totp'])
  expect(answerOf(await verify(browser, second, totpCode(otherSecret)))).toEqual(code)
})

test('cancelling tells the application, and signs nobody in', async () => {
  const { browser, page } = await atTotp()
  const answer = await browser.submit(page, { choice: 'cancel' }, { with: 'code' })
  expect(answerOf(answer)).toMatchObject({ error: 'access_denied' })
  expect(browser.cookies.has('surrogate_session')).toBe(false)
})

test('T 141: two tabs and two applications finish, one between the steps of the other', async () => {
  const person = await signIn.createPerson()
  const secret = await give.totp(person.id)
  const other = await signIn.createClient({ name: 'Other', redirectUris: ['https://other.example.test/cb'] })
  const browser = signIn.browser()
  const entered = { identifier: person.username, password: person.password }
  const [first, second, same] = [
    await signIn.authorize(browser, client),
    await signIn.authorize(browser, other),
    await signIn.authorize(browser, client),
  ]
  // One is at its second factor, one at the password, one is not begun.
  const [mine, theirs] = [await browser.submit(first, entered), await browser.submit(second, entered)]
  expect([kindOf(mine), kindOf(theirs)]).toEqual(['totp', 'totp'])
  expect(answerOf(await verify(browser, theirs, totpCode(secret)))).toEqual(code)
  // What was shown there counts for nothing here: this one still waits for its own.
  expect(kindOf(await browser.get(mine.url))).toBe('totp')
  expect((await verify(browser, mine, totpCode(secret))).status).toBe(400)
  expect(answerOf(await verify(browser, mine, totpCode(secret, 1)))).toEqual(code)
  // The one of the same application, loaded again, finds that somebody has signed in.
  expect(answerOf(await browser.get(same.url))).toEqual(code)
  const live = await signIn.sql('SELECT FROM sessions WHERE user_id = $1 AND ended_at IS NULL', [person.id])
  expect(live).toHaveLength(1)
})

test.each(['totp', 'backup_code'] as const)(
  'T 142: a second factor that is sent twenty times at once signs in once, and tells nobody that it is wrong (%s)',
  async (kind) => {
    const person = await signIn.createPerson()
    const secret = await give.totp(person.id)
    const [backup] = await give.backupCodes(person.id)
    const browser = signIn.browser()
    const asked = await signIn.signIn(browser, client, person)
    const page = kind === 'totp' ? asked : await browser.submit(asked, { factor: kind }, { with: 'factor' })
    const typed = kind === 'totp' ? totpCode(secret) : backup!
    const visits = await Promise.all(Array.from({ length: 20 }, () => verify(browser, page, typed)))
    expect(new Set(visits.map(({ location }) => location)).size).toBe(1)
    expect(answerOf(visits[0]!)).toEqual(code)
    expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)
    const told = (await signIn.events('PostSignIn')).filter(({ userId }) => userId === person.id)
    expect(told).toHaveLength(1)
  },
)

test('T 143: going back after the end tells that it is done, at either step, and signs nobody in again', async () => {
  const person = await signIn.createPerson()
  const secret = await give.totp(person.id)
  const browser = signIn.browser()
  const first = await signIn.authorize(browser, client)
  const page = await browser.submit(first, { identifier: person.username, password: person.password })
  expect(answerOf(await verify(browser, page, totpCode(secret)))).toEqual(code)
  await signIn.sql(`UPDATE interactions SET finished_at = now() - interval '11 seconds'`)
  for (const back of [await browser.get(first.url), await browser.get(page.url)]) {
    expect([back.status, headingOf(back)]).toEqual([200, 'You are already signed in'])
    expect(back.text).toContain('href="https://shop.example.test/"')
  }
  // The forms of before, sent from the history.
  const forms = [
    await browser.submit(first, { identifier: person.username, password: person.password }),
    await verify(browser, page, totpCode(secret, 1)),
  ]
  for (const sent of forms) {
    expect([sent.status, headingOf(sent), sent.location]).toEqual([403, 'You are already signed in', undefined])
  }
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)
})

test('T 48: a suspended person is told so only after the second factor', async () => {
  const { person, secret, browser, page } = await atTotp()
  await signIn.suspend(person.id)
  const wrong = await verify(browser, page, totpCode(secret, 500))
  expect([wrong.status, kindOf(wrong)]).toEqual([400, 'totp'])
  const again = await signIn.signIn(signIn.browser(), client, person)
  expect([again.status, kindOf(again)]).toEqual([200, 'totp'])
  const right = await verify(browser, wrong, totpCode(secret))
  expect([right.status, headingOf(right)]).toEqual([403, 'Your account is suspended'])
  expect(await signIn.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
})

test('a request for the strongest class is answered truthfully when only a code is there', async () => {
  const { person, secret, browser, page } = await atTotp({ acrValues: ['urn:surrogate:acr:phr'] })
  expect(answerOf(await verify(browser, page, totpCode(secret)))).toEqual(code)
  expect(await acrOf(person.id)).toMatchObject({ acr: 'urn:surrogate:acr:mfa' })
})

test('prompt=login asks for both factors anew, in the tab that asks', async () => {
  const { person, secret, browser, page } = await atTotp()
  await verify(browser, page, totpCode(secret, -1))
  const asking = await signIn.authorize(browser, client, { prompts: ['login'] })
  expect(asking.text).toContain('name="password"')
  // Another tab that signs in meanwhile does nothing for this one.
  const otherTab = await signIn.signIn(browser, client, person, { prompts: ['login'] })
  expect(answerOf(await verify(browser, otherTab, totpCode(secret)))).toEqual(code)
  expect((await browser.get(asking.url)).text).toContain('name="password"')
  const mine = await browser.submit(asking, { identifier: person.username, password: person.password })
  expect(kindOf(mine)).toBe('totp')
  expect(answerOf(await verify(browser, mine, totpCode(secret, 1)))).toEqual(code)
})

test('a lost password that was set anew leads to both factors, and takes none away', async () => {
  const { person, secret } = await atTotp()
  await give.verifiedEmail(person.id)
  const browser = signIn.browser()
  const first = await signIn.authorize(browser, client)
  const reset = await browser.submit(first, { choice: 'reset' })
  const sent = await browser.submit(reset, { address: person.email, choice: 'code' })
  const fresh = await browser.submit(sent, { code: await signIn.lastCode(person.email), choice: 'verify' })
  const password = 'another right password of hers'
  const start = await browser.submit(fresh, { password, choice: 'details' })
  expect(browser.cookies.has('surrogate_session')).toBe(false)
  expect(start.text).toContain('name="identifier"')
  const page = await browser.submit(start, { identifier: person.username, password, choice: 'sign_in' })
  expect(kindOf(page)).toBe('totp')
  expect(answerOf(await verify(browser, page, totpCode(secret)))).toEqual(code)
})

test('pages of the second step are not kept by browsers, and hold no whole address', async () => {
  const { page } = await atTotp()
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'none'")
})
