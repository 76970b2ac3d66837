import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { createSessions, type Sessions, type TestSession } from '../../../support/sessions.ts'

let issuer: TestIssuer
let sessions: Sessions
let shop: TestApplication
let partner: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  sessions = createSessions(issuer)
  shop = await issuer.createApplication({ name: 'The shop' })
  partner = await issuer.createApplication({ name: 'A partner', isThirdParty: true })
})
afterAll(() => issuer.close())

let session: TestSession
beforeEach(async () => {
  session = await sessions.signIn()
})

const path = ({ id, userId }: TestSession) => `/users/${userId}/sessions/${id}`
const feedOf = (sid: string) => issuer.sql('SELECT kind FROM revocations WHERE value = $1', [sid])
const noSession = { status: 404, body: { code: 'oidc.session_not_found' } }
const holderOf = async (scope: string) => {
  const machine = await issuer.createMachine(issuer.managementResource, [scope])
  return { token: await issuer.clientToken(machine, issuer.managementResource, scope) }
}
const audited = (key: string, userId: string) =>
  issuer.sql('SELECT result, application_id FROM logs WHERE key = $1 AND user_id = $2', [key, userId])

test('sessions are listed in the shape that existing clients know, newest first', async () => {
  await sessions.authorize(session, shop)
  const offline = await sessions.authorize(session, shop, { isOffline: true })
  const ended = await sessions.authorize(session, partner)
  await issuer.sql('UPDATE authorizations SET ended_at = now() WHERE id = $1', [ended])
  const second = await sessions.signIn({ userId: session.userId })
  const answer = await issuer.api('GET', `/users/${session.userId}/sessions`)
  expect(answer.status).toBe(200)
  expect(answer.body.sessions.map(({ payload }: { payload: { uid: string } }) => payload.uid)).toEqual([
    second.id,
    session.id,
  ])
  const [empty, first] = answer.body.sessions
  expect(first).toEqual({
    payload: {
      exp: expect.any(Number),
      iat: expect.any(Number),
      jti: session.id,
      uid: session.id,
      kind: 'Session',
      loginTs: expect.any(Number),
      accountId: session.userId,
      amr: ['pwd'],
      acr: 'urn:surrogate:acr:basic',
      authorizations: { [shop.id]: { sid: offline, grantId: offline, persistsLogout: true } },
    },
    lastSubmission: {
      interactionEvent: 'SignIn',
      userId: session.userId,
      verificationRecords: [{ id: 'proof', type: 'Password', verified: true }],
      signInContext: { ip: '198.51.100.7', userAgent: 'A browser' },
    },
    clientId: shop.id,
    accountId: session.userId,
    expiresAt: expect.any(Number),
    lastActiveAt: expect.any(Number),
    lastAddress: '198.51.100.7',
    userAgent: 'A browser',
  })
  expect(first.payload.exp).toBe(Math.floor(first.expiresAt / 1000))
  expect(first.payload.exp - first.payload.loginTs).toBe(14 * 86_400)
  expect(empty).toMatchObject({ clientId: null, payload: { authorizations: {} } })
  expect(await issuer.api('GET', path(session))).toMatchObject({ status: 200, body: first })
  expect(JSON.stringify(answer.body)).not.toContain(session.cookie)
})

test('sessions that are over, by time too, are not there', async () => {
  const idle = await sessions.signIn({ userId: session.userId })
  await issuer.sql(`UPDATE sessions SET last_seen_at = now() - interval '3 days 1 second' WHERE id = $1`, [idle.id])
  const old = await sessions.signIn({ userId: session.userId })
  await issuer.sql('UPDATE sessions SET expires_at = now() WHERE id = $1', [old.id])
  const answer = await issuer.api('GET', `/users/${session.userId}/sessions`)
  expect(answer.body.sessions).toHaveLength(1)
  expect(await issuer.api('GET', path(idle))).toMatchObject(noSession)
  expect(await issuer.api('DELETE', path(old))).toMatchObject(noSession)
})

