import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../platform/database/database.ts'
import type { Browser, Visit } from '../../support/browser.ts'
import { type CodeFlow, createCodeFlow, type Person, parametersOf, signedOut } from '../../support/code-flow.ts'
import { type Answer, formOf, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** Requests that arrive at the same moment, at two instances on one database. */

let issuer: TestIssuer
let flow: CodeFlow
let native: TestApplication

beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  native = await flow.createClient()
})
afterAll(() => issuer.close())
// Everybody comes from one address.
beforeEach(async () => {
  await sql('DELETE FROM sign_in_failures')
})

/** So many at once, on both instances in turn. */
const atOnce = <Result>(count: number, ask: (instance: number, n: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => ask(n % 2, n)))
const sql = <Row extends object>(text: string, ...values: unknown[]) => issuer.sql<Row>(text, values)
const cookieHeader = (browser: Browser) => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
const alike = (values: readonly unknown[]) => new Set(values.map((value) => JSON.stringify(value)))
const eventsOf = ({ id }: Person) => sql(`SELECT FROM outbox WHERE type = 'PostSignIn' AND entity_id = $1`, id)
const liveOf = async ({ id }: Person) => ({
  sessions: (await sql('SELECT FROM sessions WHERE user_id = $1 AND ended_at IS NULL', id)).length,
  authorizations: (await sql('SELECT FROM authorizations WHERE user_id = $1 AND ended_at IS NULL', id)).length,
})

interface SignedIn {
  person: Person
  browser: Browser
  client: TestApplication
  sessionId: string
  sid: string
  tokens: Answer['body']
}
const signedIn = async (client = native): Promise<SignedIn> => {
  const [person, browser] = [await flow.createPerson(), flow.browser()]
  const { body: tokens } = await flow.redeem(client, await flow.signIn(browser, client, person))
  const [row] = await sql<{ id: string; session_id: string }>(
    'SELECT id, session_id FROM authorizations WHERE user_id = $1',
    person.id,
  )
  return { person, browser, client, tokens, sid: row!.id, sessionId: row!.session_id }
}

describe('a form that is sent fifty times at once', () => {
  test('with the right password signs in once, and leads everybody to the same place', async () => {
    const [person, browser] = [await flow.createPerson(), flow.browser()]
    const page = await flow.ask(browser, native)
    const cookie = cookieHeader(browser)
    const answers = await atOnce(50, (instance) => send(page, cookie, flow.credentials(person), instance))
    expect(alike(answers)).toEqual(new Set([JSON.stringify(answers[0])]))
    expect(answers[0]).toMatchObject([303, expect.stringContaining('code='), expect.any(Array)])
    expect(await liveOf(person)).toEqual({ sessions: 1, authorizations: 1 })
    expect(await eventsOf(person)).toHaveLength(1)
    const ends = await sql(`SELECT FROM logs WHERE key = 'Interaction.End' AND user_id = $1`, person.id)
    expect(ends).toHaveLength(1)
  })

  test('with consent stores it once, for one code', async () => {
    const [person, browser] = [await flow.createPerson(), flow.browser()]
    const partner = await flow.createClient({ type: 'SPA', isThirdParty: true })
    const page = await browser.submit(await flow.ask(browser, partner), flow.credentials(person))
    const consent = { ...page, forms: page.forms.filter(({ names }) => names.includes('choice')).slice(-1) }
    const cookie = cookieHeader(browser)
    const answers = await atOnce(50, (instance) => send(consent, cookie, { choice: 'allow' }, instance))
    expect(alike(answers)).toEqual(new Set([JSON.stringify(answers[0])]))
    expect(answers[0]).toMatchObject([303, expect.stringContaining('code='), expect.any(Array)])
    expect(await liveOf(person)).toEqual({ sessions: 1, authorizations: 1 })
    expect(await sql('SELECT FROM consents WHERE user_id = $1', person.id)).toHaveLength(1)
    expect(await eventsOf(person)).toHaveLength(1)
  })

  test('and half of the time cancelled, does one of the two', async () => {
    const [person, browser] = [await flow.createPerson(), flow.browser()]
    const page = await flow.ask(browser, native)
    const cookie = cookieHeader(browser)
    const answers = await atOnce(50, (instance, n) =>
      send(page, cookie, n % 4 < 2 ? flow.credentials(person) : { choice: 'cancel' }, instance),
    )
    expect(alike(answers).size).toBe(1)
    const [status, location] = answers[0]!
    expect(status).toBe(303)
    const isSignedIn = /[?&]code=/.test(location!) ? 1 : 0
    expect(await liveOf(person)).toEqual({ sessions: isSignedIn, authorizations: isSignedIn })
    expect(await eventsOf(person)).toHaveLength(isSignedIn)
  })

  test.each<Record<string, string>>([{ logout: 'yes' }, { logout: 'yes', everywhere: 'yes' }])(
    'to sign out, signs out once, with one entry in the audit trail: %o',
    async (choices) => {
      const { person, browser, client } = await signedIn()
      const question = { client_id: client.id, post_logout_redirect_uri: signedOut }
      const page = await browser.get(`${issuer.issuer}/session/end?${formOf(question)}`)
      const cookie = cookieHeader(browser)
      const answers = await atOnce(50, (instance) => send(page, cookie, choices, instance))
      expect(alike(answers.map(([status, location]) => [status, location]))).toEqual(
        new Set([JSON.stringify([303, signedOut])]),
      )
      expect(await liveOf(person)).toEqual({ sessions: 0, authorizations: 0 })
      expect(await sql(`SELECT FROM logs WHERE key = 'Session.End' AND user_id = $1`, person.id)).toHaveLength(1)
    },
  )
})

