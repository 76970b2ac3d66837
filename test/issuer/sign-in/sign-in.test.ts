import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Browser, Visit } from '../../support/browser.ts'
import {
  answerOf,
  redirectUri,
  startTestSignIn,
  type TestClient,
  type TestPerson,
  type TestSignIn,
} from '../../support/sign-in.ts'

let signIn: TestSignIn
let client: TestClient
let ada: TestPerson
let bob: TestPerson

beforeAll(async () => {
  signIn = await startTestSignIn({ instances: 2 })
  client = await signIn.createClient()
  ada = await signIn.createPerson({ username: 'ada', email: 'Ada@Example.test', phone: '491701234567' })
  bob = await signIn.createPerson({ username: 'bob' })
})
afterAll(() => signIn.close())

const credentials = (person: TestPerson) => ({
  identifier: person.username,
  password: person.password,
  choice: 'sign_in',
})
const sessionsOf = (person: TestPerson) =>
  signIn.sql<{ id: string; ended_at: Date | null; end_reason: string | null; is_persistent: boolean }>(
    'SELECT id, ended_at, end_reason, is_persistent FROM sessions WHERE user_id = $1 ORDER BY created_at',
    [person.id],
  )
const idOf = ({ url }: Visit) => url.split('/').at(-1)!
const code = { code: expect.stringMatching(/^[\w-]{43}$/) }
const signedInBrowser = async (person: TestPerson): Promise<Browser> => {
  const browser = signIn.browser()
  expect(answerOf(await signIn.signIn(browser, client, person))).toMatchObject(code)
  return browser
}

describe('signing in', () => {
  test('with a password leads back with a code; the next client gets its own without a page', async () => {
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client)
    expect(page).toMatchObject({ status: 200, url: expect.stringMatching(/\/sign-in\/[0-9a-z]{21}$/) })
    const back = await browser.submit(page, credentials(ada))
    expect(back.status).toBe(303)
    expect(back.location?.startsWith(`${redirectUri}?`)).toBe(true)
    expect(answerOf(back)).toEqual({ ...code, state: 'the state', iss: signIn.issuer })
    expect(await signIn.sql('SELECT user_id, amr, acr, is_persistent FROM sessions')).toEqual([
      { user_id: ada.id, amr: ['pwd'], acr: 'urn:surrogate:acr:basic', is_persistent: false },
    ])
    const other = await signIn.createClient({ name: 'Other' })
    expect(answerOf(await signIn.authorize(browser, other))).toMatchObject(code)
    expect(await signIn.sql('SELECT count(*)::integer AS made FROM interactions')).toEqual([{ made: 1 }])
    expect(await signIn.sql('SELECT client_id, is_offline FROM authorizations ORDER BY created_at')).toEqual([
      { client_id: client.id, is_offline: false },
      { client_id: other.id, is_offline: false },
    ])
  })

  test('by address or telephone number, however they are written', async () => {
    const spellings = [
      'ada@example.test',
      ' ADA@EXAMPLE.TEST ',
      '+49 170 1234567',
      '0049 (0)170/123.45.67',
      'ａｄａ',
      'ADA',
    ]
    for (const identifier of spellings) {
      const browser = signIn.browser()
      const page = await signIn.authorize(browser, client)
      const back = await browser.submit(page, { ...credentials(ada), identifier })
      expect(answerOf(back), identifier).toMatchObject(code)
    }
  })

  test('is recorded once: event, audit, time of the last sign-in', async () => {
    const eve = await signIn.createPerson()
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client)
    await browser.submit(page, credentials(eve))
    const interactionId = idOf(page)
    const [event, ...others] = (await signIn.events('PostSignIn')).filter(({ userId }) => userId === eve.id)
    expect(others).toEqual([])
    expect(event).toMatchObject({
      event: 'PostSignIn',
      interactionEvent: 'SignIn',
      sessionId: interactionId,
      userIp: '203.0.113.7',
      ip: '203.0.113.7',
      userAgent: 'a browser',
      data: { id: eve.id, lastSignInAt: expect.any(Number) },
      user: { id: eve.id, username: eve.username },
      application: { id: client.id, type: 'SPA', name: 'Shop', description: null },
    })
    expect(
      await signIn.sql(
        `SELECT key, result, application_id, user_id FROM logs WHERE payload->>'interactionId' = $1 AND key <> $2
         ORDER BY created_at`,
        [interactionId, 'Interaction.SignIn.Verification.Password.Submit'],
      ),
    ).toEqual([
      { key: 'Interaction.Create', result: 'Success', application_id: client.id, user_id: null },
      { key: 'Interaction.End', result: 'Success', application_id: client.id, user_id: eve.id },
    ])
    // Single sign-on is no sign-in.
    await signIn.authorize(browser, client)
    expect((await signIn.events('PostSignIn')).filter(({ userId }) => userId === eve.id)).toHaveLength(1)
  })

  test('cancelled, tells the client so, and signs nobody in', async () => {
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client)
    const back = await browser.submit(page, { choice: 'cancel' })
    expect(answerOf(back)).toMatchObject({ error: 'access_denied', state: 'the state', iss: signIn.issuer })
    expect(browser.cookies.has('surrogate_session')).toBe(false)
  })

  test('a form post response is a page that posts to the client', async () => {
    const browser = signIn.browser()
    const back = await signIn.signIn(browser, client, ada, { responseMode: 'form_post' })
    expect(back).toMatchObject({
      status: 200,
      forms: [{ action: redirectUri, fields: { ...code, state: 'the state' } }],
    })
  })

  test('a password that is too long, or no text, is not even looked at', async () => {
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client)
    const before = signIn.verified.count
    const tries = ['x'.repeat(1_025), 'x'.repeat(20_000)]
    const answers = []
    for (const password of tries) answers.push((await browser.submit(page, { ...credentials(ada), password })).status)
    expect(answers).toEqual([400, 413])
    const { csrf } = page.forms[0]!.fields
    for (const escaped of ['%00', '%ED%A0%80', '%']) {
      const answer = await browser.send(page.url, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: signIn.url },
        body: `csrf=${encodeURIComponent(csrf!)}&identifier=ada&password=${escaped}`,
      })
      expect(answer.status, escaped).toBe(400)
    }
    expect(signIn.verified.count).toBe(before)
  })

  test('a digest from elsewhere is replaced at the first sign-in', async () => {
    const person = await signIn.createPerson()
    const md5 = '5f4dcc3b5aa765d61d8327deb882cf99'
    await signIn.sql(`UPDATE users SET password_digest = $2, password_algorithm = 'MD5' WHERE id = $1`, [
      person.id,
      md5,
    ])
    const back = await signIn.signIn(signIn.browser(), client, { ...person, password: 'password' })
    expect(answerOf(back)).toMatchObject(code)
    const [row] = await signIn.sql('SELECT password_algorithm FROM users WHERE id = $1', [person.id])
    expect(row).toEqual({ password_algorithm: 'Argon2id' })
  })
})

