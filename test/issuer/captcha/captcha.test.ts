import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createHmacs } from '../../../issuer/base/hmac-keys-store.ts'
import { createCaptcha } from '../../../issuer/captcha/captcha.ts'
import {
  type CaptchaSettings,
  captchaDefaults,
  captchaSettingsOf,
  readCaptchaPolicy,
} from '../../../issuer/captcha/captcha-settings.ts'
import { createRetentionJob, retentionDefaults } from '../../../issuer/maintenance/retention.ts'
import type { Query } from '../../../platform/database/database.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { Secret } from '../../../platform/secret.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startWebsite, type WebsiteAnswer } from '../../support/website.ts'

let fixture: TestDatabase
const envelope = createEnvelope({ current: randomBytes(32), previous: undefined })
beforeAll(async () => {
  fixture = await createTestDatabase()
})
afterAll(() => fixture?.close())

/** As one instance of an issuer has it; two of them share the database alone. */
const open = async (options: { settings?: Partial<CaptchaSettings>; now?: () => Date; query?: Query } = {}) => {
  const { query = fixture.database.query } = options
  const { logger, lines } = capturedLogger()
  const metrics = createMetrics()
  const captcha = createCaptcha({
    query,
    hmac: await createHmacs(fixture.database, envelope),
    settings: { ...captchaDefaults, difficulty: 8, ...options.settings },
    logger,
    metrics,
    ...(options.now && { now: options.now }),
  })
  onTestFinished(() => captcha.close())
  return { ...captcha, lines, text: async () => (await metrics.render()).text }
}

const steppingClock = () => {
  let time = Date.now()
  return {
    now: () => new Date(time),
    step: (ms: number) => {
      time += ms
    },
  }
}

const signIn = { purpose: 'sign_in', context: 'interaction-1' }
const ip = '203.0.113.9'

/** Another implementation than that of the pages: Node's. */
const solve = (challenge: string, bits: number, from = 0): string => {
  const [, mac] = challenge.split('.')
  for (let number = from; ; number++) {
    const digest = createHash('sha256').update(`${mac}.${number}`).digest()
    if (Math.clz32(digest.readUInt32BE(0)) >= bits) return `${challenge}.${number}`
  }
}

const challengeOf = (captcha: Awaited<ReturnType<typeof open>>, use = signIn): string => {
  const test = captcha.challenge(use)
  if (test.provider !== 'proof_of_work') throw new Error('no proof of work')
  return test.challenge
}

