import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { webhookSecretOf } from '../../../deliveries/hook-secrets.ts'
import type { RelayConfig } from '../../../relay/config.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { eachWithLedger, ledger } from '../../support/fresh-ledger.ts'
import { type MailServer, startMailServer } from '../../support/mail-server.ts'
import { localProviders, smtpConfig, startTestMessages, type TestMessages } from '../../support/messages.ts'
import { startProcess, type TestProcess } from '../../support/process.ts'
import { testRelayConfig } from '../../support/relay.ts'

eachWithLedger()

let messages: TestMessages
let folder: string
let closers: (() => Promise<void>)[]
beforeEach(async () => {
  closers = []
  messages = await startTestMessages(ledger)
  folder = await mkdtemp(join(tmpdir(), 'surrogate-messages-'))
})
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
  await rm(folder, { recursive: true })
})

const config: RelayConfig = { ...testRelayConfig, messages: localProviders, messageRetrySchedule: [20, 20, 20] }

interface Posted {
  url: string
  headers: IncomingMessage['headers']
  body: string
}
const provider = async (
  answer: (posted: Posted, count: number) => { status: number; body?: string; headers?: Record<string, string> },
) => {
  const received: Posted[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const posted = { url: request.url ?? '', headers: request.headers, body }
      received.push(posted)
      const { status, body: answered = '', headers = {} } = answer(posted, received.length)
      response.writeHead(status, headers).end(answered)
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  closers.push(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  )
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
const sms = (type: 'SignIn' = 'SignIn') =>
  messages.sendNow({ channel: 'sms', to: '4915112345678', type, locale: 'de', variables: { code: '123456' } })
const mailServer = async (options?: Parameters<typeof startMailServer>[0]): Promise<MailServer> => {
  const server = await startMailServer(options)
  closers.push(server.close)
  return server
}
const until = (state: string) => ledger.untilTrue('SELECT bool_and(state = $1) FROM messages', state)

test('the URL of an operator gets a signed message, and again when it was not taken', async () => {
  const signingKey = 'k'.repeat(32)
  const { received, url } = await provider((_posted, count) => ({ status: count === 1 ? 503 : 204 }))
  await messages.connect('http-email', 'Email', { endpoint: `${url}/mail`, authorization: 'Bearer x', signingKey })
  await ledger.relay({ config })
  const { id } = await messages.code('ada@example.com', '123456')
  await until('sent')
  expect(received).toHaveLength(2)
  const [first, again] = received
  expect(JSON.parse(first!.body)).toEqual({
    ...{ id, to: 'ada@example.com', type: 'SignIn', template: 'SignIn', payload: { code: '123456', locale: 'en' } },
    ...{
      subject: 'Your code to sign in',
      text: expect.stringContaining('123456'),
      html: expect.stringContaining('123456'),
    },
  })
  expect(again).toMatchObject({
    url: '/mail',
    body: first!.body,
    headers: { authorization: 'Bearer x', 'webhook-id': id },
  })
  const verifier = new Webhook(webhookSecretOf(signingKey))
  expect(() => verifier.verify(first!.body, first!.headers as Record<string, string>)).not.toThrow()
})

test('Twilio, Vonage and MessageBird get what they ask for', async () => {
  const { received, url: endpoint } = await provider(({ url }) => ({
    status: 200,
    body: url === '/sms/json' ? '{"messages":[{"status":"0"}]}' : '{}',
  }))
  await ledger.relay({ config })
  const twilio = { accountSID: 'AC1', authToken: 'token', fromMessagingServiceSID: 'MG1', endpoint }
  const vonage = { apiKey: 'key', apiSecret: 'secret', brandName: 'Acme', endpoint }
  const messagebird = { accessKey: 'access', originator: 'Acme', endpoint }
  for (const [id, of] of [
    ['twilio-short-message-service', twilio],
    ['vonage-sms', vonage],
    ['messagebird-sms', messagebird],
  ] as const) {
    await messages.connect(id, 'Sms', of)
    await sms()
    await until('sent')
  }
  const text = 'Ihr Code zum Anmelden lautet 123456. Er gilt 10 Minuten. Geben Sie ihn niemandem weiter.'
  expect(received.map(({ url }) => url)).toEqual(['/2010-04-01/Accounts/AC1/Messages.json', '/sms/json', '/messages'])
  const [first, second, third] = received
  expect(Object.fromEntries(new URLSearchParams(first!.body))).toEqual({
    ...{ To: '+4915112345678', MessagingServiceSid: 'MG1', Body: text },
  })
  expect(first!.headers.authorization).toBe(`Basic ${Buffer.from('AC1:token').toString('base64')}`)
  expect(Object.fromEntries(new URLSearchParams(second!.body))).toEqual({
    ...{ api_key: 'key', api_secret: 'secret', from: 'Acme', to: '4915112345678', text, type: 'unicode' },
  })
  expect(JSON.parse(third!.body)).toEqual({
    ...{ originator: 'Acme', recipients: ['4915112345678'], body: text, datacoding: 'auto' },
  })
  expect(third!.headers.authorization).toBe('AccessKey access')
})

test('a number that the provider refuses is given up, also when the refusal is a 200', async () => {
  const { url: endpoint } = await provider(() => ({ status: 200, body: '{"messages":[{"status":"3"}]}' }))
  await messages.connect('vonage-sms', 'Sms', { apiKey: 'key', apiSecret: 'secret', brandName: 'Acme', endpoint })
  await ledger.relay({ config })
  await sms()
  await until('failed')
  expect(await ledger.rows('SELECT error, attempts FROM messages')).toEqual([{ error: 'vonage_3', attempts: 1 }])
})

test('two relays send two hundred messages once each', async () => {
  const server = await mailServer()
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(server.port))
  await ledger.relay({ config })
  await ledger.relay({ config, ownDatabase: true })
  const wanted = Array.from({ length: 200 }, (_, index) => `user${index}@example.com`)
  for (const to of wanted) await messages.code(to)
  await until('sent')
  expect(server.received.map(({ to }) => to[0]!).toSorted()).toEqual(wanted.toSorted())
})

const script = fileURLToPath(new URL('../../support/relay-process.ts', import.meta.url))
const relayProcess = async (): Promise<TestProcess> => {
  const { connection, key } = ledger
  const options = JSON.stringify({ connection, key: key.toString('hex'), config: { ...config, messageLeaseMs: 1_500 } })
  const relay = startProcess(process.execPath, [script, options], { cwd: process.cwd() })
  closers.push(async () => {
    relay.signal('SIGKILL')
    await relay.exited
  })
  await relay.waitFor(/started/)
  return relay
}

test('a relay that is killed while it sends loses nothing: another sends it again', async () => {
  let kill = () => {}
  let isFirst = true
  const server = await mailServer({
    onMailFrom(_address, _session, done) {
      if (!isFirst) return done()
      isFirst = false
      kill()
    },
  })
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(server.port))
  const relay = await relayProcess()
  kill = () => relay.signal('SIGKILL')
  await messages.code('ada@example.com')
  await relay.exited
  expect(await ledger.rows('SELECT state, attempts FROM messages')).toEqual([{ state: 'waiting', attempts: 1 }])
  await ledger.relay({ config })
  await server.until(1)
  await until('sent')
  expect(await ledger.rows('SELECT attempts FROM messages')).toEqual([{ attempts: 2 }])
})