describe('cookies', () => {
  test('a session is kept beyond the browser only when that is asked for', async () => {
    const person = await signIn.createPerson()
    const lines = async (keep: Record<string, string>) => {
      const browser = signIn.browser()
      const page = await signIn.authorize(browser, client)
      await browser.submit(page, { ...credentials(person), ...keep })
      return browser.setCookies
    }
    const attributes = '; Path=/; HttpOnly; SameSite=Lax'
    expect(await lines({})).toEqual([
      expect.stringMatching(new RegExp(`^surrogate_browser=[\\w-]{43}${attributes}$`)),
      expect.stringMatching(new RegExp(`^surrogate_session=[\\w-]{43}${attributes}$`)),
      expect.stringMatching(new RegExp(`^surrogate_device=[\\w-]{43}${attributes}; Max-Age=34560000$`)),
    ])
    expect((await lines({ keep: 'yes' }))[1]).toMatch(new RegExp(`${attributes}; Max-Age=1209600$`))
    expect((await sessionsOf(person)).map(({ is_persistent }) => is_persistent)).toEqual([false, true])
  })

  test('a value that somebody planted is never taken up', async () => {
    const planted = 'A'.repeat(43)
    const browser = signIn.browser()
    for (const name of ['session', 'browser', 'device']) browser.cookies.set(`surrogate_${name}`, planted)
    await signIn.signIn(browser, client, ada)
    for (const name of ['session', 'browser', 'device']) {
      expect(browser.cookies.get(`surrogate_${name}`)).toMatch(/^[\w-]{43}$/)
      expect(browser.cookies.get(`surrogate_${name}`)).not.toBe(planted)
    }
  })

  test('signing in again gives the session another cookie, and the old one is dead', async () => {
    const person = await signIn.createPerson()
    const browser = await signedInBrowser(person)
    const old = browser.cookies.get('surrogate_session')!
    const page = await signIn.authorize(browser, client, { prompts: ['login'] })
    expect(answerOf(await browser.submit(page, credentials(person)))).toMatchObject(code)
    expect(await sessionsOf(person)).toHaveLength(1)
    const thief = signIn.browser()
    thief.cookies.set('surrogate_session', old)
    expect(answerOf(await signIn.authorize(thief, client, { prompts: ['none'] }))).toMatchObject({
      error: 'login_required',
    })
  })

  test('the session gets another cookie once a day, and the old one works for a moment', async () => {
    const browser = await signedInBrowser(await signIn.createPerson())
    const old = browser.cookies.get('surrogate_session')!
    await signIn.sql(`UPDATE sessions SET rotated_at = now() - interval '25 hours'`)
    await signIn.authorize(browser, client, { prompts: ['none'] })
    expect(browser.cookies.get('surrogate_session')).not.toBe(old)
    browser.cookies.set('surrogate_session', old)
    expect(answerOf(await signIn.authorize(browser, client, { prompts: ['none'] }))).toMatchObject(code)
    await signIn.sql(`UPDATE sessions SET previous_until = now()`)
    expect(answerOf(await signIn.authorize(browser, client, { prompts: ['none'] }))).toMatchObject({
      error: 'login_required',
    })
  })

  test('two cookies of one name are none', async () => {
    const browser = await signedInBrowser(ada)
    const session = browser.cookies.get('surrogate_session')!
    const asked = await signIn.authorize(signIn.browser(), client)
    const answer = await browser.send(asked.url, {
      headers: { cookie: `surrogate_session=${session}; surrogate_session=${'B'.repeat(43)}` },
    })
    expect(answer.status).toBe(400)
  })
})