test('a session of another user is not found: neither read nor ended', async () => {
  const other = await sessions.signIn()
  const foreign = `/users/${other.userId}/sessions/${session.id}`
  expect(await issuer.api('GET', foreign)).toMatchObject(noSession)
  expect(await issuer.api('DELETE', foreign)).toMatchObject(noSession)
  expect(await sessions.isOver('sessions', session.id)).toBe(false)
  expect(await issuer.api('GET', '/users/nobody/sessions')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found' },
  })
})

test('an administrator ends a session with all that came of it, offline access too, and no other', async () => {
  const other = await sessions.signIn({ userId: session.userId })
  const elsewhere = await sessions.authorize(other, shop)
  const online = await sessions.authorize(session, shop)
  const offline = await sessions.authorize(session, partner, { isOffline: true })
  // What existing clients send.
  expect(await issuer.api('DELETE', `${path(session)}?revokeGrantsTarget=firstParty`)).toMatchObject({ status: 204 })
  expect(await sessions.isOver('sessions', session.id)).toBe(true)
  for (const sid of [online, offline]) {
    expect(await sessions.isOver('authorizations', sid)).toBe(true)
    expect(await feedOf(sid)).toEqual([{ kind: 'sid' }])
  }
  expect(await sessions.isOver('sessions', other.id)).toBe(false)
  expect(await sessions.isOver('authorizations', elsewhere)).toBe(false)
  expect(await issuer.sql('SELECT end_reason, ended_by FROM sessions WHERE id = $1', [session.id])).toEqual([
    { end_reason: 'ended_by_administrator', ended_by: issuer.bootstrap.id },
  ])
  expect(await audited('Management.endUserSession', session.userId)).toEqual([
    { result: 'Success', application_id: issuer.bootstrap.id },
  ])
  expect(await issuer.api('DELETE', path(session))).toMatchObject(noSession)
})

test('of administrators who end a session at once, one has ended it', async () => {
  const answers = await Promise.all(Array.from({ length: 5 }, () => issuer.api('DELETE', path(session))))
  expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404, 404, 404])
})

test('grants are listed by kind of application', async () => {
  const own = await sessions.authorize(session, shop, { scopes: ['openid', 'email'] })
  const foreign = await sessions.authorize(session, partner, { isOffline: true })
  const grants = `/users/${session.userId}/grants`
  const answer = await issuer.api('GET', grants)
  expect(answer.body.grants.map(({ id }: { id: string }) => id)).toEqual([foreign, own])
  expect(answer.body.grants[1]).toEqual({
    id: own,
    payload: {
      exp: expect.any(Number),
      iat: expect.any(Number),
      jti: own,
      kind: 'Grant',
      clientId: shop.id,
      accountId: session.userId,
      scope: 'openid email',
      sessionUid: session.id,
    },
    expiresAt: expect.any(Number),
    application: { id: shop.id, name: 'The shop' },
  })
  const idsOf = async (appType: string) =>
    (await issuer.api('GET', `${grants}?appType=${appType}`)).body.grants.map(({ id }: { id: string }) => id)
  expect(await idsOf('firstParty')).toEqual([own])
  expect(await idsOf('thirdParty')).toEqual([foreign])
  expect(await issuer.api('GET', `${grants}?appType=other`)).toMatchObject({ status: 400 })
  expect(await issuer.api('GET', '/users/nobody/grants')).toMatchObject({ status: 404 })
})

test('without its session only a grant with offline access is left', async () => {
  await sessions.authorize(session, shop)
  const offline = await sessions.authorize(session, partner, { isOffline: true })
  await issuer.sql('UPDATE sessions SET expires_at = now() WHERE id = $1', [session.id])
  const { body } = await issuer.api('GET', `/users/${session.userId}/grants`)
  expect(body.grants.map(({ id }: { id: string }) => id)).toEqual([offline])
})

