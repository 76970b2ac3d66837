import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { authenticationCredential, registrationCredential } from '../../../issuer/directory/users/factors/index.ts'
import { readIdentifier } from '../../../issuer/interaction/identifier.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { type Running, startTestInteractions, type TestInteractions, totpCode } from '../../support/interactions.ts'

let home: TestInteractions

const everything = {
  signIn: {
    methods: [
      { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true },
      { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: true },
    ],
  },
  mfa: { factors: ['Totp', 'BackupCode', 'WebAuthn'], policy: 'NoPrompt' },
  passkeySignIn: { enabled: true },
}
const newPassword = 'copper-otter-4-windmills'

beforeAll(async () => {
  home = await startTestInteractions({ instances: 2 })
})
afterAll(() => home.close())
beforeEach(() => home.configure(everything))

const sessionsOf = async (userId: string) => home.sql('SELECT id, acr FROM sessions WHERE user_id = $1', [userId])
const rowOf = async (userId: string) => (await home.sql('SELECT * FROM users WHERE id = $1', [userId]))[0]
const codesOf = async (running: Running) => {
  const { response } = ((await running.finish()) as { redirect: { response: { parameters?: unknown } } }).redirect
  return JSON.stringify(response)
}

describe('who registers', () => {
  test('proves to be nobody meanwhile: a password of somebody opens nothing without the second factor', async () => {
    const ada = await home.createPerson()
    await home.giveTotp(ada.id)
    const before = await rowOf(ada.id)
    const running = await home.begin({ event: 'Register' })
    expect(await home.operations.staging.username(await running.read(), 'mallory', running.visitor)).toMatchObject({
      outcome: 'staged',
    })
    expect(await home.operations.staging.password(await running.read(), newPassword)).toEqual({ outcome: 'staged' })
    expect(await running.password(ada.username, ada.password)).toBe('invalid_credentials')
    expect(await running.secondFactor('totp', '000000')).toBe('invalid_credentials')
    expect((await running.read()).person).toBeUndefined()
    expect((await running.finish()).kind).toBe('redirect')
    expect(await sessionsOf(ada.id)).toEqual([])
    expect(await rowOf(ada.id)).toEqual(before)
    expect(await home.sql(`SELECT id FROM users WHERE username = 'mallory'`)).toHaveLength(1)
  })

  test('does not get what was proven before, nor what a proof slipped in by another version says', async () => {
    const ada = await home.createPerson()
    const running = await home.begin()
    expect(await running.password(ada.username, ada.password)).toBe('verified')
    await home.operations.staging.begin(await running.read(), 'Register')
    expect(await running.read()).toMatchObject({ person: undefined, proofs: [] })
    await home.operations.staging.username(await running.read(), 'mallory_2', running.visitor)
    await home.operations.staging.password(await running.read(), newPassword)
    await home.sql(`UPDATE interactions SET user_id = $2 WHERE id = $1`, [running.id, ada.id])
    await home.sql(
      `INSERT INTO proofs (id, interaction_id, user_id, kind, purpose, data, verified_at, expires_at)
       VALUES ('slipped-in', $1, $2, 'password', 'sign_in', $3, now(), now() + interval '1 minute')`,
      [running.id, ada.id, JSON.stringify({ identifier: { type: 'username', value: ada.username } })],
    )
    await running.finish()
    expect(await sessionsOf(ada.id)).toEqual([])
    expect(await rowOf(ada.id)).toMatchObject({ username: ada.username })
  })

  test('with an address of somebody else becomes nobody, whether the owner was told or the code was right', async () => {
    home.configure({ ...everything, signUp: { identifiers: ['email'], password: false, verify: true } })
    const ada = await home.createPerson()
    const running = await home.begin({ event: 'Register' })
    const told = await running.send('register', ada.email)
    expect(told).toMatchObject({ outcome: 'sent', code: undefined })
    const silent = await running.send('register', ada.email, { tellsOwner: false })
    const answer = { proofId: silent.proofId, code: silent.code! }
    const { codes } = home.operations
    expect(await codes.verify(await running.read(), running.visitor, answer, home.request)).toMatchObject({
      outcome: 'verified',
    })
    expect(await running.finish()).toEqual({ kind: 'taken', fields: ['email'] })
    expect(await sessionsOf(ada.id)).toEqual([])
    expect(await home.sql('SELECT id FROM users WHERE lower(primary_email) = lower($1)', [ada.email])).toHaveLength(1)
  })

  test('says of themselves what a profile holds, and nothing else', async () => {
    const running = await home.begin({ event: 'Register' })
    await home.operations.staging.username(await running.read(), 'eve', running.visitor)
    await home.operations.staging.password(await running.read(), newPassword)
    const claimed = { name: 'Eve', nickname: 'E', isSuspended: false, customData: { role: 'admin' }, roles: ['admin'] }
    const columns = { id: 'chosen', primaryEmail: 'a@example.test', username: 'root', email_verified_at: 'now' }
    expect(await home.operations.staging.profile(await running.read(), { ...claimed, ...columns })).toBe(true)
    expect((await running.finish()).kind).toBe('redirect')
    const [eve] = await home.sql(`SELECT * FROM users WHERE username = 'eve'`)
    expect(eve).toMatchObject({ name: 'Eve', primary_email: null })
    expect([eve!['custom_data'], eve!['profile']]).toEqual([{}, { nickname: 'E' }])
    expect(eve!['id']).not.toBe('chosen')
  })

  test('is never whom the client expects', async () => {
    const ada = await home.createPerson()
    const running = await home.begin({ event: 'Register', request: { expectedUserId: ada.id } })
    await home.operations.staging.username(await running.read(), 'not_ada', running.visitor)
    await home.operations.staging.password(await running.read(), newPassword)
    expect(await running.step()).toMatchObject({ step: 'denied', options: { error: 'login_required' } })
    expect(await codesOf(running)).toContain('login_required')
    expect(await home.sql(`SELECT FROM users WHERE username = 'not_ada'`)).toEqual([])
  })
})

