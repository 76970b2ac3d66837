import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorizationCode, insertAuthorization } from '../../../../issuer/tokens/authorizations/authorization-store.ts'
import {
  endAllOfUser,
  endAuthorizations,
  endSessionHere,
  endSessionWhole,
} from '../../../../issuer/tokens/authorizations/end.ts'
import { expireSessions } from '../../../../issuer/tokens/authorizations/end-store.ts'
import { readRevocations } from '../../../../issuer/tokens/revocations/revocation-store.ts'
import {
  findSession,
  insertSession,
  renewSession,
  rotateSession,
  type SignedIn,
} from '../../../../issuer/tokens/sessions/session-store.ts'
import { newSignInSid } from '../../../../issuer/tokens/sid.ts'
import { newId, randomToken } from '../../../../platform/ids.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { recordingIn } from '../../../support/recording.ts'

/** Sessions of people, what applications got in them, and what ends what. */

let issuer: TestIssuer
let apps: { id: string }[]
beforeAll(async () => {
  issuer = await startTestIssuer()
  apps = [await issuer.createApplication({ type: 'SPA' }), await issuer.createApplication({ type: 'SPA' })]
})
afterAll(() => issuer?.close())

const query = () => issuer.database.query

const signedIn = (userId: string, more: Partial<SignedIn> = {}): SignedIn => ({
  id: newId(),
  cookie: randomToken(),
  userId,
  isPersistent: true,
  amr: ['pwd'],
  acr: 'urn:surrogate:acr:basic',
  interaction: { interactionEvent: 'SignIn', userId, verificationRecords: [], signInContext: {} },
  address: '192.0.2.1',
  userAgent: 'A browser',
  idleTtl: 3_600,
  ttl: 86_400,
  ...more,
})

const authorize = async (session: SignedIn, client: { id: string }, { isOffline = false } = {}) => {
  const id = newSignInSid()
  const made = await insertAuthorization(query(), {
    id,
    sessionId: session.id,
    userId: session.userId,
    clientId: client.id,
    scopes: ['openid'],
    resources: [],
    organizationId: undefined,
    isOffline,
    refreshTtl: 1_209_600,
    code: authorizationCode(randomToken()),
    redirectUri: 'https://app.example.test/cb',
    codeChallenge: undefined,
    nonce: undefined,
  })
  return made ? id : undefined
}

/** A person in a browser, signed in at two applications, each with and without offline access. */
const person = async () => {
  const { id: userId } = await issuer.createUser()
  const session = signedIn(userId)
  await insertSession(query(), session)
  const [first, second] = apps as [{ id: string }, { id: string }]
  const at = {
    first: (await authorize(session, first))!,
    firstOffline: (await authorize(session, first, { isOffline: true }))!,
    second: (await authorize(session, second))!,
    secondOffline: (await authorize(session, second, { isOffline: true }))!,
  }
  return { userId, session, at, first, second }
}

type Person = Awaited<ReturnType<typeof person>>

/** Which of a person's authorizations go on; those that do not must stand in the feed. */
const left = async ({ at }: Person): Promise<string[]> => {
  const rows = await issuer.sql<{ id: string; ended: boolean }>(
    'SELECT id, ended_at IS NOT NULL AS ended FROM authorizations WHERE id = ANY ($1)',
    [Object.values(at)],
  )
  const { entries } = await readRevocations(query(), 0, 10_000)
  const revoked = new Set(entries.map(({ kind, value }) => `${kind} ${value}`))
  for (const { id, ended } of rows) expect(revoked.has(`sid ${id}`)).toBe(ended)
  const live = rows.filter(({ ended }) => !ended).map(({ id }) => id)
  return Object.entries(at).flatMap(([name, id]) => (live.includes(id) ? [name] : []))
}

/** What was told of the ends of a person's sessions. */
const told = async (userId: string) =>
  (
    await issuer.sql<{ payload: Buffer }>(
      `SELECT payload FROM outbox WHERE entity_id = $1 AND type = 'Session.Ended' ORDER BY seq`,
      [userId],
    )
  ).map(({ payload }) => JSON.parse(payload.toString()))

const ending = { reason: 'logout', endedBy: 'somebody' } as const
const transaction = <Result>(work: Parameters<typeof issuer.database.transaction<Result>>[0]) =>
  issuer.database.transaction(work)

test('signing out here ends the session, all of the application, and of others what is not offline', async () => {
  const ada = await person()
  const sessionId = ada.session.id
  expect(
    await transaction((trx) => endSessionHere(recordingIn(trx), { sessionId, clientId: ada.first.id, ...ending })),
  ).toBe(true)
  expect(await left(ada)).toEqual(['secondOffline'])
  expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
  expect(await transaction((trx) => endSessionHere(recordingIn(trx), { sessionId, ...ending }))).toBe(false)
  expect(await told(ada.userId)).toMatchObject([{ event: 'Session.Ended', data: null, sessionId, ...ending }])
})

test('a session that a person or an administrator ends takes offline access with it', async () => {
  const ada = await person()
  await transaction((trx) => endSessionWhole(recordingIn(trx), { sessionId: ada.session.id, ...ending }))
  expect(await left(ada)).toEqual([])
})

