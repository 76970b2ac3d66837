import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPostgresBus } from '../../../events/postgres-bus.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { startMailServer, textsOf } from '../../support/mail-server.ts'
import { localProviders } from '../../support/messages.ts'
import { createMessageReader, type MessageReader } from '../../support/notices.ts'
import { startTestRelay, testRelayConfig } from '../../support/relay.ts'
import { until } from '../../support/until.ts'

/** What administrators do to an account, its owner hears of. */

const keyEncryptionKey = randomBytes(32)
const envelope = createEnvelope({ current: keyEncryptionKey })
let issuer: TestIssuer
let mail: MessageReader
beforeAll(async () => {
  issuer = await startTestIssuer({ config: { keyEncryptionKey } })
  const refreshed = () => good('PATCH', '/sign-in-exp', {})
  mail = createMessageReader({ database: issuer.database, envelope, refreshed })
})
afterAll(() => issuer.close())

let last = 0
const createUser = async (members: Record<string, unknown> = {}) => {
  const username = `user${++last}`
  const primaryEmail = `${username}@example.test`
  const { body, status } = await issuer.api('POST', '/users', { username, primaryEmail, ...members })
  expect(status).toBe(200)
  return { id: body.id as string, email: primaryEmail }
}
const typesTo = async (to: string) => (await mail.waiting(to)).map(({ type }) => type)
const good = async (method: string, path: string, body?: unknown) => {
  const answer = await issuer.api(method, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body
}

test('without a connector nothing is sent and nothing fails', async () => {
  const { id, email } = await createUser()
  await good('PATCH', `/users/${id}/password`, { password: 'a better password' })
  await good('PATCH', `/users/${id}`, { primaryEmail: `new-${email}` })
  expect(await mail.waiting()).toEqual([])
})

test('a password that is set is told once, in the language of the profile; a user who is created hears nothing', async () => {
  await mail.connect()
  const { id, email } = await createUser({ password: 'the first password' })
  expect(await typesTo(email)).toEqual([])
  await good('PATCH', `/users/${id}/profile`, { profile: { locale: 'de-AT' } })
  await good('PATCH', `/users/${id}/password`, { password: 'a better password' })
  expect(await mail.waiting(email)).toMatchObject([
    { type: 'PasswordChanged', locale: 'de', subject: 'Ihr Passwort wurde geändert' },
  ])
})

test('an identity elsewhere that is linked or unlinked is told by the name of its provider; the same again is nothing', async () => {
  const { id, email } = await createUser()
  for (const userId of ['7', '7']) await good('PUT', `/users/${id}/identities/github`, { userId })
  await good('DELETE', `/users/${id}/identities/github`)
  expect(await mail.waiting(email)).toMatchObject([
    { type: 'IdentityLinked', text: expect.stringContaining('An account at github was linked to your account.') },
    { type: 'IdentityUnlinked', text: expect.stringContaining('An account at github is no longer linked') },
  ])
})

test('an address that is replaced or removed is told so itself, on its own channel; nothing else of a user is told', async () => {
  const { id, email } = await createUser({ primaryPhone: '4930123456' })
  await good('PATCH', `/users/${id}`, { name: 'Ada', primaryEmail: email })
  expect(await typesTo(email)).toEqual([])
  await good('PATCH', `/users/${id}`, { primaryEmail: `new-${email}`, primaryPhone: null })
  expect(await mail.waiting(email)).toMatchObject([
    { type: 'AddressChanged', channel: 'email', text: expect.stringContaining('replaced by new-user') },
  ])
  expect((await mail.waiting()).filter(({ channel }) => channel === 'sms')).toMatchObject([
    { type: 'AddressChanged', to: '+4930123456', text: expect.stringContaining('no other') },
  ])
  expect(await typesTo(`new-${email}`)).toEqual([])
})

test('a factor that is given or taken is named in words', async () => {
  const { id, email } = await createUser({ profile: { locale: 'fr' } })
  await good('POST', `/users/${id}/mfa-verifications`, { type: 'Totp' })
  const [{ id: factorId }] = await good('GET', `/users/${id}/mfa-verifications`)
  await good('DELETE', `/users/${id}/mfa-verifications/${factorId}`)
  const [added, removed, ...others] = await mail.waiting(email)
  expect(others).toEqual([])
  expect(added).toMatchObject({ type: 'FactorAdded', locale: 'fr' })
  expect(removed).toMatchObject({ type: 'FactorRemoved', locale: 'fr' })
  for (const { text } of [added!, removed!]) expect(text).toContain('une application d’authentification')
})

test('what is refused tells nothing', async () => {
  const [{ id, email }, other] = [await createUser(), await createUser()]
  expect(await issuer.api('PATCH', `/users/${id}`, { primaryEmail: other.email })).toMatchObject({ status: 422 })
  expect((await issuer.api('DELETE', `/users/${id}/mfa-verifications/nothing`)).status).toBe(404)
  expect(await typesTo(email)).toEqual([])
})

test('a change whose transaction is rolled back tells nothing', async () => {
  const { id, email } = await createUser()
  // The entry of the audit trail, which comes last, cannot be written.
  await issuer.sql(`ALTER TABLE logs ADD CONSTRAINT nothing_of_them CHECK (user_id <> '${id}') NOT VALID`)
  try {
    const answers = [
      await issuer.api('PATCH', `/users/${id}/password`, { password: 'a better password' }),
      await issuer.api('PATCH', `/users/${id}`, { primaryEmail: `new-${email}` }),
    ]
    for (const { status } of answers) expect(status).toBeGreaterThanOrEqual(400)
  } finally {
    await issuer.sql('ALTER TABLE logs DROP CONSTRAINT nothing_of_them')
  }
  expect(await typesTo(email)).toEqual([])
})

test('who acts as a person is told them when it begins and when it ends, by the name of who it is', async () => {
  const { id, email } = await createUser()
  const supporter = (await issuer.createUser({ name: 'Grace of support' })).id
  const app = await issuer.createApplication()
  const resource = await issuer.createResource()
  const actor = { actor_token: await issuer.actorToken(app, supporter) }
  const actor_token_type = 'urn:ietf:params:oauth:token-type:access_token'
  const subjectToken = await issuer.subjectToken(id, { reason: 'Ticket 7: cannot open an order' })
  const exchanged = await issuer.exchange(app, subjectToken, { resource, ...actor, actor_token_type })
  expect(exchanged.status).toBe(200)
  await until(async () =>
    expect(await mail.waiting(email)).toMatchObject([
      { type: 'ImpersonationStarted', text: expect.stringContaining('Grace of support') },
    ]),
  )
  expect((await mail.waiting(email))[0]?.text).toContain('Ticket 7: cannot open an order')
  const [session] = await good('GET', `/impersonations?userId=${id}`)
  await good('POST', `/impersonations/${session.id}/end`)
  await good('POST', `/impersonations/${session.id}/end`)
  await until(async () => expect(await typesTo(email)).toEqual(['ImpersonationStarted', 'ImpersonationEnded']))
})

test('of impersonations nothing is told while the setting is off, nor later', async () => {
  const { id, email } = await createUser()
  const [app, resource] = [await issuer.createApplication(), await issuer.createResource()]
  const cursor = async () => (await issuer.sql<{ seq: number }>('SELECT seq FROM notice_cursor'))[0]!.seq
  await good('PATCH', '/sign-in-exp', { notifyImpersonation: false })
  await issuer.exchange(app, await issuer.subjectToken(id), { resource })
  const [{ seq } = { seq: 0 }] = await issuer.sql<{ seq: number }>('SELECT max(seq) AS seq FROM outbox')
  await until(async () => expect(await cursor()).toBeGreaterThanOrEqual(seq))
  await good('PATCH', '/sign-in-exp', { notifyImpersonation: true })
  await issuer.exchange(app, await issuer.subjectToken(id, { reason: 'the second' }), { resource })
  await until(async () => expect(await typesTo(email)).toEqual(['ImpersonationStarted']))
  expect((await mail.waiting(email))[0]?.text).toContain('the second')
})

test('a connector that cannot be read stops no change', async () => {
  const { id } = await createUser()
  await issuer.sql(`UPDATE connectors SET sealed_config = '\\x00'`)
  await good('PATCH', '/sign-in-exp', {})
  await good('PATCH', `/users/${id}/password`, { password: 'a better password' })
  expect(issuer.logged()).toContain('an owner could not be told')
})

test('a relay sends them by mail', async () => {
  await issuer.sql('DELETE FROM messages')
  const server = await startMailServer()
  await mail.connect(server.port)
  const bus = createPostgresBus({ database: issuer.database, logger: silentLogger })
  const config = { ...testRelayConfig, messages: localProviders }
  const relay = await startTestRelay({ database: issuer.database, bus, envelope, config })
  try {
    const { id, email } = await createUser()
    await good('PATCH', `/users/${id}/password`, { password: 'a better password' })
    const [received] = await server.until(1)
    expect(received?.to).toEqual([email])
    const { headers, text } = textsOf(received!.raw)
    expect(headers).toContain('Subject: Your password was changed')
    expect(text).toContain(`${issuer.baseUrl}/sign-in`)
  } finally {
    await relay.close()
    await bus.close()
    await server.close()
  }
})