describe('a second factor', () => {
  test('is not made of two first ones: whoever reads the mail could have set the password', async () => {
    const ada = await home.createPerson()
    const secret = await home.giveTotp(ada.id)
    const running = await home.begin()
    expect(await running.password(ada.username, ada.password)).toBe('verified')
    expect(await running.code('sign_in', ada.email)).toBe('verified')
    expect(await running.step()).toMatchObject({ step: 'mfa', options: { proofs: ['totp'] } })
    expect((await running.finish()).kind).toBe('page')
    expect(await running.secondFactor('totp', totpCode(secret))).toBe('verified')
    expect((await running.finish()).kind).toBe('redirect')
    expect(await sessionsOf(ada.id)).toEqual([{ id: expect.any(String), acr: 'urn:surrogate:acr:mfa' }])
  })

  test('that was only added here proves nothing, and what is staged before it waits', async () => {
    const ada = await home.createPerson()
    await home.giveBackupCodes(ada.id)
    const before = await rowOf(ada.id)
    const running = await home.begin()
    await running.password(ada.username, ada.password)
    const made = await home.operations.enrolment.totp(await running.read(), { issuer: 'x', account: 'x' })
    const answer = { proofId: made!.proofId, code: totpCode(made!.secret) }
    expect(await home.operations.enrolment.confirmTotp(await running.read(), answer)).toBe(true)
    expect(await home.operations.staging.password(await running.read(), newPassword)).toEqual({ outcome: 'staged' })
    expect(await running.step()).toMatchObject({ step: 'mfa', options: { proofs: ['backup_code'] } })
    expect((await running.finish()).kind).toBe('page')
    expect(await running.secondFactor('totp', totpCode(made!.secret, 1))).toBe('invalid_credentials')
    expect(await rowOf(ada.id)).toEqual(before)
  })

  test.each(['mfa', 'captcha'] as const)(
    'by mail, for %s, goes to the address of the person, whatever address is named',
    async (purpose) => {
      home.configure({ ...everything, mfa: { factors: ['EmailVerificationCode'], policy: 'Mandatory' } })
      const ada = await home.createPerson()
      const running = await home.begin()
      await running.password(ada.username, ada.password)
      const { proofId } = await running.send(purpose, 'mallory@example.test')
      const [proof] = await home.sql<{ data: object }>('SELECT data FROM proofs WHERE id = $1', [proofId])
      expect(proof!.data).toEqual({ identifier: { type: 'email', value: ada.email } })
    },
  )

  test('asked for as one person is none for the next, however late it comes', async () => {
    home.configure({ ...everything, mfa: { factors: ['EmailVerificationCode'], policy: 'Mandatory' } })
    const [mallory, bob] = [await home.createPerson(), await home.createPerson()]
    const running = await home.begin()
    await running.password(mallory.username, mallory.password)
    const stale = await running.read()
    const { proofId, code } = await running.send('mfa', { type: 'email' })
    await running.password(bob.username, bob.password)
    const asked = { purpose: 'mfa' as const, identifier: { type: 'email' as const }, locale: 'en', tellsOwner: true }
    const late = await home.operations.codes.send(stale, running.visitor, asked, home.request)
    expect(late.outcome).toBe('over')
    // As if it had been begun in the moment when the other one was proven.
    await home.sql('UPDATE proofs SET consumed_at = NULL WHERE id = $1', [proofId])
    const answer = { proofId, code: code! }
    const verified = await home.operations.codes.verify(await running.read(), running.visitor, answer, home.request)
    expect(verified.outcome).toBe('invalid_credentials')
    expect(await running.step()).toMatchObject({ step: 'mfa' })
    expect((await running.read()).person).toMatchObject({ id: bob.id })
    const old = await home.operations.codes.verify(stale, running.visitor, answer, home.request)
    expect(old.outcome).toBe('invalid_credentials')
    expect((await running.read()).person).toMatchObject({ id: bob.id })
  })

  test('of somebody else, or one that is not enabled, is none', async () => {
    const [ada, mallory] = [await home.createPerson(), await home.createPerson()]
    const secret = await home.giveTotp(ada.id)
    const hers = await home.giveTotp(mallory.id)
    const running = await home.begin()
    await running.password(ada.username, ada.password)
    expect(await running.secondFactor('totp', totpCode(hers))).toBe('invalid_credentials')
    expect(await running.secondFactor('totp', totpCode(secret))).toBe('verified')
    home.configure({ ...everything, mfa: { factors: ['WebAuthn'], policy: 'Mandatory' } })
    expect(await running.step()).toMatchObject({ step: 'enrol', options: { factors: ['WebAuthn'] } })
    home.configure({ ...everything, mfa: { factors: ['Totp'], policy: 'Mandatory' } })
    expect(await running.step()).toMatchObject({ step: 'done' })
  })
})