describe('a session', () => {
  test('that idled, expired, or whose person is suspended asks for a sign-in', async () => {
    const person = await signIn.createPerson()
    const ends = [
      `UPDATE sessions SET last_seen_at = now() - interval '4 days' WHERE user_id = $1`,
      `UPDATE sessions SET expires_at = now() WHERE user_id = $1`,
      'UPDATE users SET is_suspended = true WHERE id = $1',
    ]
    for (const end of ends) {
      const browser = await signedInBrowser(person)
      await signIn.sql(end, [person.id])
      const refused = answerOf(await signIn.authorize(browser, client, { prompts: ['none'] }))
      expect(refused, end).toMatchObject({ error: 'login_required', state: 'the state' })
      expect(await signIn.authorize(browser, client), end).toMatchObject({ status: 200 })
    }
  })

  test('without one, prompt=none leaves no row and sets no cookie', async () => {
    const counted = () => signIn.sql('SELECT count(*)::integer AS made FROM interactions')
    const before = await counted()
    const browser = signIn.browser()
    const answer = answerOf(await signIn.authorize(browser, client, { prompts: ['none'] }))
    expect(answer).toMatchObject({ error: 'login_required' })
    expect(browser.setCookies).toEqual([])
    expect(await counted()).toEqual(before)
  })

  test('of somebody else ends when another person signs in', async () => {
    const [first, second] = [await signIn.createPerson(), await signIn.createPerson()]
    const browser = await signedInBrowser(first)
    const page = await signIn.authorize(browser, client, { prompts: ['login'] })
    expect(answerOf(await browser.submit(page, credentials(second)))).toMatchObject(code)
    expect(await sessionsOf(first)).toMatchObject([{ end_reason: 'signed_in_again' }])
    expect(await sessionsOf(second)).toMatchObject([{ ended_at: null }])
    const ended = await signIn.sql('SELECT end_reason FROM authorizations WHERE user_id = $1', [first.id])
    expect(ended).toEqual([{ end_reason: 'signed_in_again' }])
  })

  test('is no answer to prompt=login or max_age=0, nor is a sign-in in another tab', async () => {
    const person = await signIn.createPerson()
    const browser = await signedInBrowser(person)
    for (const request of [{ prompts: ['login' as const] }, { maxAge: 0 }]) {
      const [one, two] = [
        await signIn.authorize(browser, client, request),
        await signIn.authorize(browser, client, request),
      ]
      expect([one.status, two.status]).toEqual([200, 200])
      expect(answerOf(await browser.submit(one, credentials(person)))).toMatchObject(code)
      expect(await browser.get(two.url)).toMatchObject({ status: 200, url: two.url })
      expect(answerOf(await browser.submit(await browser.get(two.url), credentials(person)))).toMatchObject(code)
    }
    expect(answerOf(await signIn.authorize(browser, client, { maxAge: 10_000 }))).toMatchObject(code)
    await signIn.sql(`UPDATE sessions SET authenticated_at = now() - interval '10001 seconds' WHERE user_id = $1`, [
      person.id,
    ])
    expect(await signIn.authorize(browser, client, { maxAge: 10_000 })).toMatchObject({ status: 200 })
  })

  test('can be gone on with or left where the client asks which account', async () => {
    const person = await signIn.createPerson()
    const browser = await signedInBrowser(person)
    const ask = () => signIn.authorize(browser, client, { prompts: ['select_account'] })
    expect(answerOf(await browser.submit(await ask(), { choice: 'continue' }))).toMatchObject(code)
    const page = await browser.submit(await ask(), { choice: 'another' })
    expect(page.forms[0]?.names).toContain('password')
    expect(answerOf(await browser.submit(page, credentials(bob)))).toMatchObject(code)
    const none = await signIn.authorize(browser, client, { prompts: ['select_account', 'none'] })
    expect(answerOf(none)).toMatchObject({ error: 'account_selection_required' })
  })

  test('of another person than the client expects asks again, and nobody else gets a code', async () => {
    const browser = await signedInBrowser(ada)
    const none = await signIn.authorize(browser, client, { expectedUserId: bob.id, prompts: ['none'] })
    expect(answerOf(none)).toMatchObject({ error: 'login_required' })
    const wrong = await signIn.signIn(browser, client, ada, { expectedUserId: bob.id })
    expect(answerOf(wrong)).toMatchObject({ error: 'login_required' })
    expect(answerOf(await signIn.signIn(browser, client, bob, { expectedUserId: bob.id }))).toMatchObject(code)
  })

  test('is renewed for what acr_values asks only where it can be reached', async () => {
    const browser = await signedInBrowser(ada)
    const asked = await signIn.authorize(browser, client, { acrValues: ['urn:surrogate:acr:mfa', 'unknown'] })
    expect(answerOf(asked)).toMatchObject(code)
  })
})