describe('a proof of work', () => {
  test('passes once, at whichever instance, and a second solution of it is no other', async () => {
    const [one, other] = [await open(), await open()]
    const challenge = challengeOf(one)
    const answer = solve(challenge, 8)
    expect(await other.verify({ ...signIn, ip, answer })).toBe('passed')
    expect(await other.verify({ ...signIn, ip, answer })).toBe('used')
    expect(await one.verify({ ...signIn, ip, answer })).toBe('used')
    const second = solve(challenge, 8, Number(answer.split('.')[2]) + 1)
    expect(await one.verify({ ...signIn, ip, answer: second })).toBe('used')
  })

  test('that is sent fifty times at once passes once', async () => {
    const instances = [await open(), await open()]
    const answer = solve(challengeOf(instances[0]!), 8)
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) => instances[index % 2]!.verify({ ...signIn, ip, answer })),
    )
    expect(outcomes.toSorted()).toEqual(['passed', ...Array<string>(49).fill('used')])
  })

  test('is worth nothing for something else, or in another interaction', async () => {
    const captcha = await open()
    const answer = solve(challengeOf(captcha), 8)
    expect(await captcha.verify({ ...signIn, purpose: 'register', ip, answer })).toBe('invalid')
    expect(await captcha.verify({ ...signIn, context: 'interaction-2', ip, answer })).toBe('invalid')
    expect(await captcha.verify({ ...signIn, ip, answer })).toBe('passed')
  })

  test('that is too old does not pass: the database says how late it is', async () => {
    const captcha = await open({ now: () => new Date(Date.now() - 31 * 60_000) })
    expect(await captcha.verify({ ...signIn, ip, answer: solve(challengeOf(captcha), 8) })).toBe('expired')
    const younger = await open({ now: () => new Date(Date.now() - 29 * 60_000) })
    expect(await younger.verify({ ...signIn, ip, answer: solve(challengeOf(younger), 8) })).toBe('passed')
  })

  test('of a challenge that was made easier, or longer, by whoever solves it does not pass', async () => {
    const captcha = await open({ settings: { difficulty: 20 } })
    const [payload, mac] = challengeOf(captcha).split('.')
    const [nonce, bits, expiresAt] = JSON.parse(Buffer.from(payload!, 'base64url').toString())
    expect(bits).toBe(20)
    const forge = (parts: unknown[]) => `${Buffer.from(JSON.stringify(parts)).toString('base64url')}.${mac}`
    const verify = (answer: string) => captcha.verify({ ...signIn, ip, answer })
    expect(await verify(solve(forge([nonce, 1, expiresAt]), 1))).toBe('invalid')
    expect(await verify(solve(forge([nonce, 1, expiresAt + 1e9]), 1))).toBe('invalid')
    // The challenge as it was, with less work than it says.
    const cheap = Array.from({ length: 100 }, (_, number) => `${payload}.${mac}.${number}`)
    expect(new Set(await Promise.all(cheap.map(verify)))).toEqual(new Set(['invalid']))
  })

  test.each([undefined, ''])('that is missing (%j) is told from one that is wrong', async (answer) => {
    const captcha = await open()
    expect(await captcha.verify({ ...signIn, ip, answer })).toBe('missing')
  })

  test.each(['x', '..', 'a.b.1', `a.${'b'.repeat(43)}.1`, `a.${'b'.repeat(43)}.-1`, '\0'.repeat(300_000)])(
    'that cannot be read is wrong',
    async (answer) => {
      const captcha = await open()
      expect(await captcha.verify({ ...signIn, ip, answer })).toBe('invalid')
    },
  )
})