describe('what waits in an interaction', () => {
  test('ends with the person whom it was for: the next one gets no password and no factor of theirs', async () => {
    const [ada, bob] = [await home.createPerson(), await home.createPerson()]
    const before = await rowOf(bob.id)
    const running = await home.begin()
    await running.password(ada.username, ada.password)
    const stale = await running.read()
    await home.operations.staging.password(stale, newPassword)
    const made = await home.operations.enrolment.totp(stale, { issuer: 'x', account: 'x' })
    const answer = { proofId: made!.proofId, code: totpCode(made!.secret) }
    await home.operations.enrolment.confirmTotp(stale, answer)
    expect((await running.read()).staged).toMatchObject({ password: { algorithm: 'Argon2id' } })
    await running.password(bob.username, bob.password)
    expect(await running.read()).toMatchObject({ staged: {}, person: { id: bob.id } })
    // A request of the first person that comes late.
    expect(await home.operations.staging.password(stale, `${newPassword}!`)).toEqual({ outcome: 'over' })
    expect(await home.operations.enrolment.backupCodes(stale)).toBeUndefined()
    expect((await running.read()).person).toMatchObject({ id: bob.id })
    expect((await running.finish()).kind).toBe('redirect')
    expect(await home.sql('SELECT FROM totp_secrets WHERE user_id = ANY ($1)', [[ada.id, bob.id]])).toEqual([])
    expect(await rowOf(bob.id)).toMatchObject({ password_digest: before!['password_digest'] })
  })

  test('is sealed for its own proof: copied into another it opens nothing', async () => {
    const [ada, mallory] = [await home.createPerson(), await home.createPerson()]
    const bind = async (person: typeof ada) => {
      const running = await home.begin()
      await running.password(person.username, person.password)
      const made = await home.operations.enrolment.totp(await running.read(), { issuer: 'x', account: 'x' })
      const answer = { proofId: made!.proofId, code: totpCode(made!.secret) }
      await home.operations.enrolment.confirmTotp(await running.read(), answer)
      return { running, proofId: made!.proofId }
    }
    const [hers, other] = [await bind(ada), await bind(mallory)]
    await home.sql('UPDATE proofs SET data = (SELECT data FROM proofs WHERE id = $2) WHERE id = $1', [
      hers.proofId,
      other.proofId,
    ])
    await expect(hers.running.finish()).rejects.toThrow()
    expect(await home.sql('SELECT FROM totp_secrets WHERE user_id = $1', [ada.id])).toEqual([])
    expect(await sessionsOf(ada.id)).toEqual([])
  })

  test('belongs to one interaction: a code, a challenge or a secret of another is none', async () => {
    const ada = await home.createPerson()
    const [one, other] = [await home.begin(), await home.begin()]
    const { proofId, code } = await one.send('sign_in', ada.email)
    const answer = { proofId, code: code! }
    const { codes, enrolment, passkeys } = home.operations
    expect((await codes.verify(await other.read(), other.visitor, answer, home.request)).outcome).toBe(
      'invalid_credentials',
    )
    const begun = await passkeys.registration(await one.read(), { name: 'ada', displayName: 'Ada' })
    const totp = await enrolment.totp(await one.read(), { issuer: 'x', account: 'x' })
    expect(
      await enrolment.confirmTotp(await other.read(), { proofId: totp!.proofId, code: totpCode(totp!.secret) }),
    ).toBe(false)
    // Something that waits, and is no code.
    for (const { proofId: id } of [begun!, totp!]) {
      const wrong = await codes.verify(await one.read(), one.visitor, { proofId: id, code: '000000' }, home.request)
      expect(wrong.outcome).toBe('invalid_credentials')
    }
    expect((await codes.verify(await one.read(), one.visitor, answer, home.request)).outcome).toBe('verified')
    // A proof is verified once.
    expect((await codes.verify(await one.read(), one.visitor, answer, home.request)).outcome).toBe(
      'invalid_credentials',
    )
  })

  test.each([
    ['reset', 'SignIn'],
    ['register', 'SignIn'],
    ['sign_in', 'ForgotPassword'],
    ['sign_in', 'Register'],
    ['mfa', 'Register'],
    ['bind', 'ForgotPassword'],
  ] as const)('a code to %s is not sent while it is for %s', async (purpose, event) => {
    const ada = await home.createPerson()
    const running = await home.begin({ event })
    expect((await running.send(purpose, ada.email)).outcome).not.toBe('sent')
    expect(await home.sql('SELECT FROM proofs WHERE interaction_id = $1', [running.id])).toEqual([])
  })
})

