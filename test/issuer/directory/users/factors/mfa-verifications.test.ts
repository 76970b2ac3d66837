import { randomBytes } from 'node:crypto'
import { createManagementApi } from '@logto/api/management'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { fromBase32 } from '../../../../../issuer/directory/users/factors/base32.ts'
import { startTestIssuer, type TestIssuer } from '../../../../support/issuer.ts'
import { createSessions, type Sessions } from '../../../../support/sessions.ts'

/** The factors of a person, as administrators see, give and take them. */

let issuer: TestIssuer
let sessions: Sessions
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  sessions = createSessions(issuer)
})
afterAll(() => issuer.close())

let userId: string
beforeEach(async () => {
  const name = `u${randomBytes(6).toString('hex')}`
  userId = (await issuer.api('POST', '/users', { username: name, primaryEmail: `${name}@example.test` })).body.id
})

const path = (id?: string) => `/users/${userId}/mfa-verifications${id === undefined ? '' : `/${id}`}`
const give = (body: unknown) => issuer.api('POST', path(), body)
const list = async () => (await issuer.api('GET', path())).body
const addPasskey = () =>
  issuer.sql(
    `INSERT INTO passkeys (id, user_id, credential_id, public_key, algorithm, sign_count, is_backup_eligible,
       is_backed_up, name, agent)
     VALUES ($1, $2, $3, '', -7, 0, true, true, 'Phone', 'A browser')`,
    [randomBytes(8).toString('hex'), userId, randomBytes(32)],
  )
const changes = async () => {
  const rows = await issuer.sql<{ payload: Buffer }>(
    `SELECT payload FROM outbox WHERE entity_id = $1 AND type = 'User.Data.Updated' ORDER BY seq`,
    [userId],
  )
  return rows.map(({ payload }) => JSON.parse(payload.toString()))
}
const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

test('an authenticator app: a secret of 20 bytes and its picture, shown once', async () => {
  const answer = await give({ type: 'Totp' })
  expect(answer).toMatchObject({
    status: 200,
    body: {
      type: 'Totp',
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      secretQrCode: expect.stringMatching(/^data:image\/svg\+xml;base64,/),
    },
  })
  const { secret } = answer.body
  expect(fromBase32(secret)).toHaveLength(20)
  expect(await list()).toEqual([{ id: expect.any(String), type: 'Totp', createdAt: iso }])
  expect(await give({ type: 'Totp' })).toMatchObject({ status: 422, body: { code: 'user.totp_already_in_use' } })
  // Nowhere but in the answer.
  const everywhere = JSON.stringify([
    await issuer.sql(`SELECT payload FROM logs WHERE key = 'Management.createUserMfaVerification'`),
    await changes(),
    await issuer.sql('SELECT encode(sealed, $1) FROM totp_secrets', ['escape']),
  ])
  expect([everywhere.includes(secret), issuer.logged().includes(secret)]).toEqual([false, false])
})

test('a secret from elsewhere is kept as it is, if it is one', async () => {
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  for (const wrong of ['not base32!', 'MZXW6YTB']) {
    expect(await give({ type: 'Totp', secret: wrong })).toMatchObject({
      status: 422,
      body: { code: 'user.totp_secret_invalid' },
    })
  }
  expect(await give({ type: 'Totp', secret })).toMatchObject({ status: 200, body: { secret } })
})

test('backup codes: made here, shown once, counted, and not made again while some are left', async () => {
  const answer = await give({ type: 'BackupCode', codes: ['AAAAA-AAAAA'] })
  expect(answer).toMatchObject({ status: 200, body: { type: 'BackupCode' } })
  expect(answer.body.codes).toHaveLength(10)
  expect(answer.body.codes).not.toContain('AAAAA-AAAAA')
  expect(await list()).toEqual([{ id: expect.any(String), type: 'BackupCode', createdAt: iso, remainCodes: 10 }])
  expect(await give({ type: 'BackupCode' })).toMatchObject({
    status: 422,
    body: { code: 'user.backup_code_already_in_use' },
  })
  await issuer.sql('UPDATE backup_codes SET used_at = now() WHERE user_id = $1', [userId])
  expect(await list()).toMatchObject([{ remainCodes: 0, lastUsedAt: iso }])
  expect(await give({ type: 'BackupCode' })).toMatchObject({ status: 200 })
  expect(await list()).toMatchObject([{ remainCodes: 10 }])
})

test('passkeys are listed by name, and nothing else can be given', async () => {
  await addPasskey()
  expect(await list()).toEqual([
    { id: expect.any(String), type: 'WebAuthn', createdAt: iso, name: 'Phone', agent: 'A browser' },
  ])
  for (const type of ['WebAuthn', 'EmailVerificationCode', 'x']) {
    expect(await give({ type })).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  }
})