test('a relay that is told to stop finishes what it sends', async () => {
  let proceed = () => {}
  const arrived = Promise.withResolvers<void>()
  const server = await mailServer({
    onMailFrom(_address, _session, done) {
      proceed = done
      arrived.resolve()
    },
  })
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(server.port))
  const relay = await ledger.relay({ config })
  await messages.code('ada@example.com')
  await arrived.promise
  const closed = relay.close()
  await messages.code('eve@example.com')
  proceed()
  await closed
  expect(await ledger.rows('SELECT state, attempts FROM messages ORDER BY created_at')).toEqual([
    { state: 'sent', attempts: 1 },
    { state: 'waiting', attempts: 0 },
  ])
})

test('a code whose time is over is never sent, and is erased', async () => {
  const server = await mailServer()
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(server.port))
  await messages.code('late@example.com')
  await ledger.rows(`UPDATE messages SET expires_at = now() - interval '1 second'`)
  await ledger.relay({ config })
  await until('expired')
  await messages.code('ada@example.com')
  await server.until(1)
  expect(server.received.map(({ to }) => to)).toEqual([['ada@example.com']])
  expect(await ledger.rows(`SELECT sealed FROM messages WHERE state = 'expired'`)).toEqual([{ sealed: null }])
})

test('what cannot be sent before its time is over is given up, not kept', async () => {
  await messages.connect('http-sms', 'Sms', { endpoint: 'http://127.0.0.1:9/' })
  await sms()
  await ledger.rows(`UPDATE messages SET expires_at = now() + interval '5 seconds'`)
  await ledger.relay({ config: { ...config, messageRetrySchedule: [60_000] } })
  await until('failed')
})