describe('a page', () => {
  test('opened by another browser leaks nothing, and cannot be sent', async () => {
    const owner = signIn.browser()
    const page = await signIn.authorize(owner, client, { loginHint: 'a-hint@example.test' })
    expect(page.text).toContain('a-hint@example.test')
    const stranger = signIn.browser()
    await signIn.authorize(stranger, client)
    for (const browser of [stranger, signIn.browser()]) {
      const shown = await browser.get(page.url)
      expect(shown.status).toBe(400)
      expect(shown.text).not.toMatch(/a-hint|Shop/)
      const sent = await browser.send(page.url, {
        method: 'POST',
        body: new URLSearchParams({ ...page.forms[0]!.fields, ...credentials(ada) }),
        headers: { origin: signIn.url },
      })
      expect(sent.status).toBe(400)
    }
    const unknown = await stranger.get(`${signIn.url}/sign-in/${'0'.repeat(21)}`)
    expect(unknown.status).toBe(400)
  })

  test('is not taken without its own csrf value, or from elsewhere', async () => {
    const browser = signIn.browser()
    const [page, other] = [await signIn.authorize(browser, client), await signIn.authorize(browser, client)]
    const sent = async (values: Record<string, string>, headers?: Record<string, string>) =>
      (await browser.submit(page, { ...credentials(ada), ...values }, { ...(headers && { headers }) })).status
    const foreign = other.forms[0]!.fields['csrf']!
    const own = page.forms[0]!.fields['csrf']!
    expect(await sent({ csrf: '' })).toBe(403)
    expect(await sent({ csrf: foreign })).toBe(403)
    expect(await sent({ csrf: own.replace('sign_in', 'consent') })).toBe(403)
    expect(await sent({}, { origin: 'https://evil.example' })).toBe(403)
    expect(await sent({}, { origin: 'null', 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await sent({}, { 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await sent({}, { 'sec-fetch-site': 'same-site' })).toBe(403)
    const nullOrigin = { method: 'POST', headers: { origin: 'null' }, body: new URLSearchParams({ csrf: own }) }
    expect((await browser.send(page.url, nullOrigin)).status).toBe(403)
    expect(answerOf(await browser.submit(page, credentials(ada), { headers: { origin: 'null' } }))).toMatchObject(code)
  })

  test('keeps out of caches, frames and other origins', async () => {
    const page = await signIn.authorize(signIn.browser(), client)
    const headers = Object.fromEntries(page.headers)
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
    })
  })

  test('of several tabs and clients all finish, whichever comes first', async () => {
    const browser = signIn.browser()
    const other = await signIn.createClient({ name: 'Other', redirectUris: ['https://other.example.test/cb'] })
    const [one, two, three] = [
      await signIn.authorize(browser, client),
      await signIn.authorize(browser, other),
      await signIn.authorize(browser, client),
    ]
    expect(answerOf(await browser.submit(two, credentials(bob)))).toMatchObject(code)
    expect((await browser.submit(one, credentials(bob))).location).toMatch(/^https:\/\/shop\.example\.test\/callback\?/)
    // Reloaded, the third finds that somebody has signed in.
    expect(answerOf(await browser.get(three.url))).toMatchObject(code)
  })

  test('sent twenty times at once makes one session, one code, one event, and twenty times the same answer', async () => {
    const person = await signIn.createPerson()
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client)
    const cookies = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        fetch(page.url.replace(signIn.url, signIn.urls[n % 2]!), {
          method: 'POST',
          redirect: 'manual',
          headers: { cookie: cookies, origin: signIn.url },
          body: new URLSearchParams({ ...page.forms[0]!.fields, ...credentials(person) }),
        }),
      ),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([303]))
    expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).toBe(1)
    expect(new Set(answers.map(({ headers }) => headers.getSetCookie().join())).size).toBe(1)
    expect(await sessionsOf(person)).toHaveLength(1)
    expect(await signIn.sql('SELECT id FROM authorizations WHERE user_id = $1', [person.id])).toHaveLength(1)
    expect((await signIn.events('PostSignIn')).filter(({ userId }) => userId === person.id)).toHaveLength(1)
    // Ten seconds later it is only finished; going back shows the way to the application.
    await signIn.sql(`UPDATE interactions SET finished_at = now() - interval '11 seconds' WHERE id = $1`, [idOf(page)])
    expect(await browser.submit(page, credentials(person))).toMatchObject({ status: 403, location: undefined })
    const back = await browser.get(page.url)
    expect(back).toMatchObject({ status: 200 })
    expect(back.text).toContain('href="https://shop.example.test/"')
  })

  test('of an expired sign-in leads to a new one with the same request', async () => {
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, client, { nonce: 'a nonce', resources: ['https://api.example.test'] })
    await signIn.sql('UPDATE interactions SET expires_at = now() WHERE id = $1', [idOf(page)])
    for (const answer of [await browser.get(page.url), await browser.submit(page, credentials(ada))]) {
      expect(answer.status).toBe(400)
      const href = /href="(\/oidc\/auth\?[^"]*)"/.exec(answer.text)![1]!.replaceAll('&amp;', '&')
      expect(Object.fromEntries(new URL(href, signIn.url).searchParams)).toEqual({
        client_id: client.id,
        redirect_uri: redirectUri,
        response_type: 'code',
        response_mode: 'query',
        scope: 'openid profile',
        state: 'the state',
        nonce: 'a nonce',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
        resource: 'https://api.example.test',
      })
    }
  })

  test('without an interaction is friendly', async () => {
    expect(await signIn.browser().get('/sign-in')).toMatchObject({ status: 400, text: expect.stringContaining('<h1>') })
    expect((await signIn.browser().get('/sign-in/')).status).toBe(404)
    expect((await signIn.browser().send('/sign-in', { method: 'DELETE' })).status).toBe(405)
  })
})