describe('a passkey', () => {
  test('of somebody else is no second factor, and a challenge to make one signs nobody in', async () => {
    const [ada, mallory] = [await home.createPerson(), await home.createPerson()]
    const authenticator = createAuthenticator({ origin: home.baseUrl })
    const { passkeys } = home.operations
    const own = await home.begin()
    await own.password(mallory.username, mallory.password)
    const made = await passkeys.registration(await own.read(), { name: 'm', displayName: 'M' })
    const credential = registrationCredential.parse(authenticator.create(made!.options))
    expect(await passkeys.bind(await own.read(), own.visitor, { proofId: made!.proofId, credential })).toBe(true)
    expect((await own.finish()).kind).toBe('redirect')

    await home.giveTotp(ada.id)
    const running = await home.begin()
    await running.password(ada.username, ada.password)
    const prove = async (asked: { proofId: string; options: unknown }, faults: object = {}) => {
      const answer = authenticator.get({ ...(asked.options as object), allowCredentials: [] } as never, faults)
      return passkeys.prove(
        await running.read(),
        running.visitor,
        { proofId: asked.proofId, credential: authenticationCredential.parse(answer) },
        home.request,
      )
    }
    const second = await passkeys.authentication(await running.read(), 'mfa', running.visitor)
    expect((await prove(second!)).outcome).toBe('invalid_credentials')
    expect((await running.read()).person).toMatchObject({ id: ada.id })

    const another = await passkeys.registration(await running.read(), { name: 'a', displayName: 'A' })
    const { challenge } = another!.options
    const asked = { proofId: another!.proofId, options: { challenge, rpId: 'localhost' } }
    expect((await prove(asked)).outcome).toBe('invalid_credentials')
    expect((await running.read()).person).toMatchObject({ id: ada.id })

    // Whoever shows a passkey of their own is its owner, and nobody else.
    const handle = (await rowOf(ada.id))!['webauthn_handle']
    expect(handle).toBeNull()
    const first = await passkeys.authentication(await running.read(), 'sign_in', running.visitor)
    expect((await prove(first!)).outcome).toBe('verified')
    expect((await running.read()).person).toMatchObject({ id: mallory.id })
  })
})

