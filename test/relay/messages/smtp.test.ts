import { connect as connectTo, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RelayConfig } from '../../../relay/config.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { createAuthority } from '../../support/certificates.ts'
import { eachWithLedger, ledger } from '../../support/fresh-ledger.ts'
import { type MailServer, smtpError, startMailServer, textsOf } from '../../support/mail-server.ts'
import { localProviders, smtpConfig, startTestMessages, type TestMessages } from '../../support/messages.ts'
import { testRelayConfig } from '../../support/relay.ts'

eachWithLedger()

let messages: TestMessages
let closers: (() => Promise<void>)[]
beforeEach(async () => {
  closers = []
  messages = await startTestMessages(ledger)
})
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
})

const mailServer = async (options?: Parameters<typeof startMailServer>[0]): Promise<MailServer> => {
  const server = await startMailServer(options)
  closers.push(server.close)
  return server
}
const config: RelayConfig = { ...testRelayConfig, messages: localProviders, messageRetrySchedule: [20, 20, 20] }
const smtp = (port: number, more?: Record<string, unknown>) =>
  messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(port, more))
const rows = () => ledger.rows('SELECT state, error, attempts, sealed IS NULL AS erased, connector FROM messages')

test('a code reaches the one recipient as text and HTML, and nothing of it stays', async () => {
  const server = await mailServer()
  await smtp(server.port)
  await ledger.relay({ config })
  await messages.code('ada@example.com', '123456')
  const [mail] = await server.until(1)
  await ledger.untilTrue(`SELECT state = 'sent' FROM messages`)
  expect(await rows()).toEqual([
    { state: 'sent', error: null, attempts: 1, erased: true, connector: 'simple-mail-transfer-protocol' },
  ])
  expect(mail).toMatchObject({ from: 'no-reply@surrogate.test', to: ['ada@example.com'] })
  const { headers, text, html } = textsOf(mail!.raw)
  expect(headers).toContain('Subject: Your code to sign in')
  expect(headers).toContain('Auto-Submitted: auto-generated')
  expect(text).toContain('Your code to sign in is 123456.')
  expect(html).toContain('>123456</strong>')
})

test('a name cannot add a recipient, a header or a link', async () => {
  const server = await mailServer()
  await smtp(server.port)
  await ledger.relay({ config })
  await messages.sendNow({
    ...{ channel: 'email', to: 'ada@example.com', type: 'OrganizationInvitation', locale: 'en' },
    variables: {
      organization: 'Acme\r\nBcc: eve@evil.example\r\n\r\n<a href="https://evil.example">Win</a>',
      link: 'https://id.example.com/invitation/1',
    },
  })
  const [mail] = await server.until(1)
  expect(mail!.to).toEqual(['ada@example.com'])
  const { headers, text, html } = textsOf(mail!.raw)
  expect(headers).not.toMatch(/^bcc:/im)
  expect(headers.match(/^to:.*$/gim)).toEqual(['To: ada@example.com'])
  const links = (part: string) => part.match(/https?:\/\/[^\s"<]+/g)
  expect(links(text)).toEqual(['https://id.example.com/invitation/1'])
  expect(new Set(links(html))).toEqual(new Set(['https://id.example.com/invitation/1']))
})

test('mail servers are found by name, and their addresses held against what is allowed at every connect', async () => {
  const server = await mailServer()
  await smtp(server.port, { host: 'mail.surrogate.test' })
  let address = '127.0.0.1'
  const resolve = async () => [{ address, family: 4 }]
  const relay = await ledger.relay({ config, resolve })
  await messages.code('ada@example.com')
  await server.until(1)
  await relay.close()
  // Private, and not among the networks that are allowed.
  address = '10.0.0.1'
  await ledger.relay({ config, resolve })
  await messages.code('eve@example.com')
  await ledger.untilTrue(`SELECT bool_or(error = 'not_allowed') FROM messages`)
})

test('a message that is refused for now is sent again, with the same id, and then once', async () => {
  const server = await mailServer({ refuse: (_mail, count) => (count <= 2 ? smtpError(451) : undefined) })
  await smtp(server.port)
  await ledger.relay({ config })
  await messages.code('ada@example.com')
  await server.until(1)
  await ledger.untilTrue(`SELECT state = 'sent' FROM messages`)
  expect(await rows()).toMatchObject([{ attempts: 3, error: null }])
  expect(server.received).toHaveLength(1)
})

test('a recipient that the server will never take is given up at once, without what the server said', async () => {
  const server = await mailServer({
    onRcptTo: ({ address }, _session, done) => done(smtpError(550, `no ${address} here`)),
  })
  await smtp(server.port)
  const { logger, lines } = capturedLogger('trace')
  await ledger.relay({ config, logger })
  await messages.code('nobody@example.com')
  await ledger.untilTrue(`SELECT state = 'failed' FROM messages`)
  expect(await rows()).toMatchObject([{ attempts: 1, error: 'smtp_550', erased: true }])
  expect(JSON.stringify(lines)).not.toContain('nobody@example.com')
})

test('a connection that ends in the middle of DATA is no delivery: the message is sent again', async () => {
  let connections = 0
  const seen: Socket[] = []
  const target = await mailServer()
  const proxy = createServer((socket) => {
    seen.push(socket)
    connections++
    if (connections > 3) {
      const upstream = createConnectionTo(target.port)
      socket.pipe(upstream).pipe(socket)
      upstream.on('error', () => socket.destroy())
      socket.on('error', () => upstream.destroy())
      return
    }
    // It answers everything and hangs up as soon as the message begins.
    socket.on('error', () => {})
    socket.write('220 ready\r\n')
    socket.on('data', (chunk) => {
      const line = chunk.toString()
      if (/^EHLO/i.test(line)) socket.write('250 ok\r\n')
      else if (/^(MAIL|RCPT)/i.test(line)) socket.write('250 ok\r\n')
      else if (/^DATA/i.test(line)) socket.write('354 go on\r\n')
      else socket.destroy()
    })
  })
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve)
  })
  closers.push(
    () =>
      new Promise((resolve) => {
        for (const socket of seen) socket.destroy()
        proxy.close(() => resolve())
      }),
  )
  await smtp((proxy.address() as { port: number }).port)
  await ledger.relay({ config })
  await messages.code('ada@example.com')
  await target.until(1)
  await ledger.untilTrue(`SELECT state = 'sent' FROM messages`)
  expect(connections).toBeGreaterThan(3)
})

