import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../platform/ids.ts'
import { callback } from '../../support/code-flow.ts'
import { freshName, startExperience, type TestExperience } from '../../support/experience.ts'
import { formOf, request } from '../../support/issuer.ts'
import { solve } from '../../support/proof-of-work.ts'

let experience: TestExperience

beforeAll(async () => {
  experience = await startExperience({
    settings: { signUp: { identifiers: ['username'], password: true, verify: false } },
  })
})
afterAll(() => experience.close())

const byPassword = (person: { username: string; password: string }) => ({
  identifier: { type: 'username', value: person.username },
  password: person.password,
})

describe('signing in', () => {
  test('a password signs in, in the calls that existing pages make, and the code is good for tokens', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    expect(pages.begun).toMatchObject({ status: 303, location: expect.stringContaining('/sign-in/') })
    expect(await pages.put('', { interactionEvent: 'SignIn' })).toMatchObject({ status: 204, body: '' })
    expect(await pages.put('/', { interactionEvent: 'SignIn' })).toMatchObject({ status: 204, body: '' })

    const proven = await pages.post('/verification/password', byPassword(person))
    expect(proven).toMatchObject({ status: 200, body: { verificationId: expect.any(String) } })
    const identified = await pages.post('/identification', { verificationId: proven.body.verificationId })
    expect(identified).toMatchObject({ status: 204, body: '' })
    expect((await pages.get('/interaction')).body).toMatchObject({
      interactionEvent: 'SignIn',
      userId: person.id,
      next: { step: 'done', reasons: [] },
    })

    const submitted = await pages.post('/submit')
    const redirectTo = `${experience.issuer.baseUrl}/oidc/auth/${pages.interactionId}`
    expect(submitted).toMatchObject({ status: 200, body: { redirectTo } })
    const back = await pages.browser.send(redirectTo)
    expect(back).toMatchObject({ status: 303, location: expect.stringContaining('code=') })
    const code = new URL(back.location!).searchParams.get('code')!
    expect(await experience.flow.redeem(experience.client, code)).toMatchObject({
      status: 200,
      body: { id_token: expect.any(String), refresh_token: expect.any(String) },
    })
    expect(await experience.events('PostSignIn')).toContainEqual(
      expect.objectContaining({ userId: person.id, interactionEvent: 'SignIn' }),
    )
  })

  test('what is wrong is told by stable codes, and nothing tells whether somebody exists', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    const wrong = await pages.post('/verification/password', byPassword({ ...person, password: 'wrong' }))
    const nobody = await pages.post('/verification/password', byPassword({ username: freshName(), password: 'wrong' }))
    expect(wrong).toMatchObject({ status: 422, body: { code: 'session.invalid_credentials' } })
    expect(nobody.body).toEqual(wrong.body)
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.identifier_not_found' } })
    expect(await pages.post('/identification', { verificationId: newId() })).toMatchObject({
      status: 404,
      body: { code: 'session.verification_session_not_found' },
    })
  })

  test('proving who one is, without saying so, does not submit', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await pages.post('/verification/password', byPassword(person))
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.identifier_not_found' } })
  })

  test('who was identified does not become somebody else by another password', async () => {
    const [ada, bob] = [await experience.createPerson(), await experience.createPerson()]
    const pages = await experience.pages()
    const first = await pages.post('/verification/password', byPassword(ada))
    await pages.post('/identification', first.body)
    const second = await pages.post('/verification/password', byPassword(bob))
    expect(await pages.post('/identification', second.body)).toMatchObject({
      status: 409,
      body: { code: 'session.identity_conflict' },
    })
    expect(await pages.post('/identification', first.body)).toMatchObject({ status: 404 })
    expect((await pages.post('/submit')).status).toBe(404)
  })

  test('a suspended person is told so only after the whole proof, and gets no session', async () => {
    const person = await experience.createPerson({ isSuspended: true })
    const pages = await experience.pages()
    const wrong = await pages.post('/verification/password', byPassword({ ...person, password: 'wrong' }))
    expect(wrong).toMatchObject({ status: 422, body: { code: 'session.invalid_credentials' } })
    const right = await pages.post('/verification/password', byPassword(person))
    expect(await pages.post('/identification', right.body)).toMatchObject({ status: 204 })
    expect(await pages.post('/submit')).toMatchObject({ status: 401, body: { code: 'user.suspended' } })
    expect(pages.browser.cookies.has('surrogate_session')).toBe(false)
  })

  test('a code by mail signs in, and so does one by text message', async () => {
    const person = await experience.createPerson()
    for (const identifier of [
      { type: 'email', value: person.email },
      { type: 'phone', value: `+${person.phone}` },
    ]) {
      const pages = await experience.pages()
      const sent = await pages.post('/verification/verification-code', { identifier, interactionEvent: 'SignIn' })
      expect(sent).toMatchObject({ status: 200, body: { verificationId: expect.any(String) } })
      const { verificationId } = sent.body
      expect(await pages.post('/identification', { verificationId })).toMatchObject({
        status: 400,
        body: { code: 'session.verification_failed' },
      })
      const code = await experience.codeTo(identifier.value.replace('+', ''))
      const answer = { identifier, verificationId, code }
      expect(await pages.post('/verification/verification-code/verify', answer)).toMatchObject({
        status: 200,
        body: { verificationId },
      })
      expect(await pages.post('/identification', { verificationId })).toMatchObject({ status: 204 })
      expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
    }
  })

  test('a double submit gets the same answer for some seconds, one session and one event', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await pages.post('/identification', (await pages.post('/verification/password', byPassword(person))).body)
    const answers = await Promise.all(Array.from({ length: 20 }, () => pages.post('/submit')))
    expect(new Set(answers.map(({ status, body }) => `${status} ${JSON.stringify(body)}`)).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 200 })
    const led = await Promise.all(answers.map(({ body }) => pages.browser.send(body.redirectTo)))
    expect(new Set(led.map(({ location }) => location)).size).toBe(1)
    const told = (await experience.events('PostSignIn')).filter(({ userId }) => userId === person.id)
    expect(told).toHaveLength(1)
    expect(await experience.issuer.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toHaveLength(1)

    const sql = experience.issuer.sql
    await sql(`UPDATE interactions SET finished_at = finished_at - interval '11 seconds' WHERE id = $1`, [
      pages.interactionId,
    ])
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.not_found' } })
    const after = await pages.browser.get(answers[0]!.body.redirectTo)
    expect(after).toMatchObject({ status: 200, url: expect.stringContaining('/sign-in/') })
  })

  test('an interaction whose time is over is no dead end', async () => {
    const pages = await experience.pages()
    await experience.issuer.sql('UPDATE interactions SET expires_at = now() WHERE id = $1', [pages.interactionId])
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.not_found' } })
    const page = await pages.browser.get(`/oidc/auth/${pages.interactionId}`)
    expect(page).toMatchObject({ status: 400, text: expect.stringContaining('/oidc/auth?') })
  })

  test('T 65: a password that is too long, or no text, is refused as such, and is no attempt', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    const shown = (password: string) => pages.post('/verification/password', byPassword({ ...person, password }))
    for (const [password, status] of [
      ['x'.repeat(1_048_576), 413],
      ['x'.repeat(10_240), 400],
      ['with\0NUL', 400],
      ['half of a \ud83e', 400],
    ] as const) {
      expect((await shown(password)).status, password.slice(0, 12)).toBe(status)
    }
    const counted = await experience.issuer.sql('SELECT FROM sign_in_failures WHERE updated_at > now() AND count > 0')
    expect(counted).toEqual([])
    expect((await shown(person.password)).status).toBe(200)
  })

  test.each([
    ['SPA', 'https://shop.example.test/'],
    ['Native', 'com.example.shop:/callback?'],
  ])(
    'T 146: of a request that was sent ahead the page leads to the application, and tells nothing of it (%s)',
    async (type, to) => {
      const { issuer, flow } = experience
      const client = await flow.createClient({ type })
      const redirectUri = type === 'Native' ? 'com.example.shop:/callback' : callback
      await issuer.api('PATCH', `/applications/${client.id}`, {
        oidcClientMetadata: { redirectUris: [redirectUri], postLogoutRedirectUris: [] },
      })
      const asked = new URL(
        flow.authorizationUrl(client, { redirect_uri: redirectUri, state: 'the state', nonce: 'zebra' }),
      )
      const pushed = await request(`${issuer.url}/oidc/request`, { method: 'POST', body: asked.searchParams })
      expect(pushed.status).toBe(201)
      const url = `${issuer.issuer}/auth?${formOf({ client_id: client.id, request_uri: pushed.body.request_uri })}`
      const browser = flow.browser()
      const page = await browser.get(url)
      expect(page.forms[0]?.names).toContain('password')
      const interactionId = /[0-9a-z]{21}$/.exec(page.url)![0]
      await issuer.sql('UPDATE interactions SET expires_at = now() WHERE id = $1', [interactionId])
      const person = await experience.createPerson()
      for (const ended of [await browser.submit(page, flow.credentials(person)), await browser.get(page.url)]) {
        expect(ended.status).toBe(400)
        expect(ended.text).toContain(`href="${to}`)
        expect(ended.text).not.toMatch(/zebra|\/oidc\/auth\?/)
      }
      expect(await issuer.sql('SELECT FROM sessions WHERE user_id = $1', [person.id])).toEqual([])
      // The same browser may come again with what was sent ahead, and is signed in then.
      const again = await browser.submit(await browser.get(url), flow.credentials(person))
      expect(again.location).toMatch(/[?&]code=.*&state=the\+state/)
    },
  )

  test('a person who is suspended between identification and submit gets no session', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await pages.post('/identification', (await pages.post('/verification/password', byPassword(person))).body)
    await experience.issuer.suspend(person.id)
    expect(await pages.post('/submit')).toMatchObject({ status: 401, body: { code: 'user.suspended' } })
    await experience.issuer.api('DELETE', `/users/${person.id}`)
    expect((await pages.post('/submit')).status).toBe(404)
  })

  test('somebody with a session goes on without proving anything', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await pages.post('/identification', (await pages.post('/verification/password', byPassword(person))).body)
    await pages.finish()
    const client = await experience.flow.createClient({ type: 'SPA', isThirdParty: true })
    const second = await experience.pages({ browser: pages.browser, client })
    expect((await second.get('/interaction')).body.next.step).toBe('consent')
    const submitted = await second.post('/submit')
    expect(submitted.status).toBe(200)
    // Consent is asked for by a page of ours.
    const page = await second.browser.get(submitted.body.redirectTo)
    expect(page).toMatchObject({ status: 200, url: expect.stringContaining(`/sign-in/${second.interactionId}`) })
    expect(page.forms[0]?.names).toContain('choice')
  })
})