describe('meanwhile', () => {
  test('a redirect URI was removed, or the client deleted: no code', async () => {
    const short = await signIn.createClient({ redirectUris: ['https://short.example.test/cb'] })
    const browser = signIn.browser()
    const page = await signIn.authorize(browser, short)
    await signIn.sql(`UPDATE applications SET oidc_client_metadata = '{"redirectUris":[]}' WHERE id = $1`, [short.id])
    const refused = await browser.submit(page, credentials(ada))
    expect(refused).toMatchObject({ status: 400, location: undefined })
    await signIn.sql('DELETE FROM applications WHERE id = $1', [short.id])
    expect(await browser.submit(page, credentials(ada))).toMatchObject({ status: 400, location: undefined })
    expect(await signIn.sql('SELECT id FROM authorizations WHERE client_id = $1', [short.id])).toEqual([])
  })

  test('the person was suspended, or the password changed, after it was proven: no session', async () => {
    const changes = [
      { change: 'UPDATE users SET is_suspended = true WHERE id = $1', status: 403, asksAgain: false },
      {
        change: `UPDATE users SET password_digest = replace(password_digest, 'a', 'b') WHERE id = $1`,
        ...{ status: 200, asksAgain: true },
      },
    ]
    for (const { change, status, asksAgain } of changes) {
      const person = await signIn.createPerson()
      const third = await signIn.createClient({ isThirdParty: true })
      const browser = signIn.browser()
      const consent = await signIn.signIn(browser, third, person)
      expect(consent.forms.at(-1)?.names, consent.text).toContain('choice')
      await signIn.sql(change, [person.id])
      const page = await browser.submit(consent, { choice: 'allow' }, { with: 'choice' })
      expect(page.status, change).toBe(status)
      expect(page.forms[0]?.names.includes('password') ?? false, change).toBe(asksAgain)
      expect(await sessionsOf(person)).toEqual([])
    }
  })

  test('a suspended person is told so only after the right password', async () => {
    const person = await signIn.createPerson()
    await signIn.suspend(person.id)
    const wrong = await signIn.signIn(signIn.browser(), client, { ...person, password: 'wrong' })
    const unknown = await signIn.signIn(signIn.browser(), client, { ...person, username: 'nobody', password: 'wrong' })
    const normal = (page: Visit, name: string) =>
      page.text.replaceAll(name, '').replace(/value="sign_in\.[^"]*"|\/sign-in\/\w+/g, '')
    expect(normal(wrong, person.username)).toBe(normal(unknown, 'nobody'))
    expect([wrong.status, unknown.status]).toEqual([400, 400])
    const right = await signIn.signIn(signIn.browser(), client, person)
    expect(right).toMatchObject({ status: 403, location: undefined })
    expect(await sessionsOf(person)).toEqual([])
  })
})