describe('the challenge of a passkey', () => {
  const givePasskey = async (person: { id: string; username: string; password: string }) => {
    const authenticator = createAuthenticator({ origin: home.baseUrl })
    const running = await home.begin()
    await running.password(person.username, person.password)
    const made = (await home.operations.passkeys.registration(await running.read(), { name: 'a', displayName: 'A' }))!
    const credential = registrationCredential.parse(authenticator.create(made.options))
    const answer = { proofId: made.proofId, credential }
    expect(await home.operations.passkeys.bind(await running.read(), running.visitor, answer)).toBe(true)
    expect((await running.finish()).kind).toBe('redirect')
    return authenticator
  }

  test('T 92: is good for one answer, right or wrong, in its interaction, for five minutes', async () => {
    const ada = await home.createPerson()
    const authenticator = await givePasskey(ada)
    const { passkeys } = home.operations
    const ask = async (running: Running) =>
      (await passkeys.authentication(await running.read(), 'sign_in', running.visitor))!
    const prove = async (running: Running, asked: Awaited<ReturnType<typeof ask>>, faults: object = {}) => {
      const credential = authenticationCredential.parse(authenticator.get(asked.options, faults))
      const answer = { proofId: asked.proofId, credential }
      return (await passkeys.prove(await running.read(), running.visitor, answer, home.request)).outcome
    }
    const [one, other] = [await home.begin(), await home.begin()]

    const failed = await ask(one)
    expect(await prove(one, failed, { signature: (right: Buffer) => Buffer.from(right).fill(1, 8, 12) })).toBe(
      'invalid_credentials',
    )
    expect(await prove(one, failed), 'after a failure').toBe('invalid_credentials')

    const foreign = await ask(one)
    expect(await prove(other, foreign), 'in another interaction').toBe('invalid_credentials')
    // Nor is the right answer to it the answer to that one's own.
    const own = await ask(other)
    expect(await prove(other, { ...foreign, proofId: own.proofId })).toBe('invalid_credentials')

    const old = await ask(one)
    await home.sql('UPDATE proofs SET expires_at = now() WHERE id = $1', [old.proofId])
    expect(await prove(one, old), 'too late').toBe('invalid_credentials')
    const [{ seconds }] = (await home.sql(
      'SELECT extract(epoch FROM expires_at - created_at)::integer AS seconds FROM proofs WHERE id = $1',
      [(await ask(one)).proofId],
    )) as [{ seconds: number }]
    expect(seconds).toBe(300)

    const right = await ask(one)
    expect(await prove(one, right)).toBe('verified')
    expect(await prove(one, right), 'again').toBe('invalid_credentials')
    expect((await one.finish()).kind).toBe('redirect')
    expect((await other.read()).person).toBeUndefined()
  })
})