test('a server that never answers holds a message up no longer than its time limit', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket))
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve)
  })
  closers.push(
    () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        silent.close(() => resolve())
      }),
  )
  await smtp((silent.address() as { port: number }).port)
  await ledger.relay({ config: { ...config, messageTimeoutMs: 200 } })
  await messages.code('ada@example.com')
  await ledger.untilTrue(`SELECT attempts = 1 AND error = 'timeout' FROM messages`)
  const server = await mailServer()
  await smtp(server.port)
  await server.until(1)
})

test('TLS from the beginning and by STARTTLS is verified; a server that is not who it should be gets nothing', async () => {
  const authority = createAuthority()
  closers.push(async () => authority.remove())
  const certificate = authority.issue('mail.surrogate.test')
  const tls = { servername: 'mail.surrogate.test', ca: authority.certificate }
  const server = await mailServer({ secure: true, ...certificate })
  await smtp(server.port, { secure: true, tls })
  await ledger.relay({ config })
  await messages.code('first@example.com')
  await server.until(1)

  const starting = await mailServer({ ...certificate })
  await smtp(starting.port, { requireTLS: true, tls })
  await messages.code('second@example.com')
  await starting.until(1)

  await smtp(starting.port, { requireTLS: true, tls: { ...tls, servername: 'other.surrogate.test' } })
  await messages.code('third@example.com')
  await ledger.untilTrue(`SELECT bool_or(error = 'tls' AND state = 'waiting') FROM messages`)

  const plain = await mailServer()
  await smtp(plain.port, { requireTLS: true })
  await ledger.untilTrue(`SELECT bool_or(error = 'tls' AND attempts > 2) FROM messages`)
  expect(plain.received).toEqual([])
})

test('wrong credentials keep messages waiting, and are neither stored nor logged', async () => {
  let allowed = 'right password'
  const server = await mailServer({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ password }, _session, done) =>
      password === allowed ? done(null, { user: 'x' }) : done(smtpError(535, `not ${password}`)),
  })
  await smtp(server.port, { auth: { user: 'mailer', pass: 'very secret password' } })
  const { logger, lines } = capturedLogger('trace')
  await ledger.relay({ config, logger })
  await messages.code('ada@example.com')
  await ledger.untilTrue(`SELECT state = 'waiting' AND error = 'authentication' FROM messages`)
  expect(JSON.stringify(lines)).not.toContain('very secret')
  allowed = 'very secret password'
  await server.until(1)
})

test('addresses that are not public are reached only where the operator says so', async () => {
  const server = await mailServer()
  await smtp(server.port)
  await ledger.relay({ config: { ...testRelayConfig } })
  await messages.code('ada@example.com')
  await ledger.untilTrue(`SELECT error = 'not_allowed' FROM messages`)
  expect(server.received).toEqual([])
})

const createConnectionTo = (port: number) => connectTo({ port, host: '127.0.0.1' })