test('an address has only so many sign-ins open', async () => {
  const bounded = await startTestSignIn({ interactionsPerAddress: 3 })
  try {
    const shop = await bounded.createClient()
    const person = await bounded.createPerson()
    const statuses = []
    for (let count = 0; count < 5; count++) statuses.push((await bounded.authorize(bounded.browser(), shop)).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    expect(await bounded.sql('SELECT count(*)::integer AS made FROM interactions')).toEqual([{ made: 3 }])
    await bounded.sql(`UPDATE interactions SET finished_at = now() WHERE id = (SELECT min(id) FROM interactions)`)
    expect(answerOf(await bounded.signIn(bounded.browser(), shop, person))).toMatchObject(code)
  } finally {
    await bounded.close()
  }
})

test('frames and pictures on a page of somebody else do not use up what an address has', async () => {
  const count = () => signIn.sql('SELECT count(*)::integer AS made FROM interactions')
  const request = { clientId: client.id, redirectUri: client.redirectUri, responseMode: 'query', scopes: ['openid'] }
  const more = { resourceScopes: {}, resources: [], prompts: [], uiLocales: [], acrValues: [] }
  const asked = encodeURIComponent(JSON.stringify({ ...request, ...more, wantsOfflineAccess: false }))
  const before = await count()
  for (const dest of ['iframe', 'image', 'script', 'empty']) {
    const browser = signIn.browser()
    const answer = await browser.send(`/oidc/auth?request=${asked}`, { headers: { 'sec-fetch-dest': dest } })
    expect(answerOf(answer)).toMatchObject({ error: 'login_required' })
    expect(browser.setCookies).toEqual([])
  }
  expect(await count()).toEqual(before)
  const topmost = await signIn
    .browser()
    .send(`/oidc/auth?request=${asked}`, { headers: { 'sec-fetch-dest': 'document' } })
  expect(topmost.location).toContain('/sign-in/')
})

test('what opens something stands nowhere in clear', async () => {
  const person = await signIn.createPerson()
  const browser = signIn.browser()
  const back = await signIn.signIn(browser, client, person)
  const secrets = [person.password, answerOf(back)['code']!, ...browser.cookies.values()]
  const tables = [
    'sessions',
    'authorizations',
    'authorization_codes',
    'interactions',
    'proofs',
    'known_devices',
    'logs',
  ]
  for (const table of [...tables, 'outbox', 'sign_in_failures']) {
    const rows = await signIn.sql<{ text: string }>(`SELECT t::text AS text FROM ${table} t`)
    const text = rows.map((row) => row.text).join('\n')
    for (const secret of secrets) {
      expect(text.includes(secret), table).toBe(false)
      expect(text.includes(Buffer.from(secret).toString('hex')), table).toBe(false)
    }
  }
  for (const secret of secrets) expect(signIn.logged().includes(secret)).toBe(false)
})