test('mock connectors write the last message and all of them, for tests of existing clients', async () => {
  const mocks = { ...localProviders, mockFolder: folder }
  const testing = await startTestMessages(ledger, mocks)
  const templates = [{ usageType: 'SignIn', type: 'text/plain', subject: 'Hello', content: 'The code is {{code}}.' }]
  await testing.connect('mock-email-service', 'Email', { apiKey: 'k', fromEmail: 'a@b.test', templates })
  await testing.connect('mock-short-message-service', 'Sms', {
    ...{
      accountSID: 'a',
      authToken: 't',
      fromMessagingServiceSID: 'm',
      templates: [{ usageType: 'Generic', content: '{{code}}' }],
    },
  })
  await ledger.relay({ config: { ...config, messages: mocks } })
  const sent = await testing.code('ada@example.com', '123456')
  await sent.afterCommit()
  const read = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'))
  expect(await read('mock_email_record.txt')).toEqual({
    ...{
      address: 'ada@example.com',
      code: '123456',
      type: 'SignIn',
      payload: { code: '123456' },
      template: templates[0],
    },
    ...{ subject: 'Hello', content: 'The code is 123456.' },
  })
  const bySms = await testing.sendNow({
    ...{ channel: 'sms', to: '4915112345678', type: 'Register', locale: 'en', variables: { code: '654321' } },
  })
  if (typeof bySms === 'string') throw new Error(bySms)
  await bySms.afterCommit()
  expect(await read('mock_sms_record.txt')).toMatchObject({ phone: '+4915112345678', code: '654321', type: 'Register' })
  const notice = await testing.sendNow({
    ...{ channel: 'email', to: 'ada@example.com', type: 'PasswordChanged', locale: 'en', variables: {} },
  })
  if (typeof notice === 'string') throw new Error(notice)
  await notice.afterCommit()
  expect(await read('mock_email_record.txt')).toMatchObject({ type: 'Notice', subject: 'Your password was changed' })
  const lines = (await readFile(join(folder, 'mock_messages.jsonl'), 'utf8')).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line).name)).toEqual(['SignIn', 'Register', 'PasswordChanged'])
})

test('without a connector the outbox takes messages, in a file that others cannot read', async () => {
  const outbox = join(folder, 'below', 'messages.jsonl')
  const developing = { ...localProviders, outbox }
  const testing = await startTestMessages(ledger, developing)
  await ledger.relay({ config: { ...config, messages: developing } })
  await testing.code('ada@example.com', '123456')
  await until('sent')
  expect(JSON.parse(await readFile(outbox, 'utf8'))).toMatchObject({
    ...{ channel: 'email', to: 'ada@example.com', type: 'SignIn', code: '123456', subject: 'Your code to sign in' },
  })
  expect((await stat(outbox)).mode & 0o077).toBe(0)
})

test('neither recipient nor code stands in the log, whatever goes wrong', async () => {
  const { url } = await provider(({ body }) => ({ status: 500, body }))
  await messages.connect('http-email', 'Email', { endpoint: url })
  const { logger, lines } = capturedLogger('trace')
  await ledger.relay({ config, logger })
  await messages.code('ada@example.com', '271828')
  await ledger.untilTrue('SELECT attempts >= 3 FROM messages')
  expect(lines).not.toEqual([])
  expect(JSON.stringify(lines)).not.toMatch(/ada@|271828/)
  expect(await ledger.rows('SELECT error FROM messages')).toEqual([{ error: 'http_500' }])
})
