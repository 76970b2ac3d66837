import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Answer, request } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import type { Sessions, TestSession } from '../../../support/sessions.ts'
import { endSession, formIn, type LogoutTest, location, returnUri, startLogoutTest, type Values } from './browser.ts'

let logout: LogoutTest
let sessions: Sessions
let shop: TestApplication
let partner: TestApplication
let origin: string
beforeAll(async () => {
  logout = await startLogoutTest()
  sessions = logout.sessions
  shop = await logout.createClient()
  partner = await logout.createClient({ name: 'A partner' })
  origin = new URL(logout.issuer.baseUrl).origin
})
afterAll(() => logout.close())

let session: TestSession
let sid: string
beforeEach(async () => {
  session = await sessions.signIn()
  sid = await sessions.authorize(session, shop)
})

const isOver = () => sessions.isOver('sessions', session.id)
const titleOf = ({ body }: Answer) => /<title>([^<]*)<\/title>/.exec(body)?.[1]
const cookiesOf = ({ headers }: Answer) => headers.getSetCookie()
const cleared = 'surrogate_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0'
const back: Values = { post_logout_redirect_uri: returnUri, state: 'xyz' }
const entries = (userId: string) =>
  logout.issuer.sql<{ application_id: string; payload: object }>(
    `SELECT application_id, payload FROM logs WHERE key = 'Session.End' AND user_id = $1`,
    [userId],
  )
const revoke = (token: string, client: TestApplication) =>
  logout.post('/oidc/token/revocation', { token, client_id: client.id, client_secret: client.secret })

const expectQuestion = async (answer: Answer) => {
  expect([answer.status, titleOf(answer), location(answer)]).toEqual([200, 'Sign Out', null])
  expect(formIn(answer)).toBeDefined()
  expect(await isOver()).toBe(false)
}
const expectError = async (answer: Answer, status: number) => {
  expect([answer.status, location(answer)]).toEqual([status, null])
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(titleOf(answer)).toMatch(/^Error: /)
  expect(cookiesOf(answer)).toEqual([])
  expect(await isOver()).toBe(false)
}

test("a stranger's link asks, on a page that nobody can frame, keep or be told of", async () => {
  const answer = await logout.get({}, session)
  await expectQuestion(answer)
  expect(cookiesOf(answer)).toEqual([])
  expect(answer.body).toMatch(/<form [^>]*id="op\.logoutForm" [^>]*action="\/oidc\/session\/end\/confirm"/)
  expect(answer.body).toContain('name="logout" value="yes"')
  expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('referrer-policy')).toBe('same-origin')
  expect(answer.headers.get('x-frame-options')).toBe('DENY')
})

test("an image on another site, which brings no cookie, ends nothing and leaves the browser's cookies alone", async () => {
  const answer = await logout.get({ client_id: shop.id }, undefined, { 'sec-fetch-site': 'cross-site' })
  expect(answer.status).toBe(200)
  expect(cookiesOf(answer)).toEqual([])
  expect(await isOver()).toBe(false)
})

test('signing out here ends the session, what the client has of it, and what others have without offline access', async () => {
  const own = await sessions.authorize(session, shop, { isOffline: true })
  const online = await sessions.authorize(session, partner)
  const offline = await sessions.authorize(session, partner, { isOffline: true })
  const other = await sessions.signIn({ userId: session.userId })
  const page = await logout.get({ client_id: shop.id, ...back }, session)
  await expectQuestion(page)
  expect(page.body).toContain('The shop')
  expect(page.body).toContain('Somebody')
  const answer = await logout.submit(formIn(page)!, session)
  expect([answer.status, location(answer)]).toEqual([303, `${returnUri}?state=xyz`])
  expect(cookiesOf(answer)).toEqual([cleared])
  expect(await isOver()).toBe(true)
  for (const id of [sid, own, online]) {
    expect(await sessions.isOver('authorizations', id)).toBe(true)
    expect(await logout.issuer.sql('SELECT kind FROM revocations WHERE value = $1', [id])).toEqual([{ kind: 'sid' }])
  }
  expect(await sessions.isOver('authorizations', offline)).toBe(false)
  expect(await sessions.isOver('sessions', other.id)).toBe(false)
  expect(await entries(session.userId)).toMatchObject([
    { application_id: shop.id, payload: { sessionId: session.id, everywhere: false, wasAsked: true } },
  ])
  expect(await logout.issuer.sql('SELECT end_reason, ended_by FROM sessions WHERE id = $1', [session.id])).toEqual([
    { end_reason: 'logout', ended_by: session.userId },
  ])
})