type Sent = [status: number, location: string | null, setCookies: string[]]
/** A form with these cookies, however many answers have set others meanwhile. */
const send = async (page: Visit, cookie: string, values: Record<string, string>, instance: number): Promise<Sent> => {
  const { action, fields } = page.forms[0]!
  const answer = await fetch(action.replace(issuer.baseUrl, issuer.urls[instance]!), {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, origin: new URL(issuer.baseUrl).origin },
    body: formOf({ ...fields, ...values }),
  })
  await answer.text()
  return [answer.status, answer.headers.get('location'), answer.headers.getSetCookie()]
}

describe('a request that was stored is used once by fifty browsers at once,', () => {
  const open = async (location: string) => {
    const url = new URL(location, issuer.baseUrl)
    const answers = await atOnce(50, async (instance) => {
      const answer = await fetch(issuer.urls[instance]! + url.pathname + url.search, { redirect: 'manual' })
      await answer.text()
      return answer.headers.get('location')
    })
    return answers.filter((to) => to?.startsWith('/sign-in/'))
  }

  test('when it was sent ahead', async () => {
    const web = await flow.createClient({ type: 'Traditional' })
    const parameters = new URL(flow.authorizationUrl(web)).searchParams
    parameters.set('client_secret', web.secret!)
    const pushed = await fetch(`${issuer.issuer}/request`, { method: 'POST', body: parameters })
    const { request_uri } = (await pushed.json()) as { request_uri: string }
    expect(await open(`/oidc/auth?${formOf({ client_id: web.id, request_uri })}`)).toHaveLength(1)
  })

  test('when a page of another site posted it', async () => {
    const answer = await fetch(`${issuer.issuer}/auth`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: 'https://shop.example.test', 'sec-fetch-site': 'cross-site' },
      body: new URL(flow.authorizationUrl(native)).searchParams,
    })
    expect(await open(answer.headers.get('location')!)).toHaveLength(1)
  })
})

test('the cookie of a session is replaced once a day, although fifty requests find it due', async () => {
  const { browser, client } = await signedIn()
  const old = browser.cookies.get('surrogate_session')!
  await sql(`UPDATE sessions SET rotated_at = now() - interval '25 hours'`)
  const url = flow.authorizationUrl(client, { prompt: 'none', scope: 'openid' }).slice(issuer.baseUrl.length)
  const answers = await atOnce(50, async (instance) => {
    const headers = { cookie: `surrogate_session=${old}` }
    const answer = await fetch(issuer.urls[instance] + url, { redirect: 'manual', headers })
    await answer.text()
    return { location: answer.headers.get('location'), set: answer.headers.getSetCookie() }
  })
  expect(answers.filter(({ location }) => /[?&]code=/.test(location ?? ''))).toHaveLength(50)
  const fresh = answers.flatMap(({ set }) => set)
  expect(fresh).toHaveLength(1)
  browser.cookies.set('surrogate_session', /=([^;]+)/.exec(fresh[0]!)![1]!)
  expect(parametersOf(await flow.ask(browser, client, { prompt: 'none' }))).toHaveProperty('code')
})

