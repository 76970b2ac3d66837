import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { captchaDefaults } from '../../../issuer/captcha/captcha-settings.ts'
import { signInExperience } from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { lockoutDefaults, secondFactorPolicy } from '../../../issuer/directory/users/lockout/lockout-policy.ts'
import { wrongCodes } from '../../../issuer/interaction/code-proof.ts'
import { addressPolicy } from '../../../issuer/interaction/failure-store.ts'
import { readIdentifier } from '../../../issuer/interaction/identifier.ts'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { randomToken } from '../../../platform/ids.ts'
import { type Running, startTestInteractions, type TestInteractions, totpCode } from '../../support/interactions.ts'

const settings = {
  signIn: {
    methods: [
      { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true },
      { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true },
      { identifier: 'phone', password: true, verificationCode: true, isPasswordPrimary: true },
    ],
  },
  mfa: { factors: ['Totp', 'BackupCode', 'EmailVerificationCode'], policy: 'NoPrompt' },
}

let home: TestInteractions
beforeAll(async () => {
  home = await startTestInteractions({ instances: 2, settings, failingIdentifiers: 0 })
})
afterAll(() => home.close())

let lastAddress = 0
/** Each attempt has its own, so that no limit of addresses is in the way. */
const address = () => `198.18.${Math.floor(++lastAddress / 250)}.${(lastAddress % 250) + 1}`
const lockoutsOf = (id: string) =>
  home.sql(`SELECT FROM outbox WHERE type = 'Identifier.Lockout' AND entity_id = $1`, [id])
type Outcome = { outcome: string }
const tally = (outcomes: readonly Outcome[]) => {
  const counts: Record<string, number> = {}
  for (const { outcome } of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}
const parallel = <Result>(count: number, work: (n: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, n) => work(n)))
const fifty = Array.from({ length: 50 }, (_, n) => n)

/** Interactions at both instances in turn, made before, so that only the attempts come at once. */
const prepared = async (prepare: (running: Running, n: number) => Promise<void> = async () => {}) => {
  const made: { running: Running; instance: number }[] = []
  for (const n of [...fifty, ...fifty]) {
    const instance = n % 2
    const running = await home.begin({ instance, ip: address() })
    await prepare(running, n)
    made.push({ running, instance })
  }
  return made
}