test('the cookie of somebody who signed out is worth nothing', async () => {
  await logout.submit(formIn(await logout.get({}, session))!, session)
  const replayed = await logout.get({}, session)
  expect(formIn(replayed)).toBeUndefined()
  expect(replayed.body).toContain('You have successfully signed out.')
  expect(replayed.body).not.toContain('Somebody')
})

test('"everywhere" ends every session and every grant of the person, and of nobody else', async () => {
  const other = await sessions.signIn({ userId: session.userId })
  const offline = await sessions.authorize(other, partner, { isOffline: true })
  const stranger = await sessions.signIn()
  await logout.issuer.sql(`INSERT INTO known_devices (digest, user_id) VALUES ('\\x01', $1), ('\\x01', $2)`, [
    session.userId,
    stranger.userId,
  ])
  const form = formIn(await logout.get({}, session))!
  const answer = await logout.submit(form, session, { logout: 'yes', everywhere: 'yes' })
  expect([answer.status, location(answer), cookiesOf(answer)]).toEqual([303, endSession, [cleared]])
  for (const { id } of [session, other]) expect(await sessions.isOver('sessions', id)).toBe(true)
  for (const id of [sid, offline]) expect(await sessions.isOver('authorizations', id)).toBe(true)
  expect(await sessions.isOver('sessions', stranger.id)).toBe(false)
  expect(await logout.issuer.sql(`SELECT user_id FROM known_devices WHERE digest = '\\x01'`)).toEqual([
    { user_id: stranger.userId },
  ])
  expect(await entries(session.userId)).toMatchObject([{ payload: { everywhere: true } }])
})

