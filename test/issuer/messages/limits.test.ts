import { beforeEach, expect, test } from 'vitest'
import { eachWithLedger, ledger } from '../../support/fresh-ledger.ts'
import { smtpConfig, startTestMessages, type TestMessages } from '../../support/messages.ts'

eachWithLedger()

let messages: TestMessages
beforeEach(async () => {
  messages = await startTestMessages(ledger)
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(2525))
})

const ask = (more: { to?: string; ip?: string; knownDevice?: string } = {}) =>
  messages.mayBeSent(ledger.database.query, { channel: 'email', to: 'ada@example.com', ...more })
const asking = async (times: number, more?: Parameters<typeof ask>[0]) => {
  const answers = await Promise.all(Array.from({ length: times }, () => ask(more)))
  return answers.filter((answer) => typeof answer !== 'string').length
}
const later = (seconds: number) =>
  ledger.rows(`UPDATE message_counts SET since = since - $1 * interval '1 second'`, seconds)

test('of fifty at once for one recipient five come through, in whatever spelling', async () => {
  expect(await asking(50)).toBe(5)
  expect(await ask({ to: 'ADA@Example.COM' })).toBe('limited')
  expect(await ask({ to: 'eve@example.com' })).toMatchObject({ to: 'eve@example.com' })
})

test('five in ten minutes, twenty a day', async () => {
  for (let round = 0; round < 4; round++) {
    expect(await asking(6)).toBe(5)
    await later(601)
  }
  expect(await asking(6)).toBe(0)
  await later(86_400)
  expect(await asking(6)).toBe(5)
})

test('an address gets twenty an hour, over all recipients; those of one IPv6 network together', async () => {
  let sent = 0
  for (let index = 0; index < 25; index++)
    sent += await asking(1, { to: `user${index}@example.com`, ip: `2001:db8:1:2::${index + 1}` })
  expect(sent).toBe(20)
  expect(await asking(1, { to: 'other@example.com', ip: '2001:db8:1:3::1' })).toBe(1)
})

test('what an address is refused does not count against the recipient', async () => {
  for (let index = 0; index < 20; index++) await ask({ to: `user${index}@example.com`, ip: '192.0.2.1' })
  expect(await asking(50, { ip: '192.0.2.1' })).toBe(0)
  expect(await asking(6, { ip: '192.0.2.2' })).toBe(5)
})

test('strangers cannot use up the quota of an owner at a known device, even behind the same address', async () => {
  expect(await asking(50, { ip: '192.0.2.1' })).toBe(5)
  expect(await asking(50, { ip: '192.0.2.1', knownDevice: 'a known browser' })).toBe(5)
})

test('a message that goes beyond a limit is a value, is not kept, and is in the audit log once', async () => {
  const code = () =>
    messages.sendNow({
      ...{ channel: 'email', to: 'ada@example.com', type: 'SignIn', locale: 'en', variables: { code: '123456' } },
      userId: 'u1',
      request: {
        ip: '192.0.2.1',
        userAgent: 'x',
        method: 'POST',
        path: '/',
        matchedRoute: '/',
        params: {},
        status: 429,
      },
    })
  const answers = []
  for (let index = 0; index < 8; index++) answers.push(await code())
  expect(answers.filter((answer) => answer === 'limited')).toHaveLength(3)
  expect(await ledger.rows('SELECT count(*) AS total FROM messages')).toEqual([{ total: 5 }])
  expect(await ledger.rows(`SELECT key, user_id FROM logs`)).toEqual([{ key: 'Message.RateLimited', user_id: 'u1' }])
  expect(await ledger.rows(`SELECT type, entity_id FROM outbox`)).toEqual([
    { type: 'Message.RateLimited', entity_id: 'u1' },
  ])
})

test('fifty transactions that send at once to one recipient: five messages, and none waits for another for ever', async () => {
  const code = {
    channel: 'email',
    type: 'SignIn',
    locale: 'en',
    variables: { code: '123456' },
    ip: '192.0.2.1',
  } as const
  const sent = await Promise.all(Array.from({ length: 50 }, () => messages.sendNow({ ...code, to: 'ada@example.com' })))
  expect(sent.filter((answer) => typeof answer !== 'string')).toHaveLength(5)
  expect(await ledger.rows('SELECT count(*) AS total FROM messages')).toEqual([{ total: 5 }])
})

test('a permit counts once: what was asked for before is not counted again when it is sent', async () => {
  for (let index = 0; index < 5; index++) {
    const permit = await ask()
    if (typeof permit === 'string') throw new Error(permit)
    const sent = await messages.sendNow({
      ...{ channel: 'email', to: 'ada@example.com', type: 'SignIn', locale: 'en', variables: { code: '123456' } },
      permit,
    })
    expect(sent).toMatchObject({ id: expect.any(String) })
  }
  expect(await ask()).toBe('limited')
})

test('what an owner must know is sent whatever strangers have asked for', async () => {
  expect(await asking(50)).toBe(5)
  const notice = {
    channel: 'email',
    to: 'ada@example.com',
    type: 'PasswordChanged',
    locale: 'en',
    variables: {},
  } as const
  expect(await messages.sendNow(notice)).toMatchObject({ id: expect.any(String) })
})

test('the circuit of a connector ends everything that no other limit notices', async () => {
  await messages.connect('simple-mail-transfer-protocol', 'Email', smtpConfig(2525, { maxPerHour: 3 }))
  let sent = 0
  for (let index = 0; index < 10; index++) sent += await asking(1, { to: `user${index}@example.com` })
  expect(sent).toBe(3)
})

test('calls to one country cannot use up what the others need', async () => {
  const config = { apiKey: 'k', apiSecret: 's', brandName: 'b', maxPerHour: 8 }
  await messages.connect('vonage-sms', 'Sms', config)
  const sms = async (to: string) =>
    typeof (await messages.mayBeSent(ledger.database.query, { channel: 'sms', to })) !== 'string'
  const results = []
  for (let index = 0; index < 6; index++) results.push(await sms(`+99412345670${index}`))
  expect(results).toEqual([true, true, true, true, false, false])
  expect(await sms('+4915112345678')).toBe(true)
})

test('without a connector nothing is sent, and it is said; with an outbox it goes there', async () => {
  const other = await startTestMessages(ledger)
  const message = {
    channel: 'sms',
    to: '4915112345678',
    type: 'SignIn',
    locale: 'en',
    variables: { code: '123456' },
  } as const
  expect(await other.sendNow(message)).toBe('no_connector')
  expect(other.isAvailable('sms')).toBe(false)
  const developing = await startTestMessages(ledger, { allowedNetworks: [], outbox: 'unused', mockFolder: undefined })
  expect(await developing.sendNow(message)).toMatchObject({ id: expect.any(String) })
})

test('counters and messages do not tell whom they are about', async () => {
  await messages.code('ada@example.com', '314159')
  const dump =
    JSON.stringify(await ledger.rows('SELECT m::text AS row FROM messages m')) +
    JSON.stringify(await ledger.rows('SELECT c::text AS row FROM message_counts c')) +
    JSON.stringify(await ledger.rows('SELECT c::text AS row FROM connectors c'))
  // Longer than what digests say by chance.
  for (const secret of ['ada@example', 'example.com', '314159', 'surrogate.test'])
    for (const form of [
      secret,
      Buffer.from(secret).toString('hex'),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    ])
      expect(dump).not.toContain(form)
})