test('everything of a person ends, but for the session that is spared, and nothing of others', async () => {
  const [ada, bob] = [await person(), await person()]
  const spared = signedIn(ada.userId)
  await insertSession(query(), spared)
  await transaction((trx) =>
    endAllOfUser(recordingIn(trx), {
      userId: ada.userId,
      exceptSessionId: spared.id,
      ...ending,
      reason: 'password_changed',
    }),
  )
  expect(await left(ada)).toEqual([])
  expect(await left(bob)).toHaveLength(4)
  expect(await told(ada.userId)).toMatchObject([{ sessionId: ada.session.id, reason: 'password_changed' }])
  expect(await findSession(query(), spared.cookie)).toMatchObject({ id: spared.id })
  expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
})

test('one authorization, or all that a client has of a person', async () => {
  const ada = await person()
  await transaction((trx) => endAuthorizations(recordingIn(trx), { ids: [ada.at.first] }, 'refresh_token_reused'))
  expect(await left(ada)).toEqual(['firstOffline', 'second', 'secondOffline'])
  const which = { userId: ada.userId, clientId: ada.second.id }
  expect(await transaction((trx) => endAuthorizations(recordingIn(trx), which, 'consent_revoked'))).toBe(2)
  expect(await left(ada)).toEqual(['firstOffline'])
  expect(await findSession(query(), ada.session.cookie)).toMatchObject({ id: ada.session.id })
})

test('a suspended person is signed out everywhere, and reactivation brings nothing back', async () => {
  const ada = await person()
  await issuer.api('PATCH', `/users/${ada.userId}/is-suspended`, { isSuspended: true })
  await issuer.api('PATCH', `/users/${ada.userId}/is-suspended`, { isSuspended: false })
  expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
  const live = await issuer.sql('SELECT FROM authorizations WHERE user_id = $1 AND ended_at IS NULL', [ada.userId])
  expect(live).toEqual([])
  expect(await authorize(ada.session, ada.first)).toBeUndefined()
})

test('a password that the Management API sets signs everybody out who had the old one', async () => {
  const ada = await person()
  const { status } = await issuer.api('PATCH', `/users/${ada.userId}/password`, { password: 'another, and longer' })
  expect(status).toBe(200)
  expect(await left(ada)).toEqual([])
  expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
})

test('whoever guessed the old password does not guess the next one in a browser that is known', async () => {
  const [ada, other] = [await issuer.createUser(), await issuer.createUser()]
  for (const [index, { id }] of [ada, other].entries())
    await issuer.sql('INSERT INTO known_devices (digest, user_id) VALUES (sha256($1::text::bytea), $2)', [index, id])
  await issuer.api('PATCH', `/users/${ada.id}/password`, { password: 'another, and longer' })
  expect(await issuer.sql('SELECT user_id FROM known_devices')).toEqual([{ user_id: other.id }])
})

test('a deleted person leaves neither session nor authorization', async () => {
  const ada = await person()
  await issuer.api('DELETE', `/users/${ada.userId}`)
  expect(await issuer.sql('SELECT FROM authorizations WHERE user_id = $1', [ada.userId])).toEqual([])
  expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
})

test('a session that has idled or lasted too long counts no more, and is ended with what is not offline', async () => {
  const moves = [`last_seen_at = now() - interval '61 minutes'`, `expires_at = now() - interval '1 second'`]
  for (const move of moves) {
    const ada = await person()
    await issuer.sql(`UPDATE sessions SET ${move} WHERE id = $1`, [ada.session.id])
    expect(await findSession(query(), ada.session.cookie)).toBeUndefined()
    expect(await authorize(ada.session, ada.first)).toBeUndefined()
    const ended = await transaction((trx) => expireSessions(trx, 100))
    expect(ended.sessions).toEqual([ada.session.id])
    expect(ended.authorizations.toSorted()).toEqual([ada.at.first, ada.at.second].toSorted())
  }
})

test('the cookie of yesterday works a minute more, that of before signing in again not a moment', async () => {
  const { id: userId } = await issuer.createUser()
  const session = signedIn(userId)
  await insertSession(query(), session)
  const { id, cookie: from } = session
  const to = randomToken()
  expect(await rotateSession(query(), { id, from, to })).toBe(true)
  expect(await rotateSession(query(), { id, from, to: randomToken() })).toBe(false)
  expect(await findSession(query(), to)).toMatchObject({ id, isPrevious: false })
  expect(await findSession(query(), from)).toMatchObject({ id, isPrevious: true })
  await issuer.sql(`UPDATE sessions SET previous_until = now() - interval '1 second' WHERE id = $1`, [id])
  expect(await findSession(query(), from)).toBeUndefined()

  const again = { ...session, cookie: randomToken() }
  expect(await renewSession(query(), again)).toBeDefined()
  expect(await findSession(query(), to)).toBeUndefined()
  expect(await findSession(query(), again.cookie)).toMatchObject({ id })
  const { id: other } = await issuer.createUser()
  expect(await renewSession(query(), { ...again, userId: other })).toBeUndefined()
})

test('authorizations that race with the end of their session leave none behind', async () => {
  const { id: userId } = await issuer.createUser()
  const session = signedIn(userId)
  await insertSession(query(), session)
  const racing = Array.from({ length: 30 }, (_, n) =>
    n === 15
      ? transaction((trx) => endSessionWhole(recordingIn(trx), { sessionId: session.id, ...ending }))
      : authorize(session, apps[0]!, { isOffline: n % 2 === 0 }),
  )
  await Promise.all(racing)
  expect(await issuer.sql('SELECT FROM authorizations WHERE user_id = $1 AND ended_at IS NULL', [userId])).toEqual([])
})