test.each<[string, Record<string, string>]>([
  ['another site', { origin: 'https://evil.example' }],
  ['another site, as the browser says', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
  ['a neighbour', { origin: 'null', 'sec-fetch-site': 'same-site' }],
  ['a frame without an origin', { origin: 'null' }],
  ['nowhere', {}],
])('a form from %s signs nobody out', async (_name, headers) => {
  const form = formIn(await logout.get({}, session))!
  await expectError(await logout.submit(form, session, { logout: 'yes' }, headers), 403)
})

test('a form of ours without an origin counts where the browser vouches for it', async () => {
  const form = formIn(await logout.get({}, session))!
  const headers = { origin: 'null', 'sec-fetch-site': 'same-origin' }
  expect((await logout.submit(form, session, { logout: 'yes' }, headers)).status).toBe(303)
  expect(await isOver()).toBe(true)
})

test('a value against forgery is good for one session and one request only', async () => {
  const page = await logout.get({ client_id: shop.id, ...back }, session)
  const { action, xsrf } = formIn(page)!
  const foreign = formIn(await logout.get({ client_id: shop.id, ...back }, await sessions.signIn()))!
  const other = formIn(await logout.get({ client_id: shop.id }, session))!
  const changed = formIn(await logout.get({ client_id: shop.id, ...back, state: 'abc' }, session))!
  const wrong = [foreign.xsrf, other.xsrf, changed.xsrf, '', `${xsrf}=`, `A${xsrf.slice(1)}A`]
  for (const value of wrong) await expectError(await logout.submit({ action, xsrf: value }, session), 403)
  const none = await logout.post(action, { logout: 'yes' }, session, { origin })
  await expectError(none, 403)
  const twice = await logout.post(action, { xsrf: [xsrf, xsrf], logout: 'yes' }, session, { origin })
  await expectError(twice, 403)
})

test('a changed address is checked again when the form comes', async () => {
  const { xsrf } = formIn(await logout.get({ client_id: shop.id, ...back }, session))!
  const target = new URLSearchParams({ client_id: shop.id, post_logout_redirect_uri: 'https://evil.example/' })
  await expectError(await logout.submit({ action: `${endSession}/confirm?${target}`, xsrf }, session), 400)
})

test('sent five times at once, the form has one effect and leads to the same place', async () => {
  const form = formIn(await logout.get({ client_id: shop.id, ...back }, session))!
  const answers = await Promise.all(Array.from({ length: 5 }, () => logout.submit(form, session)))
  expect(answers.map((answer) => [answer.status, location(answer)])).toEqual(
    Array.from({ length: 5 }, () => [303, `${returnUri}?state=xyz`]),
  )
  expect(await entries(session.userId)).toHaveLength(1)
})

test('whoever stays is still signed in, and the client is told nothing', async () => {
  const form = formIn(await logout.get({ client_id: shop.id, ...back }, session))!
  const answer = await logout.submit(form, session, {})
  expect([answer.status, location(answer), cookiesOf(answer)]).toEqual([200, null, []])
  expect(answer.body).toContain(`href="${returnUri}"`)
  expect(await isOver()).toBe(false)
})

test('a client that shows an ID token of this session is believed, also with an expired one', async () => {
  const answer = await logout.get({ id_token_hint: logout.idToken(session, shop, sid), ...back }, session)
  expect([answer.status, location(answer), cookiesOf(answer)]).toEqual([303, `${returnUri}?state=xyz`, [cleared]])
  expect(await isOver()).toBe(true)
  expect(await entries(session.userId)).toMatchObject([{ application_id: shop.id, payload: { wasAsked: false } }])
})

test('an ID token that proves nothing of this session asks', async () => {
  const elsewhere = await sessions.signIn({ userId: session.userId })
  const stranger = await sessions.signIn()
  const hints = [
    logout.idToken(session, shop, await sessions.authorize(elsewhere, shop)),
    logout.idToken(stranger, shop, await sessions.authorize(stranger, shop)),
    logout.idToken(stranger, shop, sid),
    logout.idToken(session, partner, sid),
    logout.idToken(session, shop, undefined),
    logout.idToken(session, shop, 'ps_unknown'),
  ]
  for (const hint of hints) await expectQuestion(await logout.get({ id_token_hint: hint, ...back }, session))
})

test('what is no ID token of the client is refused: nothing ends, nobody is sent anywhere', async () => {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: logout.issuer.issuer, sub: session.userId, aud: shop.id, iat: now, exp: now + 600, sid }
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const hints = [
    logout.sign({ ...claims, client_id: shop.id, jti: 'x' }, 'access'),
    logout.sign({ ...claims, events, jti: 'x' }, 'logout'),
    logout.sign({ ...claims, iss: 'https://elsewhere.example/oidc' }),
    logout.sign({ ...claims, aud: [shop.id, partner.id] }),
    logout.sign({ ...claims, sub: undefined }),
    'a.b.c',
    'garbage',
  ]
  for (const hint of hints) await expectError(await logout.get({ id_token_hint: hint, ...back }, session), 400)
  const own = logout.idToken(session, shop, sid)
  await expectError(await logout.get({ id_token_hint: own, client_id: partner.id, ...back }, session), 400)
})

