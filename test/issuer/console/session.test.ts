import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { consoleClientId, consoleRoles } from '../../../issuer/base/console-roles.ts'
import { rateLimitDefaults } from '../../../issuer/base/rate-limits/rate-limits.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { createBrowser } from '../../support/browser.ts'
import { verifier } from '../../support/code-flow.ts'
import { consoleCookie, startTestConsole, type TestConsole } from '../../support/console.ts'
import { formOf, request } from '../../support/issuer.ts'

let home: TestConsole

beforeAll(async () => {
  home = await startTestConsole({ instances: 2 })
})

afterAll(() => home.close())

const signedOut = { status: 401, body: { code: 'console.signed_out' } }

test('somebody with a role signs in, comes back to the page they wanted, and is told who they are', async () => {
  const ada = await home.createMember('operator')
  await home.issuer.sql(`UPDATE users SET name = 'Ada', primary_email = $2 WHERE id = $1`, [ada.id, `${ada.id}@a.test`])
  const browser = home.flow.browser()
  const before = Math.floor(Date.now() / 1000)
  const shell = await home.signIn(browser, ada, '?return_to=/console/users?page=2%23top')
  expect([shell.status, shell.url]).toEqual([200, `${home.issuer.baseUrl}/console/users?page=2#top`])

  const { body } = await home.call(browser, 'GET', '/session')
  expect(body).toEqual({
    user: { id: ada.id, name: 'Ada', username: ada.username, primaryEmail: `${ada.id}@a.test`, avatar: null },
    roles: ['operator'],
    scopes: ['applications', 'hooks', 'organizations', 'rbac', 'read', 'sign-in', 'users'],
    authTime: expect.any(Number),
    expiresAt: expect.any(Number),
    baseUrl: home.issuer.baseUrl,
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  })
  expect(body.authTime).toBeGreaterThanOrEqual(before)
  // 8 hours.
  expect(Math.abs(body.expiresAt - before - 28_800)).toBeLessThan(120)
})

test('the cookie is strict and out of reach of scripts, and neither it nor a token is stored or answered', async () => {
  const ada = await home.createMember('owner')
  const browser = home.flow.browser()
  await home.signIn(browser, ada)
  const line = browser.setCookies.find((one) => one.startsWith(`${consoleCookie}=`))
  expect(line).toMatch(/^surrogate-console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=28800$/)
  expect(browser.setCookies.find((one) => one.startsWith(`${consoleCookie}-sign-in-`))).toMatch(
    /; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
  )
  const [row] = await home.issuer.sql<{ sealed: Buffer; text: string }>(
    'SELECT sealed, to_jsonb(c)::text AS text FROM console_sessions c WHERE user_id = $1',
    [ada.id],
  )
  const cookie = browser.cookies.get(consoleCookie)!
  expect(row!.text).not.toContain(cookie)
  expect(row!.sealed.toString('latin1')).not.toMatch(/eyJ|accessToken/)
  expect(home.issuer.logged()).not.toContain(cookie)
  const answers = [await home.call(browser, 'GET', '/session'), await home.call(browser, 'GET', '/api/users')]
  expect(JSON.stringify(answers)).not.toMatch(/eyJ/)
})

test('a call is that of the Management API, with what the person may do, on any instance', async () => {
  const [operator, auditor] = [await home.createMember('operator'), await home.createMember('auditor')]
  const browser = await home.browserOf(operator)
  const made = await home.call(browser, 'POST', '/api/users', { username: 'made_by_hand' }, { instance: 1 })
  expect(made).toMatchObject({ status: 200, body: { username: 'made_by_hand' } })
  expect(await home.call(browser, 'GET', `/api/users/${made.body.id}`)).toMatchObject({ status: 200 })
  const page = await home.call(browser, 'GET', '/api/users?page=1&page_size=1')
  expect(Number(page.headers.get('total-number'))).toBeGreaterThan(2)

  const watching = await home.browserOf(auditor)
  expect((await home.call(watching, 'GET', '/api/users')).status).toBe(200)
  for (const [method, path, body] of [
    ['POST', '/api/users', { username: 'forged' }],
    ['DELETE', `/api/users/${made.body.id}`, undefined],
    ['POST', `/api/users/${auditor.id}/roles`, { roleIds: [consoleRoles.owner.id] }],
    ['GET', '/api/hooks/any/signing-key', undefined],
  ] as const)
    expect([path, await home.call(watching, method, path, body)]).toMatchObject([
      path,
      { status: 403, body: { code: 'auth.forbidden' } },
    ])
})

