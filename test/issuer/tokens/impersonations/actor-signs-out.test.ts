import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  endAllOfUser,
  endAuthorizations,
  endReused,
  endSessionHere,
  endSessionWhole,
} from '../../../../issuer/tokens/authorizations/end.ts'
import type { Query } from '../../../../platform/database/database.ts'
import { authorize, signIn } from '../../../support/authorizations.ts'
import { accessTokenType, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { recordingIn } from '../../../support/recording.ts'

/** What somebody opened as another person ends with what they had signed in to. */

let issuer: TestIssuer
let orders: string
let desk: TestApplication
let staffApp: TestApplication
let customer: string
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  desk = await issuer.createApplication()
  staffApp = await issuer.createApplication({ type: 'SPA' })
  customer = (await issuer.createUser()).id
  await issuer.grantUser(customer, orders, ['read:orders'])
})
afterAll(() => issuer.close())

/** Somebody of the staff who has signed in. */
const staff = async ({ isOffline = false }: { isOffline?: boolean } = {}) => {
  const { id: userId } = await issuer.createUser()
  const sessionId = await signIn(issuer, userId)
  const at = await authorize(issuer, staffApp, userId, { sessionId, isOffline })
  const actor_token = (await at.redeem()).body.access_token as string
  return { userId, sessionId, sid: at.sid, actor_token }
}
type Staff = Awaited<ReturnType<typeof staff>>

const exchange = async ({ actor_token }: Pick<Staff, 'actor_token'>, { instance = 0, scope = 'read:orders' } = {}) =>
  issuer.exchange(
    desk,
    await issuer.subjectToken(customer),
    {
      ...(scope === 'openid' ? {} : { resource: orders }),
      ...{ scope, actor_token, actor_token_type: accessTokenType },
    },
    { instance },
  )

/** Acts as the customer; answers the id of the session. */
const act = async (by: Pick<Staff, 'actor_token'>) => {
  const answer = await exchange(by)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return String((await issuer.verify(answer.body.access_token, orders))['sid'])
}
const shown = async (id: string) => (await issuer.api('GET', `/impersonations/${id}`)).body
const revoked = async (id: string) => (await issuer.sql('SELECT FROM revocations WHERE value = $1', [id])).length
const endedEvents = (id: string) =>
  issuer.sql(`SELECT FROM outbox WHERE type = 'Impersonation.Ended' AND entity_id = $1`, [id])
const inTransaction = (work: (trx: Query) => Promise<unknown>) => issuer.database.transaction(work)

test('a session knows what its actor had signed in to', async () => {
  const agent = await staff()
  expect(await shown(await act(agent))).toMatchObject({
    actorId: agent.userId,
    actorVia: 'sign_in',
    actorSid: agent.sid,
  })
})

const ending = { reason: 'logout', endedBy: 'somebody' } as const
const rows: Record<string, (agent: Staff, trx: Query) => Promise<unknown>> = {
  'signing out here': ({ sessionId }, trx) => endSessionHere(recordingIn(trx), { sessionId, ...ending }),
  'signing out everywhere': ({ userId }, trx) => endAllOfUser(recordingIn(trx), { userId, ...ending }),
  'a session that is ended': ({ sessionId }, trx) => endSessionWhole(recordingIn(trx), { sessionId, ...ending }),
  'another password': ({ userId }, trx) =>
    endAllOfUser(recordingIn(trx), { userId, reason: 'password_changed', endedBy: userId }),
  'a revoked consent': ({ userId }, trx) =>
    endAuthorizations(recordingIn(trx), { userId, clientId: staffApp.id }, 'consent_revoked'),
  'a refresh token that is used again': ({ userId, sid }, trx) =>
    endReused(recordingIn(trx), { authorizationId: sid, userId, clientId: staffApp.id }),
  'a revoked authorization': ({ sid }, trx) => endAuthorizations(recordingIn(trx), { ids: [sid] }, 'revoked_by_client'),
}