test('a client that has just given up its refresh token is believed for a minute', async () => {
  const token = await sessions.refreshToken(sid)
  const parameters = { client_id: shop.id, ...back }
  await expectQuestion(await logout.get(parameters, session))
  expect(await revoke(token, shop)).toMatchObject({ status: 200, body: {} })
  await expectQuestion(await logout.get({ client_id: partner.id, ...back }, session))
  await expectQuestion(await logout.get(parameters, await sessions.signIn({ userId: session.userId })))
  const move = `UPDATE refresh_tokens SET revoked_at = now() - $2::interval WHERE authorization_id = $1`
  await logout.issuer.sql(move, [sid, '61 seconds'])
  await expectQuestion(await logout.get(parameters, session))
  await logout.issuer.sql(move, [sid, '59 seconds'])
  const stranger = await sessions.signIn()
  const foreign = logout.idToken(stranger, shop, await sessions.authorize(stranger, shop))
  await expectQuestion(await logout.get({ id_token_hint: foreign, ...back }, session))
  const answer = await logout.get(parameters, session)
  expect([answer.status, location(answer)]).toEqual([303, `${returnUri}?state=xyz`])
  expect(await isOver()).toBe(true)
})

test('an address that is not registered is never gone to, and nothing ends', async () => {
  const hint = logout.idToken(session, shop, sid)
  const addresses = [
    `${returnUri}/`,
    `${returnUri}?foo=bar`,
    `${returnUri}#x`,
    'https://APP.example.test/signed-out',
    'https://app.example.test:443/signed-out',
    'https://app.example.test@evil.example/signed-out',
    'javascript:alert(1)',
    '//evil.example',
  ]
  for (const address of addresses) {
    const asked = { id_token_hint: hint, post_logout_redirect_uri: address }
    await expectError(await logout.get(asked, session), 400)
    await expectError(await logout.get({ client_id: shop.id, post_logout_redirect_uri: address }), 400)
  }
})

test('without a session a client gets its user back, and others a page', async () => {
  const hint = logout.idToken(session, shop, sid)
  for (const asked of [{ client_id: shop.id }, { id_token_hint: hint }]) {
    const answer = await logout.get({ ...asked, ...back })
    expect([answer.status, location(answer), cookiesOf(answer)]).toEqual([303, `${returnUri}?state=xyz`, []])
  }
  const answer = await logout.get({ ...back })
  expect([answer.status, location(answer), titleOf(answer)]).toEqual([200, null, 'Sign Out'])
  expect(await isOver()).toBe(false)
})

test('a native application comes back at any port of the machine itself', async () => {
  const native = await logout.createClient({ type: 'Native', uris: ['http://127.0.0.1/out', 'io.example://out'] })
  const to = (uri: string) => logout.get({ client_id: native.id, post_logout_redirect_uri: uri })
  expect(location(await to('http://127.0.0.1:50123/out'))).toBe('http://127.0.0.1:50123/out')
  expect(location(await to('io.example://out'))).toBe('io.example://out')
  for (const uri of ['http://127.0.0.2:50123/out', 'http://127.0.0.1:50123/other', 'http://127.0.0.1.evil.example/out'])
    expect((await to(uri)).status).toBe(400)
})

test('state comes back as it was, whatever is in it', async () => {
  const state = 'a\r\nSet-Cookie: x=1 <script> 🙂 &state=2'
  const query = await logout.createClient({ uris: [`${returnUri}?from=us`] })
  const answer = await logout.get({
    client_id: query.id,
    post_logout_redirect_uri: `${returnUri}?from=us`,
    state,
  })
  const { searchParams } = new URL(location(answer)!)
  expect([...searchParams]).toEqual([
    ['from', 'us'],
    ['state', state],
  ])
  expect(cookiesOf(answer)).toEqual([])
})

