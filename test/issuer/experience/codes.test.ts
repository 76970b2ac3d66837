import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ExperiencePages, startExperience, type TestExperience } from '../../support/experience.ts'

let experience: TestExperience

beforeAll(async () => {
  experience = await startExperience({
    instances: 2,
    settings: { signUp: { identifiers: ['email'], password: false, verify: true } },
  })
})
afterAll(() => experience.close())

type Event = 'SignIn' | 'Register' | 'ForgotPassword'
const byMail = (value: string) => ({ type: 'email', value })

const begin = async (event: Event = 'SignIn'): Promise<ExperiencePages> => {
  const pages = await experience.pages()
  await pages.put('', { interactionEvent: event })
  return pages
}

const send = async (pages: ExperiencePages, address: string, event: Event = 'SignIn'): Promise<string> => {
  const sent = await pages.post('/verification/verification-code', {
    identifier: byMail(address),
    interactionEvent: event,
  })
  expect(sent).toMatchObject({ status: 200 })
  return sent.body.verificationId
}

const verify = (pages: ExperiencePages, address: string, verificationId: string, code: string, instance = 0) =>
  pages.post(
    '/verification/verification-code/verify',
    { identifier: byMail(address), verificationId, code },
    { instance },
  )

const refused = (code: string) => ({ status: 400, body: { code: `verification_code.${code}` } })
const wrongOf = (code: string) => (code === '000000' ? '000001' : '000000')

describe('codes', () => {
  test('five are compared, in sequence; then the right one is too late', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const id = await send(pages, email)
    const code = await experience.codeTo(email)
    for (let tries = 1; tries <= 5; tries++) {
      expect(await verify(pages, email, id, wrongOf(code))).toMatchObject(refused('code_mismatch'))
    }
    expect(await verify(pages, email, id, code)).toMatchObject(refused('exceed_max_try'))
    expect(await verify(pages, email, id, code)).toMatchObject(refused('exceed_max_try'))
  })

  test('fifty at once, over two instances: at most five are compared', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const id = await send(pages, email)
    const wrong = wrongOf(await experience.codeTo(email))
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => verify(pages, email, id, wrong, index % 2)),
    )
    const compared = answers.filter(({ body }) => body.code === 'verification_code.code_mismatch')
    expect(compared.length).toBeLessThanOrEqual(5)
    expect(answers.filter(({ status }) => status >= 500 || status < 400)).toEqual([])
  })

  test('the right one, fifty times at once over two instances, proves once', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const id = await send(pages, email)
    const code = await experience.codeTo(email)
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => verify(pages, email, id, code, index % 2)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status >= 500)).toEqual([])
  })

  test('one belongs to its interaction, its purpose, its address', async () => {
    const [ada, bob] = [await experience.createPerson(), await experience.createPerson()]
    const [first, second] = [await begin(), await begin()]
    const id = await send(first, ada.email)
    const code = await experience.codeTo(ada.email)
    expect(await verify(second, ada.email, id, code)).toMatchObject(refused('not_found'))
    const own = await send(second, bob.email)
    expect(await verify(second, bob.email, own, code)).toMatchObject(refused('code_mismatch'))
    expect(await verify(first, bob.email, id, code)).toMatchObject(refused('email_mismatch'))
    const byPhone = { identifier: { type: 'phone', value: ada.phone }, verificationId: id, code }
    expect(await first.post('/verification/verification-code/verify', byPhone)).toMatchObject(refused('phone_mismatch'))

    // What was sent to sign in with resets nothing and registers nobody.
    await first.put('', { interactionEvent: 'ForgotPassword' })
    expect(await verify(first, ada.email, id, code)).toMatchObject({ status: 400 })
    const reset = await send(first, ada.email, 'ForgotPassword')
    await verify(first, ada.email, reset, await experience.codeTo(ada.email))
    expect(await first.put('/interaction-event', { interactionEvent: 'SignIn' })).toMatchObject({
      status: 400,
      body: { code: 'session.not_supported_for_forgot_password' },
    })
    await first.put('', { interactionEvent: 'SignIn' })
    expect((await first.post('/identification', { verificationId: reset })).status).toBe(404)
    expect((await first.post('/submit')).status).toBe(404)
  })

  test('a new one ends the one before, and none is good twice', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const old = await send(pages, email)
    const oldCode = await experience.codeTo(email)
    const id = await send(pages, email)
    const code = await experience.codeTo(email)
    expect(await verify(pages, email, old, oldCode)).toMatchObject(refused('not_found'))
    expect((await verify(pages, email, id, code)).status).toBe(200)
    expect(await verify(pages, email, id, code)).toMatchObject({
      status: 400,
      body: { code: 'session.verification_failed' },
    })
  })

  test('one expires by the clock of the database', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const id = await send(pages, email)
    await experience.issuer.sql(`UPDATE proofs SET expires_at = expires_at - interval '601 seconds' WHERE id = $1`, [
      id,
    ])
    expect(await verify(pages, email, id, await experience.codeTo(email))).toMatchObject(refused('expired'))
  })

  test('one is sent for what the interaction is for, or not at all', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin()
    const asked = { identifier: byMail(email), interactionEvent: 'Register' }
    expect(await pages.post('/verification/verification-code', asked)).toMatchObject({
      status: 400,
      body: { code: 'session.invalid_interaction_type' },
    })
  })
})