test('an Authorization header of the page counts for nothing', async () => {
  const browser = await home.browserOf(await home.createMember('auditor'))
  const headers = { authorization: `Bearer ${await home.issuer.managementToken()}` }
  const forged = await home.call(browser, 'POST', '/api/users', { username: 'forged' }, { headers })
  expect(forged.status).toBe(403)
  const stranger = createBrowser(home.issuer.baseUrl)
  expect(await home.call(stranger, 'GET', '/api/users', undefined, { headers })).toMatchObject(signedOut)
})

test('the audit trail names the person', async () => {
  const owner = await home.createMember('owner')
  const browser = await home.browserOf(owner)
  const { body: role } = await home.call(browser, 'POST', '/api/roles', { name: 'Named', description: 'x' })
  expect(role.id).toEqual(expect.any(String))
  const rows = await home.issuer.sql<{ user_id: string; application_id: string; payload: unknown }>(
    `SELECT user_id, application_id, payload FROM logs WHERE key = 'Management.createRole'`,
  )
  expect(rows).toMatchObject([
    {
      user_id: owner.id,
      application_id: consoleClientId,
      payload: { subject: owner.id, person: { userId: owner.id, sid: expect.stringMatching(/^ps_/) } },
    },
  ])
  // Also where it is about somebody else.
  const { body: made } = await home.call(browser, 'POST', '/api/users', { username: 'named_too' })
  const list = async (query: string) =>
    (await home.issuer.api('GET', `/logs?${query}`)).body.map(({ key }: { key: string }) => key)
  expect(await list(`personId=${owner.id}`)).toEqual(['Management.createUser', 'Management.createRole'])
  expect(await list(`userId=${made.id}`)).toEqual(['Management.createUser'])
})

test('an Idempotency-Key is each person’s own, although all use one application', async () => {
  const owners = [await home.createMember('owner'), await home.createMember('owner')]
  const answers = []
  for (const owner of owners) {
    const browser = await home.browserOf(owner)
    const body = { name: 'One key', description: 'x' }
    const again = () => home.call(browser, 'POST', '/api/roles', body, { headers: { 'idempotency-key': 'one-key' } })
    answers.push([(await again()).status, (await again()).headers.get('idempotent-replayed')])
  }
  expect(answers).toEqual([
    [200, 'true'],
    [422, 'true'],
  ])
})

test('roles that are given and taken count at the next call', async () => {
  const ada = await home.createMember('auditor')
  const browser = await home.browserOf(ada)
  const create = (username: string) => home.call(browser, 'POST', '/api/users', { username })
  expect((await create('too_early')).status).toBe(403)
  await home.giveRole(ada.id, 'operator')
  expect((await create('in_time')).status).toBe(200)
  await home.issuer.sql('DELETE FROM user_roles WHERE user_id = $1 AND role_id = $2', [
    ada.id,
    consoleRoles.operator.id,
  ])
  expect((await create('too_late')).status).toBe(403)
  await home.issuer.sql('DELETE FROM user_roles WHERE user_id = $1', [ada.id])
  expect(await home.call(browser, 'GET', '/api/users')).toMatchObject(signedOut)
  expect(await home.call(browser, 'GET', '/session')).toMatchObject(signedOut)
})