test('a grant that is ended takes its tokens along, and nothing else; once more changes nothing', async () => {
  const grant = await sessions.authorize(session, shop, { isOffline: true })
  const other = await sessions.authorize(session, partner)
  const stranger = await issuer.createUser()
  const missing = { status: 404, body: { code: 'oidc.invalid_grant' } }
  expect(await issuer.api('DELETE', `/users/${stranger.id}/grants/${grant}`)).toMatchObject(missing)
  expect(await sessions.isOver('authorizations', grant)).toBe(false)
  for (let times = 2; times > 0; times--) {
    expect(await issuer.api('DELETE', `/users/${session.userId}/grants/${grant}`)).toMatchObject({ status: 204 })
  }
  expect(await feedOf(grant)).toEqual([{ kind: 'sid' }])
  expect(await sessions.isOver('authorizations', other)).toBe(false)
  expect(await sessions.isOver('sessions', session.id)).toBe(false)
  expect(await issuer.api('DELETE', `/users/${session.userId}/grants/ps_unknown`)).toMatchObject(missing)
})

test('a grant of a third-party application takes the consent along: the application has to ask again', async () => {
  const { userId } = session
  await issuer.sql(
    `INSERT INTO consents (id, user_id, client_id, scopes, expires_at) VALUES ($1, $1, $2, '{openid}', now() + interval '1 day')`,
    [userId, partner.id],
  )
  const [ended, along] = [
    await sessions.authorize(session, partner),
    await sessions.authorize(session, partner, { isOffline: true }),
  ]
  const ours = await sessions.authorize(session, shop)
  expect(await issuer.api('DELETE', `/users/${userId}/grants/${ended}`)).toMatchObject({ status: 204 })
  const revoked = await issuer.sql('SELECT FROM consents WHERE user_id = $1 AND revoked_at IS NOT NULL', [userId])
  expect(revoked).toHaveLength(1)
  for (const grant of [ended, along]) expect(await feedOf(grant)).toEqual([{ kind: 'sid' }])
  expect(await sessions.isOver('authorizations', ours)).toBe(false)
})

test('who may not see users sees no session, and a reader ends none', async () => {
  const reader = await holderOf('read')
  const keys = await holderOf('keys')
  expect(await issuer.api('GET', path(session), undefined, reader)).toMatchObject({ status: 200 })
  expect(await issuer.api('DELETE', path(session), undefined, reader)).toMatchObject({ status: 403 })
  expect(await issuer.api('GET', path(session), undefined, keys)).toMatchObject({ status: 403 })
})

test('how long sessions last is a setting, whose members change one by one', async () => {
  const config = '/configs/oidc/session'
  const defaults = { ttl: 14 * 86_400, idleTtl: 3 * 86_400 }
  expect(await issuer.api('GET', config)).toMatchObject({ status: 200, body: defaults })
  const changed = { ...defaults, ttl: 3_600 }
  expect(await issuer.api('PATCH', config, { ttl: 3_600 })).toMatchObject({ status: 200, body: changed })
  await Promise.all([issuer.api('PATCH', config, { ttl: 7_200 }), issuer.api('PATCH', config, { idleTtl: 600 })])
  expect(await issuer.api('GET', config)).toMatchObject({ body: { ttl: 7_200, idleTtl: 600 } })
  for (const wrong of [{ ttl: 0 }, { ttl: 1.5 }, { idleTtl: -60 }, { ttl: 1e9 }, { ttl: null }]) {
    expect(await issuer.api('PATCH', config, wrong)).toMatchObject({ status: 400 })
  }
  const users = await holderOf('users')
  expect(await issuer.api('PATCH', config, { ttl: 60 }, users)).toMatchObject({ status: 403 })
  expect(await issuer.api('GET', config)).toMatchObject({ body: { ttl: 7_200, idleTtl: 600 } })
})