test('of fifty wrong verifiers at once five are counted, and then the right one is refused on either instance', async () => {
  const [person, browser] = [await flow.createPerson(), flow.browser()]
  const code = await flow.signIn(browser, native, person)
  const answers = await atOnce(50, (instance) => flow.redeem(native, code, instance, { code_verifier: 'w'.repeat(43) }))
  expect(alike(answers.map(({ status, body }) => [status, body.error]))).toEqual(
    new Set([JSON.stringify([400, 'invalid_grant'])]),
  )
  for (const instance of [0, 1])
    expect(await flow.redeem(native, code, instance)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(
    await sql(
      'SELECT FROM refresh_tokens r JOIN authorizations a ON a.id = authorization_id WHERE user_id = $1',
      person.id,
    ),
  ).toEqual([])
})

/** What ends something, each at one of the instances. */
type End = (signedIn: SignedIn, instance: number) => Promise<unknown>
const api =
  (method: string, pathOf: (signedIn: SignedIn) => string, body?: unknown): End =>
  async (signedIn, instance) => {
    const answer = await issuer.api(method, pathOf(signedIn), body, { instance, token: management })
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  }
let management: string
beforeAll(async () => {
  management = await issuer.managementToken()
})
const revocation: End = async ({ client, tokens }, instance) => {
  const form = formOf({ client_id: client.id, token: tokens.refresh_token })
  const answer = await fetch(`${issuer.urls[instance]}/oidc/token/revocation`, { method: 'POST', body: form })
  expect(answer.status).toBe(200)
}
const logout: End = async ({ browser, tokens }, instance) => {
  const url = `${issuer.urls[instance]}/oidc/session/end?${formOf({ id_token_hint: tokens.id_token })}`
  expect((await browser.send(url)).status).toBe(200)
}
const password = { password: 'another good password' }
const endsOfGrants: Record<string, End> = {
  'the client gives it up': revocation,
  'an administrator ends the grant': api('DELETE', ({ person, sid }) => `/users/${person.id}/grants/${sid}`),
}
const endsOfSessions: Record<string, End> = {
  'the person signs out': logout,
  'an administrator ends the session': api('DELETE', (s) => `/users/${s.person.id}/sessions/${s.sessionId}`),
}
const endsOfPeople: Record<string, End> = {
  'the person is suspended': api('PATCH', ({ person }) => `/users/${person.id}/is-suspended`, { isSuspended: true }),
  'the person is deleted': api('DELETE', ({ person }) => `/users/${person.id}`),
  'the password is set': api('PATCH', ({ person }) => `/users/${person.id}/password`, password),
}

/** Rounds, in each of which the end comes a little later among the requests. */
const rounds = [1, 5]
const racers = 12

/** Runs an end among requests, and answers what those got that were answered with tokens. */
const racing = async (round: number, end: () => Promise<unknown>, ask: (instance: number) => Promise<Answer>) => {
  const answers = await atOnce(racers, async (instance, n) => (n === round ? void (await end()) : ask(instance)))
  for (const answer of answers) if (answer) expect([200, 400, 401]).toContain(answer.status)
  return answers.flatMap((answer) => (answer?.status === 200 ? [answer.body] : []))
}
const expectDead = async ({ client }: SignedIn, issued: readonly Answer['body'][]) => {
  for (const [n, tokens] of issued.entries()) {
    expect(await flow.userinfo(tokens.access_token, n % 2)).toBe(401)
    expect(await flow.refresh(client, tokens.refresh_token, n % 2)).toMatchObject({ status: 400 })
  }
}

describe('no token lives that was refreshed while', () => {
  test.each(Object.entries({ ...endsOfGrants, ...endsOfSessions, ...endsOfPeople }))('%s', async (_, end) => {
    for (const round of rounds) {
      const state = await signedIn()
      const { client, tokens } = state
      const issued = await racing(
        round,
        () => end(state, round % 2),
        (instance) => flow.refresh(client, tokens.refresh_token, instance),
      )
      await expectDead(state, [tokens, ...issued])
    }
  })
})

describe('no token lives for a code that was redeemed while', () => {
  test.each(Object.entries({ ...endsOfSessions, ...endsOfPeople }))('%s', async (_, end) => {
    for (const round of rounds) {
      const state = await signedIn()
      const { client, browser } = state
      const code = parametersOf(await flow.ask(browser, client))['code']!
      const issued = await racing(
        round,
        () => end(state, round % 2),
        (instance) => flow.redeem(client, code, instance),
      )
      expect(issued.length).toBeLessThan(2)
      await expectDead(state, issued)
      expect(await flow.redeem(client, code)).toMatchObject({ status: 400 })
    }
  })
})

describe('nobody comes back in without a page who asked for a code while', () => {
  test.each(Object.entries({ ...endsOfSessions, ...endsOfPeople }))('%s', async (_, end) => {
    for (const round of rounds) {
      const state = await signedIn()
      const { client, browser, person } = state
      const url = flow.authorizationUrl(client, { prompt: 'none' }).slice(issuer.baseUrl.length)
      const cookie = cookieHeader(browser)
      const codes = await atOnce(racers, async (instance, n) => {
        if (n === round) return void (await end(state, instance))
        const answer = await fetch(issuer.urls[instance] + url, { redirect: 'manual', headers: { cookie } })
        expect(answer.status, await answer.text()).toBe(303)
        return new URL(answer.headers.get('location')!).searchParams
      })
      for (const answer of codes) {
        if (!answer) continue
        const code = answer.get('code')
        if (code === null) expect(answer.get('error')).toBe('login_required')
        else expect(await flow.redeem(client, code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
      }
      expect(await liveOf(person)).toEqual({ sessions: 0, authorizations: 0 })
    }
  })
})

test('a suspension that is under way is waited for without a deadlock, and nobody comes back in', async () => {
  const { person, browser, client, sessionId } = await signedIn()
  let asked: Promise<Visit> | undefined
  await issuer.database.transaction(async (query) => {
    const inside = (text: string, value: string) => query(statement('', text), [value])
    await inside('UPDATE users SET is_suspended = true WHERE id = $1', person.id)
    asked = flow.ask(browser, client, { prompt: 'none' })
    await expect
      .poll(() => sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
      .toHaveLength(1)
    await inside('SELECT FROM sessions WHERE id = $1 FOR UPDATE', sessionId)
  })
  expect(parametersOf((await asked)!)).toMatchObject({ error: 'login_required' })
})

test('a deletion that is under way is waited for without a deadlock, and nobody is signed in', async () => {
  const person = await flow.createPerson()
  const browser = flow.browser()
  const page = await flow.ask(browser, native)
  let sent: Promise<Visit> | undefined
  await issuer.database.transaction(async (query) => {
    const inside = (text: string) => query(statement('', text), [person.id])
    await inside('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE')
    sent = flow.send(browser, page, flow.credentials(person))
    await expect
      .poll(() => sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
      .toHaveLength(1)
    // Whoever waits for the person holds nothing that goes with them.
    await inside('SELECT FROM interactions WHERE user_id = $1 FOR UPDATE NOWAIT')
    await inside('DELETE FROM users WHERE id = $1')
  })
  expect([303, 400, 403]).toContain((await sent)!.status)
  expect(await liveOf(person)).toEqual({ sessions: 0, authorizations: 0 })
})

describe('nobody is signed in whose page was sent while', () => {
  test.each(Object.entries(endsOfPeople))('%s', async (_, end) => {
    for (const round of rounds) {
      const person = await flow.createPerson()
      const pages = await Promise.all(
        Array.from({ length: racers }, async () => {
          const browser = flow.browser()
          return { browser, page: await flow.ask(browser, native) }
        }),
      )
      const state = { person } as SignedIn
      const visits = await atOnce(racers, async (instance, n) => {
        if (n === round) return void (await end(state, instance))
        const { browser, page } = pages[n]!
        return flow.send(browser, page, flow.credentials(person), instance)
      })
      expect(await liveOf(person)).toEqual({ sessions: 0, authorizations: 0 })
      for (const visit of visits) {
        if (visit === undefined) continue
        expect([303, 400, 403], visit.text).toContain(visit.status)
        const code = visit.location && new URL(visit.location).searchParams.get('code')
        if (code) expect(await flow.redeem(native, code)).toMatchObject({ status: 400 })
      }
    }
  })

  test('its application is deleted', async () => {
    for (const round of rounds) {
      const [person, client] = [await flow.createPerson(), await flow.createClient()]
      const pages = await Promise.all(
        Array.from({ length: racers }, async () => {
          const browser = flow.browser()
          return { browser, page: await flow.ask(browser, client) }
        }),
      )
      const visits = await atOnce(racers, async (instance, n) => {
        if (n === round) {
          return void expect(
            (await issuer.api('DELETE', `/applications/${client.id}`, undefined, { instance, token: management }))
              .status,
          ).toBe(204)
        }
        const { browser, page } = pages[n]!
        return flow.send(browser, page, flow.credentials(person), instance)
      })
      for (const visit of visits) if (visit) expect([303, 400, 403], visit.text).toContain(visit.status)
      expect(await sql('SELECT FROM authorizations WHERE client_id = $1', client.id)).toEqual([])
    }
  })
})