test.for([
  ['suspended', (id: string) => home.issuer.api('PATCH', `/users/${id}/is-suspended`, { isSuspended: true })],
  [
    'given another password',
    (id: string) => home.issuer.api('PATCH', `/users/${id}/password`, { password: 'horse staple 71' }),
  ],
  ['deleted', (id: string) => home.issuer.api('DELETE', `/users/${id}`)],
] as const)('who was %s is out at the next call', async ([, end]) => {
  const ada = await home.createMember('operator')
  const browser = await home.browserOf(ada)
  expect((await end(ada.id)).status).toBeLessThan(300)
  expect(await home.call(browser, 'GET', '/api/users')).toMatchObject(signedOut)
})

test('an answer that goes on ends with the session, and with a role that allowed it', async () => {
  const own = await startTestConsole({ config: { rateLimits: { ...rateLimitDefaults, management: 1_000 } } })
  onTestFinished(own.close)
  // Each caller has one, made when it is known who calls.
  const counted = async () => (await own.issuer.sql('SELECT FROM rate_limit_buckets')).length
  for (const end of [
    (id: string) => own.issuer.sql('UPDATE users SET is_suspended = true WHERE id = $1', [id]),
    (id: string) => own.issuer.sql('DELETE FROM user_roles WHERE user_id = $1', [id]),
    (id: string) => own.issuer.sql('UPDATE console_sessions SET expires_at = now() WHERE user_id = $1', [id]),
  ]) {
    const ada = await own.createMember('integrator')
    const browser = await own.browserOf(ada)
    const before = await counted()
    const waiting = own.call(browser, 'GET', '/api/events?types=Scope.*&wait=60')
    const cut = expect(waiting).rejects.toThrow('fetch failed')
    await expect.poll(counted).toBeGreaterThan(before)
    await end(ada.id)
    await cut
  }
})

test('a session ends after half an hour without use, and eight hours after it began', async () => {
  const ada = await home.createMember('auditor')
  for (const [column, time] of [
    ['last_seen_at', `now() - interval '31 minutes'`],
    ['expires_at', 'now()'],
  ]) {
    const browser = await home.browserOf(ada)
    expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
    await home.issuer.sql(`UPDATE console_sessions SET ${column} = ${time} WHERE user_id = $1`, [ada.id])
    expect([column, await home.call(browser, 'GET', '/session')]).toMatchObject([column, signedOut])
  }
  const browser = await home.browserOf(ada)
  await home.issuer.sql(`UPDATE console_sessions SET last_seen_at = now() - interval '29 minutes' WHERE user_id = $1`, [
    ada.id,
  ])
  expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
  const [row] = await home.issuer.sql<{ isSeen: boolean }>(
    `SELECT bool_or(last_seen_at > now() - interval '1 minute') AS "isSeen" FROM console_sessions WHERE user_id = $1`,
    [ada.id],
  )
  expect(row).toEqual({ isSeen: true })
})

test('an access token that expires is replaced, when many calls on two instances need it at once', async () => {
  const ada = await home.createMember('auditor')
  const browser = await home.browserOf(ada)
  const kept = () =>
    home.issuer.sql<{ sealed: Buffer; isFresh: boolean }>(
      `SELECT sealed, token_expires_at > now() + interval '5 minutes' AS "isFresh" FROM console_sessions WHERE user_id = $1`,
      [ada.id],
    )
  const [before] = await kept()
  await home.issuer.sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [ada.id])
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      home.call(browser, 'GET', '/api/users', undefined, { instance: index % 2 }),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
  const [after] = await kept()
  expect(after!.isFresh).toBe(true)
  expect(after!.sealed.equals(before!.sealed)).toBe(false)
  expect((await home.call(browser, 'GET', '/session')).status).toBe(200)
})

test('signing out ends the session here, the sign-in at the issuer, and what the cookie was good for', async () => {
  const ada = await home.createMember('auditor')
  const browser = await home.browserOf(ada)
  const stolen = new Map(browser.cookies)
  expect(await home.call(browser, 'POST', '/session/end', {})).toMatchObject({
    status: 200,
    body: { location: '/console/signed-out' },
  })
  expect(browser.cookies.has(consoleCookie)).toBe(false)
  const thief = createBrowser(home.issuer.baseUrl)
  for (const [name, value] of stolen) thief.cookies.set(name, value)
  expect(await home.call(thief, 'GET', '/api/users')).toMatchObject(signedOut)
  // The issuer asks for the password again.
  expect((await thief.get(`${home.issuer.baseUrl}/console/sign-in`)).forms.length).toBeGreaterThan(0)
  expect((await thief.get(`${home.issuer.baseUrl}/console/signed-out`)).text).toContain('You are signed out')
})