describe('registration', () => {
  test('name and password make a user when they are submitted, and not before', async () => {
    const username = freshName()
    const pages = await experience.pages()
    await pages.put('', { interactionEvent: 'Register' })
    expect(await pages.post('/identification', {})).toMatchObject({
      status: 422,
      body: { code: 'user.missing_profile', data: { missingProfile: ['username', 'password'] } },
    })
    const identity = { identifier: { type: 'username', value: username }, password: 'pwd_3f1c9a7b5d2e' }
    const named = await pages.post('/verification/new-password-identity', identity)
    expect(named).toMatchObject({ status: 200, body: { verificationId: expect.any(String) } })
    expect(await pages.post('/identification', named.body)).toMatchObject({ status: 201 })
    const sql = experience.issuer.sql
    expect(await sql('SELECT FROM users WHERE username = $1', [username])).toHaveLength(0)
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
    expect(await sql('SELECT FROM users WHERE username = $1', [username])).toHaveLength(1)
    expect((await experience.events('PostRegister')).at(-1)).toMatchObject({ interactionEvent: 'Register' })

    const again = await experience.pages()
    await again.post(
      '/identification',
      (await again.post('/verification/password', byPassword({ username, password: identity.password }))).body,
    )
    expect(await again.finish()).toMatchObject({ code: expect.any(String) })
  })

  test('a profile makes a user too, by pieces', async () => {
    const username = freshName()
    const pages = await experience.pages()
    await pages.put('', { interactionEvent: 'Register' })
    expect((await pages.post('/profile', { type: 'username', value: username })).status).toBe(204)
    expect((await pages.post('/profile', { type: 'password', value: 'pwd_3f1c9a7b5d2e' })).status).toBe(204)
    const values = { name: 'Ada', givenName: 'Ada' }
    expect((await pages.post('/profile', { type: 'extraProfile', values })).status).toBe(204)
    expect((await pages.post('/identification', {})).status).toBe(201)
    await pages.finish()
    expect(
      await experience.issuer.sql('SELECT name, profile FROM users WHERE username = $1', [username]),
    ).toMatchObject([{ name: 'Ada', profile: { givenName: 'Ada' } }])
  })

  test('nobody writes what is not theirs to write into a new profile', async () => {
    const pages = await experience.pages()
    await pages.put('', { interactionEvent: 'Register' })
    for (const values of [{ customData: { admin: true } }, { isSuspended: false }, { id: 'x' }]) {
      expect((await pages.post('/profile', { type: 'extraProfile', values })).status).toBe(400)
    }
  })

  test('a name that somebody has is refused, and of many who want one at once one gets it', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await pages.put('', { interactionEvent: 'Register' })
    const identity = { identifier: { type: 'username', value: person.username }, password: 'pwd_3f1c9a7b5d2e' }
    expect(await pages.post('/verification/new-password-identity', identity)).toMatchObject({
      status: 422,
      body: { code: 'user.username_already_in_use' },
    })

    const value = freshName()
    const all = await Promise.all(Array.from({ length: 10 }, () => experience.pages()))
    await Promise.all(
      all.map(async (one) => {
        await one.put('', { interactionEvent: 'Register' })
        const named = { identifier: { type: 'username', value }, password: 'pwd_3f1c9a7b5d2e' }
        const { body } = await one.post('/verification/new-password-identity', named)
        await one.post('/identification', body)
      }),
    )
    const ends = await Promise.all(all.map((one) => one.post('/submit')))
    expect(ends.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(ends.filter(({ body }) => body.code === 'user.username_already_in_use')).toHaveLength(9)
    expect(await experience.issuer.sql('SELECT FROM users WHERE username = $1', [value])).toHaveLength(1)
  })
})