describe('a hundred wrong answers at once over two instances are looked at as often as is allowed, and told once:', () => {
  test('passwords', async () => {
    const ada = await home.createPerson()
    const made = await prepared()
    const before = home.counted.passwords
    const outcomes = await parallel(100, async (n) => ({
      outcome: await made[n]!.running.password(n % 3 ? ada.username : ada.email, `wrong ${n}`),
    }))
    expect(tally(outcomes)).toEqual({ invalid_credentials: 10, locked: 90 })
    expect(home.counted.passwords - before).toBe(10)
    expect(await lockoutsOf(ada.id)).toHaveLength(1)
    // The right one is refused in the same way, and not looked at.
    const right = await home.begin({ ip: address() })
    expect(await right.password(ada.username, ada.password)).toBe('locked')
    expect(home.counted.passwords - before).toBe(10)
  }, 60_000)

  test('codes, of as many interactions as there are', async () => {
    const ada = await home.createPerson()
    const waiting: { running: Running; proofId: string }[] = []
    for (let n = 0; n < 4; n++) {
      const running = await home.begin({ instance: n % 2, ip: address() })
      waiting.push({ running, proofId: (await running.send('sign_in', ada.email)).proofId })
    }
    const before = home.counted.codes
    const outcomes = await parallel(100, async (n) => {
      const { running, proofId } = waiting[n % 4]!
      const answer = { proofId, code: 'wrong!' }
      const instance = home.instances[Math.floor(n / 4) % 2]!
      return instance.codes.verify(
        await running.read(),
        { ...running.visitor, origin: { ip: address(), userAgent: 'x' } },
        answer,
        home.request,
      )
    })
    expect(home.counted.codes - before).toBe(lockoutDefaults.attempts)
    expect(tally(outcomes)['locked'] ?? 0).toBeGreaterThan(0)
    expect(await lockoutsOf(ada.id)).toHaveLength(1)
  }, 60_000)

  test('one code takes five, and is dead then, even if right', async () => {
    const running = await home.begin({ ip: address() })
    const { proofId, code } = await running.send('sign_in', 'new@example.test')
    const outcomes = await parallel(20, async (n) =>
      home.instances[n % 2]!.codes.verify(
        await running.read(),
        running.visitor,
        { proofId, code: 'wrong!' },
        home.request,
      ),
    )
    expect(outcomes.every(({ outcome }) => outcome !== 'verified')).toBe(true)
    const [{ tries }] = (await home.sql<{ tries: number }>('SELECT tries FROM proofs WHERE id = $1', [proofId])) as [
      { tries: number },
    ]
    expect(tries).toBe(6)
    const last = await home.operations.codes.verify(
      await running.read(),
      running.visitor,
      { proofId, code: code! },
      home.request,
    )
    expect(last.outcome).not.toBe('verified')
  }, 60_000)

  test('second factors of all kinds together, five, with a counter apart; then the interaction is over', async () => {
    const ada = await home.createPerson()
    const secret = await home.giveTotp(ada.id)
    const [backupCode] = await home.giveBackupCodes(ada.id)
    const made: { running: Running; instance: number; proofId: string }[] = []
    for (let n = 0; n < 10; n++) {
      const running = await home.begin({ instance: n % 2, ip: address() })
      expect(await running.password(ada.username, ada.password)).toBe('verified')
      const proofId = n === 0 ? (await running.send('mfa', { type: 'email' })).proofId : ''
      made.push({ running, instance: n % 2, proofId })
    }
    const before = { ...home.counted }
    const outcomes = await parallel(100, async (n): Promise<Outcome> => {
      const { running, instance, proofId } = made[n % 10]!
      const { secondFactors, codes } = home.instances[instance]!
      const visitor = { ...running.visitor, origin: { ip: address(), userAgent: 'x' } }
      const interaction = await running.read()
      if (proofId !== '') return codes.verify(interaction, visitor, { proofId, code: 'wrong!' }, home.request)
      const kind = n % 3 ? ('totp' as const) : ('backup_code' as const)
      const input = { kind, code: kind === 'totp' ? '000000' : 'AAAAA-AAAAA' }
      return secondFactors.prove(interaction, visitor, input, home.request)
    })
    const looked = (['totp', 'backupCodes', 'codes'] as const).reduce(
      (sum, kind) => sum + home.counted[kind] - before[kind],
      0,
    )
    expect(looked).toBe(secondFactorPolicy.attempts)
    expect(tally(outcomes)['invalid_credentials'] ?? 0).toBeGreaterThanOrEqual(5)
    expect(await lockoutsOf(ada.id)).toHaveLength(1)
    // Whoever was refused is out.
    const refused = made[outcomes.findIndex(({ outcome }) => outcome === 'locked') % made.length]!
    expect((await refused.running.read()).isOpen).toBe(false)
    // The password is not locked by that; what is right is refused.
    const again = await home.begin({ ip: address() })
    expect(await again.password(ada.username, ada.password)).toBe('verified')
    expect(await again.secondFactor('totp', totpCode(secret))).toBe('locked')
    expect((await again.read()).isOpen).toBe(false)
    const other = await home.begin({ ip: address() })
    await other.password(ada.username, ada.password)
    expect(await other.secondFactor('backup_code', backupCode!)).toBe('locked')
    expect(home.counted.backupCodes - before.backupCodes).toBeLessThanOrEqual(5)
  }, 60_000)

  test('one-time tokens', async () => {
    const ada = await home.createPerson()
    const token = await home.oneTimeToken(ada.email)
    const made = await prepared()
    const prove = async ({ running, instance }: (typeof made)[0], shown: string) =>
      home.instances[instance]!.oneTimeTokens.prove(
        await running.read(),
        running.visitor,
        { identifier: readIdentifier(ada.email)!, token: shown },
        home.request,
      )
    const outcomes = await parallel(100, (n) => prove(made[n]!, randomToken()))
    expect(tally(outcomes)).toEqual({ invalid_credentials: 10, locked: 90 })
    // Only what was looked at knows why.
    expect(outcomes.filter(({ refusal }) => refusal !== undefined)).toHaveLength(10)
    expect(await lockoutsOf(ada.id)).toHaveLength(1)
    expect(await prove({ running: await home.begin({ ip: address() }), instance: 0 }, token)).toMatchObject({
      outcome: 'locked',
    })
  }, 60_000)
})