test('giving and taking are changes of the user, and are in the audit trail', async () => {
  await give({ type: 'Totp' })
  const [{ id }] = await list()
  expect(await issuer.api('DELETE', path(id))).toMatchObject({ status: 204 })
  expect(await list()).toEqual([])
  const events = await changes()
  expect(events.map(({ data, matchedRoute }) => [data.id, matchedRoute])).toEqual([
    [userId, '/users/:userId/mfa-verifications'],
    [userId, '/users/:userId/mfa-verifications/:verificationId'],
  ])
  const rows = await issuer.sql<{ key: string; factor: string }>(
    `SELECT key, payload->>'factor' AS factor FROM logs WHERE user_id = $1 AND key LIKE '%MfaVerification' ORDER BY created_at`,
    [userId],
  )
  expect(rows).toEqual([
    { key: 'Management.createUserMfaVerification', factor: 'Totp' },
    { key: 'Management.deleteUserMfaVerification', factor: 'Totp' },
  ])
})

test('who signed in with a factor that is taken away is signed out everywhere, and no browser is known', async () => {
  const client = await issuer.createApplication()
  const session = await sessions.signIn({ userId })
  const sid = await sessions.authorize(session, client, { isOffline: true })
  await issuer.sql(`INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)`, [randomBytes(32), userId])
  await give({ type: 'Totp' })
  // To get one more ends nothing.
  expect([await sessions.isOver('sessions', session.id), await sessions.isOver('authorizations', sid)]).toEqual([
    false,
    false,
  ])
  const [{ id }] = await list()
  await issuer.api('DELETE', path(id))
  const ended = await issuer.sql(
    `SELECT end_reason AS reason, ended_by AS by FROM sessions WHERE id = $1
     UNION ALL SELECT end_reason, NULL FROM authorizations WHERE id = $2`,
    [session.id, sid],
  )
  expect(ended).toEqual([
    { reason: 'factor_removed', by: issuer.bootstrap.id },
    { reason: 'factor_removed', by: null },
  ])
  expect(await issuer.sql('SELECT kind FROM revocations WHERE value = $1', [sid])).toEqual([{ kind: 'sid' }])
  expect(await issuer.sql('SELECT FROM known_devices WHERE user_id = $1', [userId])).toEqual([])
})

test('a factor of somebody else, one that is gone, and nobody’s are 404', async () => {
  await give({ type: 'Totp' })
  const [{ id }] = await list()
  const stranger = (await issuer.createUser()).id
  const missing = { status: 404, body: { code: 'entity.not_found' } }
  expect(await issuer.api('DELETE', `/users/${stranger}/mfa-verifications/${id}`)).toMatchObject(missing)
  expect(await list()).toHaveLength(1)
  await issuer.api('DELETE', path(id))
  expect(await issuer.api('DELETE', path(id))).toMatchObject(missing)
  expect(await issuer.api('GET', '/users/nobody/mfa-verifications')).toMatchObject(missing)
  expect(await issuer.api('POST', '/users/nobody/mfa-verifications', { type: 'Totp' })).toMatchObject(missing)
})

test('two administrators who give the same person something at once give one', async () => {
  for (const type of ['Totp', 'BackupCode']) {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => issuer.api('POST', path(), { type }, { instance: index % 2 })),
    )
    expect(answers.map(({ status }) => status).toSorted(), type).toEqual([200, 422, 422, 422, 422, 422])
  }
  expect(await list()).toMatchObject([{ type: 'Totp' }, { type: 'BackupCode', remainCodes: 10 }])
})

test('a deleted person leaves no factor behind', async () => {
  await give({ type: 'Totp' })
  await give({ type: 'BackupCode' })
  await addPasskey()
  await issuer.api('DELETE', `/users/${userId}`)
  const left = await issuer.sql(
    `SELECT user_id FROM totp_secrets WHERE user_id = $1 UNION ALL SELECT user_id FROM backup_codes WHERE user_id = $1
     UNION ALL SELECT user_id FROM passkeys WHERE user_id = $1`,
    [userId],
  )
  expect(left).toEqual([])
})

test('the published client of the Management API gives, lists and takes them', async () => {
  const { apiClient } = createManagementApi('default', {
    clientId: issuer.bootstrap.id,
    clientSecret: issuer.bootstrap.secret!,
    baseUrl: issuer.url,
    apiIndicator: issuer.managementResource,
  })
  const params = { path: { userId } }
  const given = await apiClient.POST('/api/users/{userId}/mfa-verifications', { params, body: { type: 'Totp' } })
  expect(given.data).toMatchObject({ type: 'Totp', secret: expect.any(String) })
  const listed = await apiClient.GET('/api/users/{userId}/mfa-verifications', { params })
  expect(listed.data).toMatchObject([{ type: 'Totp' }])
  const verificationId = listed.data![0]!.id
  const taken = await apiClient.DELETE('/api/users/{userId}/mfa-verifications/{verificationId}', {
    params: { path: { userId, verificationId } },
  })
  expect(taken.response.status).toBe(204)
})