describe('it is due', () => {
  beforeEach(() => fixture.database.knex.raw('DELETE FROM failing_identifiers'))
  const stranger = { policy: { enabled: false }, require: [], isDeviceKnown: false }

  test('where the settings say so, or a rule, for known browsers too', async () => {
    const captcha = await open()
    expect(await captcha.isDue(stranger)).toBeUndefined()
    expect(await captcha.isDue({ ...stranger, policy: { enabled: true }, isDeviceKnown: true })).toBe('setting')
    expect(await captcha.isDue({ ...stranger, require: ['captcha'], isDeviceKnown: true })).toBe('rule')
    expect(await captcha.isDue({ ...stranger, require: ['mfa'] })).toBeUndefined()
  })

  // T 62
  test('for unknown browsers once many people fail with one try each, whatever addresses they come from', async () => {
    const clock = steppingClock()
    const [one, other] = [await open(), await open({ now: clock.now })]
    const attack = async (count: number) => {
      for (let done = 0; done < count; done += 50)
        await Promise.all(Array.from({ length: 50 }, (_, index) => one.failed(`victim-${done + index}@example.test`)))
    }
    await attack(150)
    expect(await other.isDue(stranger)).toBeUndefined()
    await attack(5_000)
    clock.step(1_000)
    expect(await other.isDue(stranger)).toBe('attack')
    expect(await other.isDue({ ...stranger, isDeviceKnown: true })).toBeUndefined()
    expect(await one.text()).toContain('surrogate_sign_in_failures_total 5150')
    expect(await other.text()).toContain('surrogate_captcha_required_total{reason="attack"} 1')
    // It passes by itself.
    await fixture.database.knex.raw(`UPDATE failing_identifiers SET failed_at = now() - interval '11 minutes'`)
    clock.step(1_000)
    expect(await other.isDue(stranger)).toBeUndefined()
  })

  test('at once where people fail, and within a second at another instance', async () => {
    const clock = steppingClock()
    const settings = { failingIdentifiers: 2 }
    const [one, other] = [await open({ settings, now: clock.now }), await open({ settings, now: clock.now })]
    const due = () => Promise.all([one.isDue(stranger), other.isDue(stranger)])
    expect(await due()).toEqual([undefined, undefined])
    await one.failed('ada')
    await one.failed('bob')
    expect(await one.isDue(stranger)).toBe('attack')
    clock.step(1_000)
    expect(await due()).toEqual(['attack', 'attack'])
    await one.succeeded('bob')
    expect(await one.isDue(stranger)).toBeUndefined()
    // A clock that was put back keeps nothing longer.
    clock.step(-60_000)
    expect(await other.isDue(stranger)).toBeUndefined()
  })

  test('and a database that could not be asked is asked again', async () => {
    const { query } = fixture.database
    let isAway = true
    const captcha = await open({
      query: (statement, values) => (isAway ? Promise.reject(new Error('away')) : query(statement, values)),
    })
    await expect(captcha.isDue(stranger)).rejects.toThrow('away')
    isAway = false
    expect(await captcha.isDue(stranger)).toBeUndefined()
  })

  test('not because somebody fails again and again, nor because people mistype', async () => {
    const captcha = await open({ settings: { failingIdentifiers: 3 } })
    for (let count = 0; count < 20; count++) await captcha.failed('ada@example.test')
    for (const name of ['bob', 'cid', 'dora', 'eve']) {
      await captcha.failed(name)
      await captcha.succeeded(name)
    }
    expect(await captcha.isDue(stranger)).toBeUndefined()
    await captcha.failed('bob')
    await captcha.failed('cid')
    expect(await captcha.isDue(stranger)).toBe('attack')
  })

  test('never by the number of failures where that is switched off', async () => {
    const captcha = await open({ settings: { failingIdentifiers: 0 } })
    await captcha.failed('ada')
    expect(await captcha.isDue(stranger)).toBeUndefined()
  })

  test('and no identifier stands in the database', async () => {
    const captcha = await open()
    await captcha.failed('ada@example.test')
    const { rows } = await fixture.database.knex.raw('SELECT * FROM failing_identifiers')
    expect(JSON.stringify(rows)).not.toContain('ada')
    expect(rows).toHaveLength(1)
  })
})

test('what counts no more is removed, and what counts stays', async () => {
  const { database } = fixture
  await database.knex.raw('DELETE FROM failing_identifiers')
  await database.knex.raw('DELETE FROM captcha_solutions')
  await database.knex.raw(`INSERT INTO failing_identifiers VALUES ('old', now() - interval '2 hours'), ('new', now())`)
  await database.knex.raw(
    `INSERT INTO captcha_solutions VALUES ('old', now() - interval '1 second'), ('new', now() + interval '1 minute')`,
  )
  const job = createRetentionJob({
    database,
    retention: retentionDefaults,
    logger: silentLogger,
    metrics: createMetrics(),
  })
  await job.run()
  await job.close()
  const left = async (table: string, column: string) =>
    (await database.knex.raw(`SELECT convert_from(${column}, 'UTF8') AS name FROM ${table}`)).rows
  expect(await left('failing_identifiers', 'key')).toEqual([{ name: 'new' }])
  expect(await left('captcha_solutions', 'digest')).toEqual([{ name: 'new' }])
})