describe('the counter', () => {
  const fail = async (identifier: string, times: number, options: { device?: string } = {}) => {
    let last = ''
    for (let n = 0; n < times; n++)
      last = await (await home.begin({ ip: address(), ...options })).password(identifier, 'wrong')
    return last
  }

  test('is one for every way to write an identifier, of somebody and of nobody', async () => {
    const ada = await home.createPerson({
      username: 'Ada_Of_Variants',
      email: 'variants@example.test',
      phone: '491701234567',
    })
    const ways = [
      ...['Ada_Of_Variants', 'ada_of_variants', ' ADA_OF_VARIANTS ', 'ａｄａ_of_variants', 'VARIANTS@example.test'],
      ...['variants@EXAMPLE.test', '+49 170 1234567', '0049 170 1234567', '+49.170.123.45.67', '491701234567'],
    ]
    for (const way of ways) expect(await fail(way, 1), way).toBe('invalid_credentials')
    expect(await fail('variants@example.test', 1)).toBe('locked')
    expect(await lockoutsOf(ada.id)).toHaveLength(1)
    for (const way of ['nobody_here', ' NOBODY_here', 'ｎobody_here']) await fail(way, 3)
    expect(await fail('Nobody_Here', 1)).toBe('invalid_credentials')
    expect(await fail('nobody_here', 1)).toBe('locked')
  }, 60_000)

  test('of the owner’s browser is apart from that of strangers; a cookie of somebody else, or a forged one, is a stranger’s', async () => {
    const [ada, bob] = [await home.createPerson(), await home.createPerson()]
    const [hers, his] = [randomToken(), randomToken()]
    for (const [device, person] of [
      [hers, ada],
      [his, bob],
    ] as const)
      await home.sql('INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)', [
        tokenDigest('device', device),
        person.id,
      ])
    expect(await fail(ada.username, 11)).toBe('locked')
    for (const device of [his, randomToken(), 'forged', ''])
      expect(await (await home.begin({ device, ip: address() })).password(ada.username, ada.password)).toBe('locked')
    const own = await home.begin({ device: hers, ip: address() })
    expect(await own.password(ada.username, ada.password)).toBe('verified')
    // It has its own end too, and then the account is still not open to strangers.
    expect(await fail(ada.username, 11, { device: hers })).toBe('locked')
  }, 60_000)

  test('of codes to reset a password counts for itself, and none of them opens the other', async () => {
    const ada = await home.createPerson()
    expect(await fail(ada.username, 11)).toBe('locked')
    const reset = await home.begin({ event: 'ForgotPassword', ip: address() })
    expect(await reset.code('reset', ada.email)).toBe('verified')
    expect(await (await home.begin({ ip: address() })).password(ada.username, ada.password)).toBe('locked')

    const bob = await home.createPerson()
    let last = ''
    for (let n = 0; n < 11; n++) {
      const running = await home.begin({ event: 'ForgotPassword', ip: address(), instance: n % 2 })
      const sent = n % 4 === 0 ? await running.send('reset', bob.email) : undefined
      if (sent) waiting = { running, proofId: sent.proofId }
      const answer = { proofId: waiting!.proofId, code: 'wrong!' }
      const { codes } = home.operations
      last = (await codes.verify(await waiting!.running.read(), running.visitor, answer, home.request)).outcome
    }
    expect(last).toBe('locked')
    expect(await (await home.begin({ ip: address() })).password(bob.username, bob.password)).toBe('verified')
  }, 60_000)
  let waiting: { running: Running; proofId: string } | undefined

  test('of an address counts its whole network of IPv6', async () => {
    const [ada, bob] = [await home.createPerson(), await home.createPerson()]
    await (await home.begin({ ip: '2001:db8:1:2::1' })).password(ada.username, 'wrong')
    await home.sql(
      'UPDATE sign_in_failures SET count = $1 WHERE updated_at = (SELECT max(updated_at) FROM sign_in_failures)',
      [addressPolicy.attempts],
    )
    const other = await home.begin({ ip: '2001:db8:1:2:ffff::9' })
    expect(await other.password(bob.username, bob.password)).toBe('too_many_requests')
    const neighbour = await home.begin({ ip: '2001:db8:1:3::1' })
    expect(await neighbour.password(bob.username, bob.password)).toBe('verified')
  })
})

describe('guessing codes', () => {
  test('finds one in a day less than once in ten thousand days', () => {
    const digits = 6
    expect(wrongCodes).toEqual({ most: 15, seconds: 86_400 })
    expect(wrongCodes.most / 10 ** digits).toBeLessThan(1e-4)
    // Without that limit: what may be sent to a recipient in a day, each code tried as often as it bears.
    const { maxRetryAttempts } = signInExperience.schema.parse({}).verificationCodePolicy
    expect(maxRetryAttempts).toBe(5)
  })

  test('ends after fifteen wrong ones for a recipient, whoever asks and for whatever; the owner’s browser goes on', async () => {
    const ada = await home.createPerson()
    const device = randomToken()
    await home.sql('INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)', [
      tokenDigest('device', device),
      ada.id,
    ])
    const outcomes: string[] = []
    const wrong = async (event: 'SignIn' | 'Register' | 'ForgotPassword') => {
      const running = await home.begin({ event, ip: address() })
      const purpose = ({ SignIn: 'sign_in', Register: 'register', ForgotPassword: 'reset' } as const)[event]
      const { proofId } = await running.send(purpose, ada.email)
      for (let n = 0; n < 4; n++) {
        const answer = { proofId, code: 'wrong!' }
        const { codes } = home.operations
        outcomes.push((await codes.verify(await running.read(), running.visitor, answer, home.request)).outcome)
      }
    }
    for (const event of ['SignIn', 'Register', 'ForgotPassword', 'ForgotPassword'] as const) await wrong(event)
    expect(outcomes.indexOf('too_many_requests')).toBe(15)
    await home.sql('DELETE FROM sign_in_failures')
    await home.sql(`DELETE FROM message_counts WHERE count < 15`)
    const right = await home.begin({ ip: address() })
    expect(await right.code('sign_in', ada.email)).toBe('too_many_requests')
    const owner = await home.begin({ ip: address(), device })
    expect(await owner.code('sign_in', ada.email)).toBe('verified')
  }, 60_000)

  test('right ones are none of them', async () => {
    const ada = await home.createPerson()
    for (let n = 0; n < 17; n++) {
      await home.sql('DELETE FROM message_counts WHERE count > 3')
      expect(await (await home.begin({ ip: address() })).code('sign_in', ada.email), `${n}`).toBe('verified')
    }
  }, 60_000)
})