describe('the test for machines', () => {
  const set = async (enabled: boolean) => {
    const patch = { captchaPolicy: { enabled } }
    expect((await experience.issuer.api('PATCH', '/sign-in-exp', patch)).status).toBe(200)
  }
  beforeAll(() => set(true))
  afterAll(() => set(false))

  type Pages = Awaited<ReturnType<TestExperience['pages']>>
  const captchaOf = async (pages: Pages) => (await pages.get('/interaction')).body.captcha
  const tokenFor = async (pages: Pages): Promise<string> => {
    const { challenge } = await captchaOf(pages)
    return solve(challenge.challenge, challenge.difficulty)
  }
  const begin = (pages: Pages, captchaToken: string, interactionEvent = 'SignIn') =>
    pages.put('', { interactionEvent, captchaToken })
  const failed = { status: 422, body: { code: 'session.captcha_failed' } }
  const required = { status: 422, body: { code: 'session.captcha_required' } }

  test('is passed by the token that a sign-in begins with, and by nothing less', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    expect(await pages.put('', { interactionEvent: 'SignIn' })).toMatchObject({ status: 204 })
    expect(await pages.post('/verification/password', byPassword(person))).toMatchObject(required)
    for (const token of ['', 'made.up.1', (await tokenFor(pages)).replace(/\d+$/, 'x')]) {
      expect(await begin(pages, token), token).toMatchObject(failed)
      expect(await captchaOf(pages)).toMatchObject({ verified: false, challenge: { provider: 'proof_of_work' } })
    }
    expect((await begin(pages, 'x'.repeat(5_000))).status).toBe(400)
    expect(await pages.post('/verification/password', byPassword(person))).toMatchObject(required)

    expect(await begin(pages, await tokenFor(pages))).toMatchObject({ status: 204, body: '' })
    expect(await captchaOf(pages)).toEqual({ verified: true })
    const proven = await pages.post('/verification/password', byPassword(person))
    await pages.post('/identification', proven.body)
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
  })

  test('is passed once by a token, which is for its interaction and its purpose', async () => {
    const [pages, other] = [await experience.pages(), await experience.pages()]
    const token = await tokenFor(pages)
    expect(await begin(other, token)).toMatchObject(failed)
    expect(await begin(pages, token, 'Register')).toMatchObject(failed)
    await pages.put('', { interactionEvent: 'SignIn' })
    const answers = await Promise.all(Array.from({ length: 10 }, () => begin(pages, token)))
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    expect(await begin(pages, token)).toMatchObject(failed)
  })

  test('is not passed for whoever begins anew without it', async () => {
    const person = await experience.createPerson()
    const pages = await experience.pages()
    await begin(pages, await tokenFor(pages))
    expect(await begin(pages, 'made.up.1', 'Register')).toMatchObject(failed)
    await pages.put('', { interactionEvent: 'SignIn' })
    expect((await captchaOf(pages)).verified).toBe(false)
    expect(await pages.post('/verification/password', byPassword(person))).toMatchObject(required)
  })
})