describe('whom codes tell of', () => {
  test('who forgot a password that nobody has gets the same answers, and no message', async () => {
    const { email } = await experience.createPerson()
    const nobody = `nobody-${Date.now()}@example.test`
    const answers = await Promise.all(
      [email, nobody].map(async (address) => {
        const pages = await begin('ForgotPassword')
        const id = await send(pages, address, 'ForgotPassword')
        const first = await verify(pages, address, id, 'abcdef')
        const limited = []
        for (let sends = 2; sends <= 6; sends++) {
          const asked = { identifier: byMail(address), interactionEvent: 'ForgotPassword' }
          const { status, body } = await pages.post('/verification/verification-code', asked)
          limited.push(status === 200 ? status : { status, code: body.code })
        }
        return { first: { status: first.status, body: first.body }, limited }
      }),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]!.limited).toEqual([200, 200, 200, 200, { status: 429, code: 'request.message_rate_limited' }])
    expect(await experience.messagesTo(nobody)).toEqual([])
  })

  test('that an address is somebody’s is told to whoever has the mailbox, and to nobody else', async () => {
    const { email } = await experience.createPerson()
    const pages = await begin('Register')
    const id = await send(pages, email, 'Register')
    expect(await pages.post('/identification', { verificationId: id })).toMatchObject({
      status: 400,
      body: { code: 'session.verification_failed' },
    })
    expect((await verify(pages, email, id, await experience.codeTo(email))).status).toBe(200)
    expect(await pages.post('/identification', { verificationId: id })).toMatchObject({
      status: 422,
      body: { code: 'user.email_already_in_use' },
    })
    expect((await pages.post('/submit')).status).toBe(404)
  })

  test('that an address is nobody’s, too; then it can be registered', async () => {
    const address = `new-${Date.now()}@example.test`
    const pages = await begin()
    const id = await send(pages, address)
    await verify(pages, address, id, await experience.codeTo(address))
    expect(await pages.post('/identification', { verificationId: id })).toMatchObject({
      status: 404,
      body: { code: 'user.user_not_exist' },
    })
    await pages.put('/interaction-event', { interactionEvent: 'Register' })
    const own = await send(pages, address, 'Register')
    await verify(pages, address, own, await experience.codeTo(address))
    expect((await pages.post('/profile', { type: 'email', verificationId: own })).status).toBe(204)
    expect((await pages.post('/identification', { verificationId: own })).status).toBe(201)
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
    const users = await experience.issuer.sql(
      'SELECT email_verified_at IS NOT NULL AS known FROM users WHERE primary_email = $1',
      [address],
    )
    expect(users).toEqual([{ known: true }])
  })
})