test('a parameter twice, an unknown client, and what cannot be read are told by a page', async () => {
  await expectError(await logout.get({ client_id: [shop.id, partner.id] }, session), 400)
  await expectError(await logout.get({ client_id: shop.id, ...back, state: ['a', 'b'] }, session), 400)
  await expectError(await logout.get({ client_id: '<script>alert(1)</script>' }, session), 400)
  await expectError(await logout.get({ state: 'a\0b' }, session), 400)
  await expectError(await logout.post(endSession, { state: 'x'.repeat(20_000) }, session), 400)
  await expectError(await request(`${logout.issuer.url}${endSession}?state=%zz`), 400)
  const { body } = await logout.get({ client_id: '<script>alert(1)</script>' })
  expect(body).not.toContain('<script>')
})

test("another site's POST, which brings no cookies, is asked again by GET, once", async () => {
  const hint = logout.idToken(session, shop, sid)
  const headers = { origin: 'https://app.example.test', 'sec-fetch-site': 'cross-site' }
  const posted = await logout.post(endSession, { id_token_hint: hint, ...back }, undefined, headers)
  expect([posted.status, cookiesOf(posted)]).toEqual([303, []])
  expect(posted.headers.get('referrer-policy')).toBe('no-referrer')
  const next = location(posted)!
  expect(next).toMatch(/^\/oidc\/session\/end\?request_uri=/)
  expect(next).not.toContain(hint)
  const rows = await logout.issuer.sql(`SELECT parameters::text, expires_at - created_at AS life FROM pushed_requests`)
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows)).not.toContain(hint)
  const cookie = { headers: { cookie: `surrogate_session=${session.cookie}` } }
  const answer = await request(logout.issuer.url + next, cookie)
  expect([answer.status, location(answer), cookiesOf(answer)]).toEqual([303, `${returnUri}?state=xyz`, [cleared]])
  expect(await isOver()).toBe(true)
  expect((await request(logout.issuer.url + next, cookie)).status).toBe(400)
})

test('what another site posted is forgotten after a minute, and proves nothing by itself', async () => {
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const post = async () => location(await logout.post(endSession, { client_id: shop.id, ...back }, undefined, headers))!
  const cookie = { headers: { cookie: `surrogate_session=${session.cookie}` } }
  await expectQuestion(await request(logout.issuer.url + (await post()), cookie))
  const late = await post()
  await logout.issuer.sql(`UPDATE pushed_requests SET expires_at = now()`)
  await expectError(await request(logout.issuer.url + late, cookie), 400)
})

test('a POST by a program or a page of ours is the same as a GET, but for the entity tag', async () => {
  const got = await logout.get({ client_id: shop.id }, session)
  expect(got.headers.get('etag')).toMatch(/^"[\w-]{22}"$/)
  for (const headers of [{}, { origin }] as Record<string, string>[]) {
    const posted = await logout.post(endSession, { client_id: shop.id }, session, headers)
    await expectQuestion(posted)
    expect(posted.headers.get('etag')).toBeNull()
    expect(posted.body).toBe(got.body)
  }
})

test('the pages speak the language that the client asks for, else that of the browser', async () => {
  const german = await logout.get({ ui_locales: 'de-AT en' }, session, { 'accept-language': 'fr' })
  expect(german.body).toContain('<html lang="de"')
  expect((await logout.get({}, session, { 'accept-language': 'fr' })).body).toContain('<html lang="fr"')
  const { action, xsrf } = formIn(german)!
  const stayed = await logout.submit({ action, xsrf }, session, {})
  expect(stayed.body).toContain('<html lang="de"')
})

test('the confirmation takes no GET', async () => {
  const answer = await request(`${logout.issuer.url}${endSession}/confirm`)
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
})

test('neither cookies nor hints are logged', async () => {
  const hint = logout.idToken(session, shop, sid)
  await logout.get({ id_token_hint: hint, ...back }, session)
  await logout.get({ id_token_hint: `${hint}x` }, session)
  const logs = JSON.stringify(await entries(session.userId))
  for (const secret of [session.cookie, hint]) {
    expect(logout.issuer.logged()).not.toContain(secret)
    expect(logs).not.toContain(secret)
  }
})