describe('meanwhile', () => {
  test.each(['totp', 'backup_code', 'passkey'] as const)(
    'a second factor, %s, that was removed after it was shown proves nothing, though another took its place',
    async (kind) => {
      const ada = await home.createPerson()
      const authenticator = createAuthenticator({ origin: home.baseUrl })
      const { passkeys } = home.operations
      const givePasskey = async () => {
        const making = await home.begin()
        await making.password(ada.username, ada.password)
        const made = await passkeys.registration(await making.read(), { name: 'ada', displayName: 'Ada' })
        const credential = registrationCredential.parse(authenticator.create(made!.options))
        const bound = await passkeys.bind(await making.read(), making.visitor, { proofId: made!.proofId, credential })
        expect([bound, (await making.finish()).kind]).toEqual([true, 'redirect'])
      }
      const give = async () => {
        if (kind === 'passkey') return givePasskey()
        return kind === 'totp' ? totpCode(await home.giveTotp(ada.id)) : (await home.giveBackupCodes(ada.id))[0]!
      }
      const show = async (running: Running, code: string) => {
        if (kind !== 'passkey') return running.secondFactor(kind, code)
        const asked = await passkeys.authentication(await running.read(), 'mfa', running.visitor)
        const credential = authenticationCredential.parse(authenticator.get(asked!.options))
        const answer = { proofId: asked!.proofId, credential }
        return (await passkeys.prove(await running.read(), running.visitor, answer, home.request)).outcome
      }

      const code = (await give()) ?? ''
      // Backup codes are none without another factor.
      if (kind === 'backup_code') await home.giveTotp(ada.id)
      const running = await home.begin()
      await running.password(ada.username, ada.password)
      expect(await show(running, code)).toBe('verified')
      expect((await running.step()).step).toBe('done')
      const table = { totp: 'totp_secrets', backup_code: 'backup_codes', passkey: 'passkeys' }[kind]
      await home.sql(`DELETE FROM ${table} WHERE user_id = $1`, [ada.id])
      await give()
      const sessions = await sessionsOf(ada.id)
      expect((await running.finish()).kind).toBe('page')
      expect((await running.step()).step).toBe('sign_in')
      expect(await sessionsOf(ada.id)).toEqual(sessions)
    },
  )

  test('a code that went to an address which was taken from the account opens nothing, and resets nothing', async () => {
    const ada = await home.createPerson()
    const signIn = await home.begin()
    expect(await signIn.code('sign_in', ada.email)).toBe('verified')
    const reset = await home.begin({ event: 'ForgotPassword' })
    expect(await reset.code('reset', ada.email)).toBe('verified')
    expect(await home.operations.staging.password(await reset.read(), newPassword)).toEqual({ outcome: 'staged' })
    const before = await rowOf(ada.id)
    await home.sql(`UPDATE users SET primary_email = 'new@example.test' WHERE id = $1`, [ada.id])
    expect((await signIn.finish()).kind).toBe('page')
    expect((await signIn.step()).step).toBe('sign_in')
    expect((await reset.finish()).kind).toBe('page')
    expect(await sessionsOf(ada.id)).toEqual([])
    expect(await rowOf(ada.id)).toMatchObject({ password_digest: before!['password_digest'] })
  })

  test('a suspended person resets nothing, and a deleted one is nobody', async () => {
    const [ada, bob] = [await home.createPerson(), await home.createPerson()]
    const reset = await home.begin({ event: 'ForgotPassword' })
    await reset.code('reset', ada.email)
    await home.operations.staging.password(await reset.read(), newPassword)
    const before = await rowOf(ada.id)
    await home.sql('UPDATE users SET is_suspended = true WHERE id = $1', [ada.id])
    expect((await reset.finish()).kind).toBe('page')
    expect(await rowOf(ada.id)).toMatchObject({ password_digest: before!['password_digest'] })

    const running = await home.begin()
    await running.password(bob.username, bob.password)
    await home.sql('DELETE FROM users WHERE id = $1', [bob.id])
    expect(['page', 'over']).toContain((await running.finish()).kind)
    expect(await home.sql('SELECT FROM sessions WHERE user_id = $1', [bob.id])).toEqual([])
  })

  test('a reset leads to no session, and the second factor is asked for after it', async () => {
    const ada = await home.createPerson()
    await home.giveTotp(ada.id)
    const running = await home.begin({ event: 'ForgotPassword' })
    expect(await running.code('reset', ada.email)).toBe('verified')
    expect(await running.secondFactor('totp', '123456')).toBe('invalid_credentials')
    await home.operations.staging.password(await running.read(), newPassword)
    expect((await running.finish()).kind).toBe('reset')
    expect(await running.read()).toMatchObject({ event: 'SignIn', proofs: [], staged: {}, person: undefined })
    expect(await sessionsOf(ada.id)).toEqual([])
    expect(await running.password(ada.username, newPassword)).toBe('verified')
    expect(await running.step()).toMatchObject({ step: 'mfa' })
  })

  test('a one-time token is not used up where it leads nowhere', async () => {
    const ada = await home.createPerson()
    const token = await home.oneTimeToken(ada.email)
    const prove = async (running: Running) =>
      (
        await home.operations.oneTimeTokens.prove(
          await running.read(),
          running.visitor,
          { identifier: readIdentifier(ada.email)!, token },
          home.request,
        )
      ).outcome
    expect(await prove(await home.begin({ event: 'ForgotPassword' }))).toBe('invalid_credentials')
    const running = await home.begin()
    expect(await prove(running)).toBe('verified')
    expect(await running.step()).toMatchObject({ step: 'done' })
  })

  test('an address that is nobody’s signs nobody in, and makes nobody', async () => {
    const users = await home.sql('SELECT id FROM users')
    const running = await home.begin()
    expect(await running.code('sign_in', 'nobody@example.test')).toBe('verified')
    expect(await running.step()).toMatchObject({ step: 'sign_in' })
    expect((await running.finish()).kind).toBe('page')
    expect(await home.sql('SELECT id FROM users')).toEqual(users)
  })
})