test('who has no role is told so, and can sign in as somebody else', async () => {
  const nobody = await home.createMember()
  const browser = home.flow.browser()
  const page = await home.signIn(browser, nobody)
  expect([page.status, page.text]).toEqual([403, expect.stringContaining('no role in the console')])
  expect(browser.cookies.has(consoleCookie)).toBe(false)
  expect(page.text).toContain('/console/sign-in?as=another')
  const again = await browser.get(`${home.issuer.baseUrl}/console/sign-in?as=another`)
  expect(again.forms.length).toBeGreaterThan(0)
})

test('a refresh token of the console is of no use to another application, nor to somebody who says to be the console', async () => {
  const key = randomBytes(32)
  const own = await startTestConsole({ config: { keyEncryptionKey: key } })
  onTestFinished(own.close)
  const ada = await own.createMember('owner')
  const browser = await own.browserOf(ada)
  const [row] = await own.issuer.sql<{ id: string; sealed: Buffer }>('SELECT id, sealed FROM console_sessions')
  const opened = createEnvelope({ current: key }).open(row!.sealed, `console-session:${row!.id}`)
  const { accessToken, refreshToken } = JSON.parse(opened.toString())
  const shop = await own.flow.createClient({ type: 'Traditional' })
  expect(await own.flow.refresh(shop, refreshToken)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  const asConsole = { grant_type: 'refresh_token', client_id: consoleClientId, refresh_token: refreshToken }
  expect(await own.issuer.token(undefined, asConsole)).toMatchObject({ status: 401 })
  // Not a token for anything but the Management API.
  expect(await own.flow.userinfo(accessToken)).toBe(401)
  const account = await own.issuer.api('GET', '/my-account', undefined, { token: accessToken })
  expect(account.status).toBe(401)
  expect((await own.call(browser, 'GET', '/session')).status).toBe(200)
})

test('nobody outside is the console: its codes and its tokens are of no use elsewhere', async () => {
  const owner = await home.createMember('owner')
  const browser = home.flow.browser()
  const codeFlow = {
    client_id: consoleClientId,
    redirect_uri: `${home.issuer.baseUrl}/console/callback`,
    response_type: 'code',
    scope: 'openid all',
    resource: home.issuer.managementResource,
    code_challenge: 'x'.repeat(43),
    code_challenge_method: 'S256',
  }
  const page = await browser.get(`${home.issuer.issuer}/auth?${formOf(codeFlow)}`)
  const visit = await browser.submit(page, home.flow.credentials(owner), { follow: false })
  const code = new URL(visit.location!).searchParams.get('code')!
  for (const headers of [{}, { authorization: `Basic ${btoa(`${consoleClientId}:`)}` }]) {
    const answer = await request(`${home.issuer.issuer}/token`, {
      method: 'POST',
      headers,
      body: formOf({
        grant_type: 'authorization_code',
        client_id: consoleClientId,
        code,
        code_verifier: verifier,
        redirect_uri: codeFlow.redirect_uri,
      }),
    })
    expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  }

  // An application of one's own gets none of the permissions, whatever roles its person has.
  const shop = await home.flow.createClient({ type: 'Traditional' })
  const own = home.flow.browser()
  const asked = { resource: home.issuer.managementResource, scope: 'openid offline_access all read' }
  const tokens = await home.flow.redeem(shop, await home.flow.signIn(own, shop, owner, asked), 0, {
    resource: home.issuer.managementResource,
  })
  expect(tokens).toMatchObject({ status: 200, body: { scope: '' } })
  const refused = await home.issuer.api('GET', '/users', undefined, { token: tokens.body.access_token })
  expect(refused).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
})