describe('while many accounts fail at once', () => {
  // T 62
  test('one try each on 5 000 accounts from 200 addresses is noticed by no counter, and stopped after some hundred of them', async () => {
    const attacked = await startTestInteractions({ instances: 2, settings })
    try {
      const [accounts, addresses] = [5_000, 200]
      expect(accounts / addresses).toBeLessThan(addressPolicy.attempts)
      const ada = await attacked.createPerson()
      const device = randomToken()
      await attacked.sql('INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)', [
        tokenDigest('device', device),
        ada.id,
      ])
      const bots: { running: Running; instance: number }[] = []
      for (let n = 0; n < addresses; n++)
        bots.push({ running: await attacked.begin({ instance: n % 2, ip: address() }), instance: n % 2 })
      const before = attacked.counted.passwords
      const outcomes: Outcome[] = []
      const atOnce = 20
      const tryAll = async (bot: number) => {
        const { running, instance } = bots[bot]!
        const interaction = await running.read()
        for (let account = bot; account < accounts; account += addresses) {
          const input = { identifier: readIdentifier(`account_${account}`)!, password: 'stuffed' }
          const { passwords } = attacked.instances[instance]!
          outcomes.push(await passwords.prove(interaction, running.visitor, input, attacked.request))
        }
      }
      const queue = bots.keys()
      await parallel(atOnce, async () => {
        for (const bot of queue) await tryAll(bot)
      })
      const { invalid_credentials: looked = 0, ...others } = tally(outcomes)
      expect(others).toEqual({ captcha_required: accounts - looked })
      expect(looked).toBeGreaterThanOrEqual(captchaDefaults.failingIdentifiers)
      // Each instance sees its own at once and the other's within a second; and what was under way.
      expect(looked).toBeLessThan(2 * captchaDefaults.failingIdentifiers + atOnce)
      expect(attacked.counted.passwords - before).toBe(looked)
      const owner = await attacked.begin({ device, ip: address() })
      expect(await owner.password(ada.username, ada.password)).toBe('verified')
    } finally {
      await attacked.close()
    }
  }, 180_000)

  test('strangers are tested before anything is verified or sent, and an owner’s browser is not', async () => {
    const attacked = await startTestInteractions({ instances: 2, settings, failingIdentifiers: 20 })
    try {
      const ada = await attacked.createPerson()
      const device = randomToken()
      await attacked.sql('INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)', [
        tokenDigest('device', device),
        ada.id,
      ])
      for (let n = 0; n < 20; n++)
        await (await attacked.begin({ ip: address(), instance: n % 2 })).password(`account_${n}`, 'stuffed')
      await attacked.sql('SELECT 1')
      const stranger = await attacked.begin({ ip: address() })
      const before = attacked.counted.passwords
      await expect
        .poll(async () => stranger.password(ada.username, ada.password), { interval: 100, timeout: 15_000 })
        .toBe('captcha_required')
      const verified = attacked.counted.passwords
      expect(await stranger.password(ada.username, ada.password)).toBe('captcha_required')
      expect(attacked.counted.passwords).toBe(verified)
      expect(verified - before).toBeLessThanOrEqual(2)
      const another = await attacked.begin({ ip: address(), event: 'ForgotPassword' })
      // A mail has limits of its own; a text message costs somebody money.
      expect((await another.send('reset', ada.email)).outcome).toBe('sent')
      const texted = await attacked.begin({ ip: address(), event: 'ForgotPassword' })
      expect((await texted.send('reset', '+491701234567')).outcome).toBe('captcha_required')
      const owner = await attacked.begin({ device, ip: address() })
      expect(await owner.password(ada.username, ada.password)).toBe('verified')
    } finally {
      await attacked.close()
    }
  }, 60_000)
})