describe('Turnstile', () => {
  /** Cloudflare's side, as its documentation describes it. */
  const cloudflare = async (answer: () => WebsiteAnswer | Promise<WebsiteAnswer>) => {
    const site = await startWebsite(answer)
    onTestFinished(() => site.close())
    return site
  }
  const settings = (url: string, failOpen = false): Partial<CaptchaSettings> => ({
    turnstile: {
      siteKey: 'site',
      secretKey: new Secret('the-secret-key'),
      failOpen,
      url: `${url}/turnstile/v0/siteverify`,
      targets: { allowedNetworks: ['127.0.0.0/8', '::1/128'], allowHttp: true },
    },
  })
  const json = (body: object) => ({ body: JSON.stringify(body) })
  const answered = { ...signIn, ip, answer: 'a-token' }

  test('is asked with the secret, the token and the address; what it says counts', async () => {
    let says: object = { success: true, action: 'sign_in', cdata: 'interaction-1', hostname: 'id.example.test' }
    const site = await cloudflare(() => json(says))
    const captcha = await open({ settings: settings(site.url) })
    expect(captcha.challenge(signIn)).toEqual({
      provider: 'turnstile',
      siteKey: 'site',
      action: 'sign_in',
      data: 'interaction-1',
    })
    expect(await captcha.verify(answered)).toBe('passed')
    const { path, body } = site.received.at(-1)!
    expect({ path, ...Object.fromEntries(new URLSearchParams(body)) }).toEqual({
      path: '/turnstile/v0/siteverify',
      secret: 'the-secret-key',
      response: 'a-token',
      remoteip: ip,
    })
    expect(await captcha.verify({ ...answered, purpose: 'register' })).toBe('invalid')
    expect(await captcha.verify({ ...answered, context: 'interaction-2' })).toBe('invalid')
    says = { success: false, 'error-codes': ['invalid-input-response'] }
    expect(await captcha.verify(answered)).toBe('invalid')
    says = { success: false, 'error-codes': ['timeout-or-duplicate'] }
    expect(await captcha.verify(answered)).toBe('used')
  })

  test.each([
    ['our key is wrong', json({ success: false, 'error-codes': ['invalid-input-secret'] })],
    ['it answers something else', { status: 502, body: 'Bad gateway' }],
    ['it answers far too much', { body: 'x'.repeat(100_000) }],
  ])('fails closed when %s, or open where that is set, and the log tells without the key', async (_, says) => {
    const site = await cloudflare(() => says)
    const closed = await open({ settings: settings(site.url) })
    expect(await closed.verify(answered)).toBe('unavailable')
    const lax = await open({ settings: settings(site.url, true) })
    expect(await lax.verify(answered)).toBe('skipped')
    expect(await lax.text()).toContain('surrogate_captcha_answers_total{outcome="skipped"} 1')
    expect(closed.lines).toContainEqual(
      expect.objectContaining({ msg: 'Turnstile could not be asked', failOpen: false }),
    )
    for (const secret of ['the-secret-key', 'a-token']) expect(JSON.stringify(closed.lines)).not.toContain(secret)
  })

  test('is not waited for without end', async () => {
    const site = await cloudflare(() => new Promise(() => {}))
    expect(await (await open({ settings: settings(site.url) })).verify(answered)).toBe('unavailable')
    expect(site.received).toHaveLength(1)
  })

  test('fails closed when nobody answers, and even where it fails open nothing passes without an answer', async () => {
    const site = await cloudflare(() => ({}))
    await site.close()
    expect(await (await open({ settings: settings(site.url) })).verify(answered)).toBe('unavailable')
    expect(await (await open({ settings: settings(site.url, true) })).verify({ ...answered, answer: '' })).toBe(
      'missing',
    )
  })
})

describe('settings', () => {
  const environment = { CAPTCHA_DIFFICULTY: 17, CAPTCHA_FAILING_IDENTIFIERS: 200, TURNSTILE_FAIL_OPEN: false }

  test('one key of Turnstile without the other is an error', () => {
    expect(() => captchaSettingsOf({ ...environment, TURNSTILE_SITE_KEY: 'site' })).toThrow('belong together')
    expect(captchaSettingsOf(environment)).toEqual(captchaDefaults)
  })

  test('captchaPolicy is off unless it says that it is on', () => {
    expect(readCaptchaPolicy(undefined)).toEqual({ enabled: false })
    expect(readCaptchaPolicy({})).toEqual({ enabled: false })
    expect(readCaptchaPolicy({ enabled: true, other: 1 })).toEqual({ enabled: true })
    expect(() => readCaptchaPolicy({ enabled: 'yes' })).toThrow()
  })
})