test.each(Object.entries(rows))('%s ends what the actor opened, once, and nothing of others', async (_name, end) => {
  const [agent, other] = [await staff(), await staff()]
  const [opened, unconcerned] = [await act(agent), await act(other)]
  await inTransaction((trx) => end(agent, trx))
  expect(await shown(opened)).toMatchObject({ endedAt: expect.any(Number) })
  expect([await revoked(opened), (await endedEvents(opened)).length]).toEqual([1, 1])
  expect(await shown(unconcerned)).toMatchObject({ endedAt: null })
  expect(await revoked(unconcerned)).toBe(0)
})

test('with offline access too it ends when the actor signs out of the session', async () => {
  const agent = await staff({ isOffline: true })
  const opened = await act(agent)
  await inTransaction((trx) =>
    endSessionHere(recordingIn(trx), { sessionId: agent.sessionId, clientId: desk.id, ...ending }),
  )
  expect(await shown(opened)).toMatchObject({ endedAt: expect.any(Number), endedBy: 'somebody' })
})

test('suspending, deleting and ending through the Management API do so as well', async () => {
  const by: Record<string, (agent: Staff) => Promise<{ status: number }>> = {
    suspended: ({ userId }) => issuer.api('PATCH', `/users/${userId}/is-suspended`, { isSuspended: true }),
    deleted: ({ userId }) => issuer.api('DELETE', `/users/${userId}`),
    session: ({ userId, sessionId }) => issuer.api('DELETE', `/users/${userId}/sessions/${sessionId}`),
    grant: ({ userId, sid }) => issuer.api('DELETE', `/users/${userId}/grants/${sid}`),
    password: ({ userId }) => issuer.api('PATCH', `/users/${userId}/password`, { password: 'another password' }),
  }
  for (const [name, end] of Object.entries(by)) {
    const agent = await staff({ isOffline: name === 'grant' })
    const opened = await act(agent)
    expect((await end(agent)).status, name).toBeLessThan(300)
    expect(await shown(opened), name).toMatchObject({ endedAt: expect.any(Number), endedBy: issuer.bootstrap.id })
    expect((await endedEvents(opened)).length, name).toBe(1)
  }
})

test('an opaque token of an impersonation ends with the sign-in of its actor', async () => {
  const agent = await staff()
  const { access_token } = (await exchange(agent, { scope: 'openid' })).body
  const userinfo = () => fetch(`${issuer.issuer}/me`, { headers: { authorization: `Bearer ${access_token}` } })
  expect((await userinfo()).status).toBe(200)
  await inTransaction((trx) => endSessionWhole(recordingIn(trx), { sessionId: agent.sessionId, ...ending }))
  expect((await userinfo()).status).toBe(401)
})

test('who has signed out opens nothing more, and exchanges that race with it leave nothing open', async () => {
  const agent = await staff()
  const exchanges = () => Promise.all(Array.from({ length: 8 }, (_, index) => exchange(agent, { instance: index % 2 })))
  const [answers] = await Promise.all([
    exchanges(),
    inTransaction((trx) => endSessionWhole(recordingIn(trx), { sessionId: agent.sessionId, ...ending })),
  ])
  for (const { status, body } of [...answers, await exchange(agent)]) {
    if (status !== 200) expect(body).toMatchObject({ error: 'invalid_grant', reason: 'actor_token_invalid' })
  }
  expect((await exchange(agent)).status).toBe(400)
  expect((await issuer.api('GET', `/impersonations?actorId=${agent.userId}&active=true`)).body).toEqual([])
})

test('a setting lets them go on', async () => {
  const setting = (impersonationEndsWithActor: boolean) =>
    issuer.api('PATCH', '/sign-in-exp', { impersonationEndsWithActor })
  expect((await setting(false)).status).toBe(200)
  try {
    const agent = await staff()
    const opened = await act(agent)
    await inTransaction((trx) => endSessionWhole(recordingIn(trx), { sessionId: agent.sessionId, ...ending }))
    expect(await shown(opened)).toMatchObject({ endedAt: null, actorSid: agent.sid })
  } finally {
    await setting(true)
  }
})
