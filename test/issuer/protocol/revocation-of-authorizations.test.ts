import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { randomToken } from '../../../platform/ids.ts'
import { basic, formOf, request } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import type { Sessions, TestSession } from '../../support/sessions.ts'
import { type LogoutTest, startLogoutTest } from './end-session/browser.ts'

let logout: LogoutTest
let sessions: Sessions
let app: TestApplication
let browserApp: TestApplication
beforeAll(async () => {
  logout = await startLogoutTest()
  sessions = logout.sessions
  app = await logout.issuer.createApplication()
  browserApp = await logout.issuer.createApplication({ type: 'SPA' })
})
afterAll(() => logout.close())

let session: TestSession
let sid: string
beforeEach(async () => {
  session = await sessions.signIn()
  sid = await sessions.authorize(session, app, { isOffline: true })
})

const done = { status: 200, body: {} }
const revoke = (token: string, client: TestApplication) =>
  request(`${logout.issuer.url}/oidc/token/revocation`, {
    method: 'POST',
    headers: client.secret === undefined ? {} : { authorization: basic(client) },
    body: formOf({ token, ...(client.secret === undefined && { client_id: client.id }) }),
  })
const introspect = async (token: string, client: TestApplication = logout.issuer.bootstrap) =>
  (
    await request(`${logout.issuer.url}/oidc/token/introspection`, {
      method: 'POST',
      headers: { authorization: basic(client) },
      body: formOf({ token }),
    })
  ).body
const opaqueToken = async (clientId: string, sessionId: string | null) => {
  const value = randomToken()
  await logout.issuer.sql(
    `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, session_id, expires_at)
     VALUES ($1, $2, $3, 'openid', $4, now() + interval '1 hour')`,
    [tokenDigest('opaque-token', value), session.userId, clientId, sessionId],
  )
  return value
}
const feedOf = (value: string) => logout.issuer.sql('SELECT kind FROM revocations WHERE value = $1', [value])
const logs = () =>
  logout.issuer.sql<{ application_id: string; payload: { sessionId?: string } }>(
    `SELECT application_id, payload FROM logs WHERE key = 'RevokeToken' AND user_id = $1`,
    [session.userId],
  )
const isOver = () => sessions.isOver('authorizations', sid)

test('a refresh token that its client gives up ends its authorization, and no other', async () => {
  const [token, other] = [await sessions.refreshToken(sid), await sessions.authorize(session, app)]
  expect(await revoke(token, app)).toMatchObject(done)
  expect(await revoke(token, app)).toMatchObject(done)
  expect(await logout.issuer.sql('SELECT end_reason FROM authorizations WHERE id = $1', [sid])).toEqual([
    { end_reason: 'revoked_by_client' },
  ])
  expect(await feedOf(sid)).toEqual([{ kind: 'sid' }])
  expect(await sessions.isOver('authorizations', other)).toBe(false)
  expect(await sessions.isOver('sessions', session.id)).toBe(false)
  expect(await logs()).toMatchObject([{ application_id: app.id, payload: { sessionId: sid } }])
  expect(JSON.stringify(await logs())).not.toContain(token)
})

test('a refresh token that another has taken the place of ends the authorization too; an expired one nothing', async () => {
  const old = await sessions.refreshToken(sid)
  await logout.issuer.sql(`UPDATE refresh_tokens SET expires_at = now() WHERE authorization_id = $1`, [sid])
  expect(await revoke(old, app)).toMatchObject(done)
  expect(await isOver()).toBe(false)
  const rotated = await sessions.refreshToken(sid)
  await logout.issuer.sql(`UPDATE refresh_tokens SET rotated_at = now() WHERE authorization_id = $1`, [sid])
  expect(await revoke(rotated, app)).toMatchObject(done)
  expect(await isOver()).toBe(true)
})

test("another client's refresh token: 200, and nothing happens", async () => {
  const token = await sessions.refreshToken(sid)
  expect(await revoke(token, browserApp)).toMatchObject(done)
  expect(await revoke(token, await logout.issuer.createApplication())).toMatchObject(done)
  expect(await revoke(token, { id: app.id, secret: 'wrong' })).toMatchObject({ status: 401 })
  expect(await isOver()).toBe(false)
  expect(await logout.issuer.sql('SELECT revoked_at FROM refresh_tokens WHERE authorization_id = $1', [sid])).toEqual([
    { revoked_at: null },
  ])
  expect(await logs()).toEqual([])
})

test('an opaque access token takes its authorization along, and so the refresh token', async () => {
  const [token, sister] = [await opaqueToken(app.id, sid), await opaqueToken(app.id, sid)]
  expect(await introspect(token)).toMatchObject({ active: true, sid })
  expect(await revoke(token, app)).toMatchObject(done)
  expect([await introspect(token), await introspect(sister)]).toEqual([{ active: false }, { active: false }])
  expect(await isOver()).toBe(true)
  expect(await feedOf(sid)).toEqual([{ kind: 'sid' }])
})

test("an opaque token that was exchanged from another client's goes alone", async () => {
  const token = await opaqueToken(browserApp.id, sid)
  expect(await revoke(token, browserApp)).toMatchObject(done)
  expect(await introspect(token)).toEqual({ active: false })
  expect(await isOver()).toBe(false)
})

test('a JWT goes alone', async () => {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: logout.issuer.issuer, aud: 'https://api.example.test', client_id: app.id, iat: now }
  const token = logout.sign({ ...claims, sub: session.userId, exp: now + 600, jti: `jwt of ${sid}`, sid }, 'access')
  expect(await introspect(token)).toMatchObject({ active: true })
  expect(await revoke(token, app)).toMatchObject(done)
  expect(await introspect(token)).toEqual({ active: false })
  expect(await feedOf(`jwt of ${sid}`)).toEqual([{ kind: 'jti' }])
  expect(await isOver()).toBe(false)
})

test('a refresh token is no access token: introspection knows none', async () => {
  const token = await sessions.refreshToken(sid)
  expect([await introspect(token), await introspect(token, app)]).toEqual([{ active: false }, { active: false }])
})

test('given up five times at once, it is one entry in the audit trail', async () => {
  const token = await sessions.refreshToken(sid)
  const answers = await Promise.all(Array.from({ length: 5 }, () => revoke(token, app)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(await logs()).toHaveLength(1)
})
