import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPostgresBus } from '../../../events/postgres-bus.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import { smtpError, startMailServer } from '../../support/mail-server.ts'
import { localProviders, smtpConfig } from '../../support/messages.ts'
import { startTestRelay, testRelayConfig } from '../../support/relay.ts'

let issuer: TestIssuer
let closers: (() => Promise<unknown>)[]
const keyEncryptionKey = randomBytes(32)
const start = async (messages = localProviders) => {
  issuer = await startTestIssuer({ config: { keyEncryptionKey, messages } })
}
const startRelay = async () => {
  const bus = createPostgresBus({ database: issuer.database, logger: silentLogger })
  const relay = await startTestRelay({
    config: { ...testRelayConfig, messages: localProviders },
    database: issuer.database,
    bus,
    envelope: createEnvelope({ current: keyEncryptionKey }),
  })
  closers.push(bus.close, relay.close)
}
beforeEach(() => {
  closers = []
})
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
  await issuer.close()
})

const smtp = 'simple-mail-transfer-protocol'
const config = { ...smtpConfig(2525), auth: { user: 'mailer', pass: 'a secret password' } }

test('a connector is made, read, changed and deleted; its secrets are never shown again', async () => {
  await start()
  const created = await issuer.api('POST', '/connectors', { connectorId: smtp, config })
  const shown = { ...config, auth: { user: 'mailer', pass: '********' } }
  const { id } = created.body
  expect(created).toMatchObject({ status: 200, body: { connectorId: smtp, type: 'Email', config: shown } })
  expect((await issuer.api('GET', `/connectors/${id}`)).body).toEqual(created.body)
  expect((await issuer.api('GET', '/connectors')).body).toEqual([created.body])

  const renamed = { ...shown, fromEmail: 'other@surrogate.test' }
  expect((await issuer.api('PATCH', `/connectors/${id}`, { config: renamed })).body.config).toEqual(renamed)
  const [row] = (await issuer.database.pool.query('SELECT sealed_config FROM connectors')).rows
  const sealed = createEnvelope({ current: keyEncryptionKey }).open(row.sealed_config, `connector:${id}`)
  expect(JSON.parse(sealed.toString())).toMatchObject({
    auth: { pass: 'a secret password' },
    fromEmail: 'other@surrogate.test',
  })

  expect((await issuer.api('DELETE', `/connectors/${id}`)).status).toBe(204)
  expect(await issuer.api('DELETE', `/connectors/${id}`)).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found' },
  })
  expect((await issuer.api('GET', '/connectors')).body).toEqual([])
  expect(issuer.logged()).not.toContain('a secret password')
})

test('of mail there is one connector: the next takes its place, also when several come at once', async () => {
  await start()
  const http = { connectorId: 'http-email', config: { endpoint: 'https://203.0.113.7/mail' } }
  // The address is reserved for documentation, so it is refused where nobody allows it.
  expect(await issuer.api('POST', '/connectors', http)).toMatchObject({
    ...{ status: 422, body: { code: 'connector.target_not_allowed' } },
  })
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => issuer.api('POST', '/connectors', { connectorId: smtp, config })),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200))
  const sms = { connectorId: 'vonage-sms', config: { apiKey: 'k', apiSecret: 's', brandName: 'b' } }
  expect((await issuer.api('POST', '/connectors', sms)).status).toBe(200)
  const types = (await issuer.api('GET', '/connectors')).body.map(({ type }: { type: string }) => type)
  expect(types.toSorted()).toEqual(['Email', 'Sms'])
})

test('a configuration that does not fit is refused without saying what it held', async () => {
  await start()
  const wrong = { ...config, port: 'a secret port', host: '127.0.0.1' }
  const answer = await issuer.api('POST', '/connectors', { connectorId: smtp, config: wrong })
  expect(answer).toMatchObject({ status: 400, body: { code: 'connector.invalid_config' } })
  expect(JSON.stringify(answer.body)).toContain('config.port')
  expect(JSON.stringify(answer.body)).not.toContain('secret')
  expect(await issuer.api('POST', '/connectors', { connectorId: 'unknown' })).toMatchObject({ status: 404 })
  // Mock connectors exist only where they are asked for.
  const mock = { connectorId: 'mock-email-service', config: { apiKey: 'k', fromEmail: 'a@b.test' } }
  expect(await issuer.api('POST', '/connectors', mock)).toMatchObject({ status: 404 })
})

test('a stored secret is not sent to another address than the one it was given for', async () => {
  await start()
  const { id } = (await issuer.api('POST', '/connectors', { connectorId: smtp, config })).body
  const elsewhere = { ...config, port: 2526, auth: { user: 'mailer', pass: '********' } }
  expect(await issuer.api('PATCH', `/connectors/${id}`, { config: elsewhere })).toMatchObject({
    ...{ status: 400, body: { code: 'connector.invalid_config' } },
  })
  expect(
    await issuer.api('POST', `/connectors/${smtp}/test`, { email: 'ada@example.com', config: elsewhere }),
  ).toMatchObject({ status: 400, body: { code: 'connector.invalid_config' } })
})

test('a test-send goes through a relay and tells what came of it, without secrets', async () => {
  await start()
  await startRelay()
  const server = await startMailServer({
    onRcptTo: ({ address }, _session, done) =>
      address.startsWith('nobody') ? done(smtpError(550, 'a secret reason')) : done(),
  })
  closers.push(server.close)
  // T 132: what a caller writes reaches nobody by a test.
  const templates = [{ usageType: 'Generic', subject: 'Your invoice', content: 'Pay at https://evil.example' }]
  const body = { email: 'ada@example.com', config: { ...smtpConfig(server.port), templates } }
  expect((await issuer.api('POST', `/connectors/${smtp}/test`, body)).status).toBe(204)
  expect(server.received.map(({ to }) => to)).toEqual([['ada@example.com']])
  expect(server.received[0]!.raw).toContain('000000')
  expect(server.received[0]!.raw).not.toMatch(/evil|invoice/)
  const refused = await issuer.api('POST', `/connectors/${smtp}/test`, { ...body, email: 'nobody@example.com' })
  expect(refused).toMatchObject({ status: 422, body: { code: 'connector.send_failed', data: { error: 'smtp_550' } } })
  expect(JSON.stringify(refused.body)).not.toContain('secret')
  expect(await issuer.api('POST', `/connectors/${smtp}/test`, { ...body, email: 'a@b.test,c@d.test' })).toMatchObject({
    status: 400,
  })
  const statuses = []
  for (let index = 0; index < 12; index++)
    statuses.push((await issuer.api('POST', `/connectors/${smtp}/test`, body)).status)
  expect(statuses.at(-1)).toBe(429)
  expect(server.received.length).toBe(10)
})