describe('one-time tokens', () => {
  const tokenFor = async (email: string): Promise<string> =>
    (await experience.issuer.api('POST', '/one-time-tokens', { email })).body.token

  const path = '/verification/one-time-token/verify'

  test('one signs in, once, and whoever it was for', async () => {
    const [ada, bob] = [await experience.createPerson(), await experience.createPerson()]
    const token = await tokenFor(ada.email)
    const pages = await begin()
    expect(await pages.post(path, { identifier: byMail(bob.email), token })).toMatchObject({
      status: 400,
      body: { code: 'one_time_token.email_mismatch' },
    })
    expect(await pages.post(path, { identifier: byMail(ada.email), token: 'another' })).toMatchObject({
      status: 404,
      body: { code: 'one_time_token.token_not_found' },
    })
    const all = await Promise.all(Array.from({ length: 25 }, () => begin()))
    const answers = await Promise.all(
      all.flatMap((one) =>
        [0, 1].map((instance) => one.post(path, { identifier: byMail(ada.email), token }, { instance })),
      ),
    )
    const right = answers.findIndex(({ status }) => status === 200)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status >= 500)).toEqual([])
    const winner = all[Math.floor(right / 2)]!
    expect((await winner.post('/identification', answers[right]!.body)).status).toBe(204)
    expect(await winner.finish()).toMatchObject({ code: expect.any(String) })
  })

  test('one registers somebody who is new', async () => {
    const address = `invited-${Date.now()}@example.test`
    const pages = await begin('Register')
    const proven = await pages.post(path, { identifier: byMail(address), token: await tokenFor(address) })
    expect((await pages.post('/identification', proven.body)).status).toBe(201)
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
  })
})

describe('locks', () => {
  let locking: TestExperience
  beforeAll(async () => {
    locking = await startExperience({ settings: { sentinelPolicy: { maxAttempts: 3, lockoutDuration: 1 } } })
  })
  afterAll(() => locking.close())

  test('the third failure of three that are allowed locks, and so is told, whether somebody exists or not', async () => {
    const person = await locking.createPerson()
    for (const value of [person.username, 'nobody_at_all']) {
      const pages = await locking.pages()
      const asked = { identifier: { type: 'username', value }, password: 'wrong' }
      const codes = []
      for (let failure = 1; failure <= 4; failure++) {
        const { status, body } = await pages.post('/verification/password', asked)
        codes.push(`${status} ${body.code}`)
      }
      const right = await pages.post('/verification/password', { ...asked, password: person.password })
      codes.push(`${right.status} ${right.body.code}`)
      const blocked = '400 session.verification_blocked_too_many_attempts'
      expect(codes).toEqual([...Array(2).fill('422 session.invalid_credentials'), blocked, blocked, blocked])
    }
    const told = await locking.events('Identifier.Lockout')
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ type: 'username', value: person.username.toLowerCase() })
    await locking.issuer.api('POST', '/sentinel-activities/delete', {
      targetType: 'User',
      targets: [person.username],
    })
    const pages = await locking.pages()
    const asked = { identifier: { type: 'username', value: person.username }, password: person.password }
    expect((await pages.post('/verification/password', asked)).status).toBe(200)
  })

  test('passwords and codes share what is allowed', async () => {
    const person = await locking.createPerson()
    const pages = await locking.pages()
    const asked = { identifier: { type: 'email', value: person.email }, password: 'wrong' }
    await pages.post('/verification/password', asked)
    await pages.post('/verification/password', asked)
    const identifier = byMail(person.email)
    const sent = await pages.post('/verification/verification-code', { identifier, interactionEvent: 'SignIn' })
    const code = wrongOf(await locking.codeTo(person.email))
    const answer = { identifier, verificationId: sent.body.verificationId, code }
    expect(await pages.post('/verification/verification-code/verify', answer)).toMatchObject({
      status: 400,
      body: { code: 'session.verification_blocked_too_many_attempts' },
    })
  })
})

describe('a password that has expired', () => {
  test('is told, and has to be replaced before anything else', async () => {
    const expiring = await startExperience({ settings: { passwordExpiration: { enabled: true, validPeriodDays: 30 } } })
    const person = await expiring.createPerson()
    await expiring.issuer.sql('UPDATE users SET password_expired = true WHERE id = $1', [person.id])
    const pages = await expiring.pages()
    const asked = { identifier: { type: 'username', value: person.username }, password: person.password }
    const expired = await pages.post('/verification/password', asked)
    expect(expired).toMatchObject({ status: 422, body: { code: 'password.expired' } })
    await pages.post('/identification', expired.body.data)
    expect(await pages.post('/submit')).toMatchObject({ status: 422, body: { code: 'password.expired' } })
    expect((await pages.post('/profile', { type: 'password', value: person.password })).body.code).toBe(
      'user.same_password',
    )
    expect((await pages.post('/profile', { type: 'password', value: 'pwd_a_new_one_77' })).status).toBe(204)
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
    await expiring.close()
  })
})