describe('whose call it is', () => {
  test('no cookie, a cookie of another browser, or an unknown interaction: nothing is under way', async () => {
    const pages = await experience.pages()
    const other = await experience.pages()
    const gone = { status: 404, body: { code: 'session.not_found' } }
    expect(
      await pages.get('/interaction', { headers: { 'surrogate-interaction': other.interactionId } }),
    ).toMatchObject(gone)
    expect(await pages.get('/interaction', { headers: { 'surrogate-interaction': newId() } })).toMatchObject(gone)
    pages.browser.cookies.clear()
    expect(await pages.get('/interaction')).toMatchObject(gone)
    expect(await pages.put('', { interactionEvent: 'SignIn' })).toMatchObject(gone)
  })

  test('two tabs of one browser do not mix; without the header the newest of the application counts', async () => {
    const person = await experience.createPerson()
    const first = await experience.pages()
    const client = await experience.flow.createClient()
    const second = await experience.pages({ browser: first.browser, client })
    const proven = await first.post('/verification/password', byPassword(person))
    expect((await second.post('/identification', proven.body)).status).toBe(404)

    const unnamed = (headers: Record<string, string>) =>
      first.get('/interaction', { headers: { 'surrogate-interaction': '', ...headers } })
    expect((await unnamed({})).body.verificationRecords).toEqual([])
    expect((await unnamed({ 'logto-app-id': experience.client.id })).body.verificationRecords).toHaveLength(1)
    expect((await unnamed({ 'logto-app-id': newId() })).status).toBe(404)
    await first.post('/identification', proven.body)
    expect(await first.finish()).toMatchObject({ code: expect.any(String) })
    await second.post('/identification', (await second.post('/verification/password', byPassword(person))).body)
    expect(await second.finish()).toMatchObject({ code: expect.any(String) })
  })

  test('a page of another site can do nothing, whatever it sends', async () => {
    const pages = await experience.pages()
    const refused = { status: 403, body: { code: 'session.origin_not_allowed' } }
    const attempts: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of attempts) {
      const answer = await pages.post('/submit', undefined, { headers })
      expect(answer, JSON.stringify(headers)).toMatchObject(refused)
      expect(answer.headers.get('access-control-allow-origin')).toBe(null)
    }
    const own = `${experience.issuer.url}/api/experience/interaction`
    const cookie = [...pages.browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    // A server calls without `Origin`; a browser that leaves it out says where it stands.
    expect((await fetch(own, { headers: { cookie } })).status).toBe(200)
    expect((await fetch(own, { headers: { cookie, 'sec-fetch-site': 'same-origin' } })).status).toBe(200)
    expect((await fetch(own, { headers: { cookie, 'sec-fetch-site': 'same-site' } })).status).toBe(403)
    expect(
      (await fetch(own, { method: 'OPTIONS', headers: { origin: 'https://evil.example' } })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBe(null)
  })

  test('only JSON is read, and not too much of it', async () => {
    const pages = await experience.pages()
    const typed = (type: string, body: string) =>
      pages.browser.send(`${experience.issuer.url}/api/experience/verification/password`, {
        method: 'POST',
        headers: {
          origin: experience.issuer.baseUrl,
          'content-type': type,
          'surrogate-interaction': pages.interactionId,
        },
        body,
      })
    expect((await typed('application/x-www-form-urlencoded', 'a=b')).status).toBe(415)
    expect((await typed('text/plain', '{}')).status).toBe(415)
    expect((await typed('application/json', '{')).status).toBe(400)
    expect((await typed('application/json', '[]')).status).toBe(400)
    expect((await typed('application/json', JSON.stringify({ a: 'x'.repeat(70_000) }))).status).toBe(413)
    expect((await pages.call('DELETE', '/submit')).status).toBe(405)
    expect((await pages.get('/nothing')).status).toBe(404)
    expect((await pages.get('/../users')).status).toBe(401)
  })
})
