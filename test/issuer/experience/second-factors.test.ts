import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type ExperiencePages,
  type ExperiencePerson,
  startExperience,
  type TestExperience,
} from '../../support/experience.ts'

let experience: TestExperience

const all = ['Totp', 'WebAuthn', 'BackupCode', 'EmailVerificationCode', 'PhoneVerificationCode'] as const

beforeAll(async () => {
  experience = await startExperience({
    settings: {
      mfa: { factors: [...all], policy: 'NoPrompt' },
      passkeySignIn: { enabled: true, showPasskeyButton: true, allowAutofill: true },
    },
  })
})
afterAll(() => experience.close())
// Each test has steps of its own.
beforeEach(() => {
  experience.clock.now += 300_000
})

const requireMfa = { status: 403, body: { code: 'session.mfa.require_mfa_verification' } }

/** A browser in which the person has proven the password. */
const identified = async (person: ExperiencePerson): Promise<ExperiencePages> => {
  const pages = await experience.pages()
  const { body } = await pages.post('/verification/password', {
    identifier: { type: 'username', value: person.username },
    password: person.password,
  })
  expect((await pages.post('/identification', body)).status).toBe(204)
  return pages
}

describe('a person with an authenticator app', () => {
  let person: ExperiencePerson
  let secret: string
  beforeEach(async () => {
    person = await experience.createPerson()
    secret = await experience.addTotp(person)
  })

  test('gets nothing without it: no session, no other password, no other factor, no other address', async () => {
    const pages = await identified(person)
    expect(await pages.post('/submit')).toMatchObject({
      ...requireMfa,
      body: {
        data: {
          availableFactors: ['Totp', 'PhoneVerificationCode', 'EmailVerificationCode'],
          maskedIdentifiers: {
            EmailVerificationCode: `${person.email[0]}${'*'.repeat(11)}@example.test`,
            PhoneVerificationCode: `**********${person.phone.slice(-4)}`,
          },
        },
      },
    })
    const refused: [string, unknown][] = [
      ['/profile', { type: 'password', value: 'pwd_3f1c9a7b5d2e' }],
      ['/profile', { type: 'username', value: 'another_name' }],
      ['/verification/totp/secret', undefined],
      ['/verification/backup-code/generate', undefined],
      ['/verification/web-authn/registration', undefined],
      ['/profile/mfa', { type: 'Totp', verificationId: 'x' }],
      ['/profile/mfa/mfa-skipped', undefined],
      ['/profile/mfa/passkey', { verificationId: 'x' }],
      ['/profile/mfa/passkey-skipped', undefined],
      [
        '/verification/verification-code',
        { identifier: { type: 'email', value: 'other@example.test' }, interactionEvent: 'SignIn' },
      ],
    ]
    for (const [path, body] of refused) expect(await pages.post(path, body), path).toMatchObject(requireMfa)
    expect(await pages.put('/profile/password', { password: 'pwd_3f1c9a7b5d2e' })).toMatchObject({ status: 400 })
    const page = await pages.browser.get(`/oidc/auth/${pages.interactionId}`)
    expect(page.url).toContain('/sign-in/')
    expect(pages.browser.cookies.has('surrogate_session')).toBe(false)
  })

  test('signs in with it, and a step of it is good once, and never one before it', async () => {
    const code = experience.totp(secret)
    const pages = await identified(person)
    expect(await pages.post('/verification/totp/verify', { code })).toMatchObject({ status: 200 })
    const tokens = await experience.flow.redeem(experience.client, (await pages.finish())['code']!)
    expect(await claimsOf(tokens.body.id_token)).toMatchObject({
      acr: 'urn:surrogate:acr:mfa',
      amr: expect.arrayContaining(['pwd', 'otp', 'mfa']),
    })

    const wrong = { status: 400, body: { code: 'session.mfa.invalid_totp_code' } }
    const second = await identified(person)
    expect(await second.post('/verification/totp/verify', { code })).toMatchObject(wrong)
    expect(await second.post('/verification/totp/verify', { code: experience.totp(secret, -1) })).toMatchObject(wrong)
    expect(await second.post('/verification/totp/verify', { code: experience.totp(secret, 2) })).toMatchObject(wrong)
    expect(await second.post('/submit')).toMatchObject(requireMfa)
    expect(await second.post('/verification/totp/verify', { code: experience.totp(secret, 1) })).toMatchObject({
      status: 200,
    })
    await second.finish()
  })

  test('is not signed in by the code of somebody else, which counts against the person', async () => {
    const other = await experience.createPerson()
    const others = await experience.addTotp(other)
    const pages = await identified(person)
    for (let failure = 1; failure <= 4; failure++) {
      const answer = await pages.post('/verification/totp/verify', { code: experience.totp(others) })
      expect(answer).toMatchObject({ status: 400, body: { code: 'session.mfa.invalid_totp_code' } })
    }
    const blocked = { status: 400, body: { code: 'session.verification_blocked_too_many_attempts' } }
    const fifth = await pages.post('/verification/totp/verify', { code: experience.totp(others) })
    expect(fifth).toMatchObject(blocked)
    expect(await pages.post('/verification/totp/verify', { code: experience.totp(secret) })).toMatchObject(blocked)
    // The interaction ends with it.
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.not_found' } })
  })

  test('has to prove everything again after beginning anew, and after going by way of something else', async () => {
    const pages = await identified(person)
    await pages.post('/verification/totp/verify', { code: experience.totp(secret) })
    await pages.put('', { interactionEvent: 'SignIn' })
    expect(await pages.post('/submit')).toMatchObject({ status: 404, body: { code: 'session.identifier_not_found' } })

    const second = await identified(person)
    await second.post('/verification/totp/verify', { code: experience.totp(secret, 1) })
    expect((await second.put('/interaction-event', { interactionEvent: 'Register' })).status).toBe(204)
    expect((await second.put('/interaction-event', { interactionEvent: 'SignIn' })).status).toBe(204)
    expect((await second.post('/submit')).status).toBe(404)
    expect((await second.get('/interaction')).body).toMatchObject({
      verificationRecords: [],
      next: { step: 'sign_in' },
    })
  })

  test('resets the password without losing the factor, and is signed in by neither', async () => {
    const pages = await experience.pages()
    await pages.put('', { interactionEvent: 'ForgotPassword' })
    const identifier = { type: 'email', value: person.email }
    const { body } = await pages.post('/verification/verification-code', {
      identifier,
      interactionEvent: 'ForgotPassword',
    })
    const code = await experience.codeTo(person.email)
    const { verificationId } = body
    await pages.post('/verification/verification-code/verify', { identifier, verificationId, code })
    const password = 'pwd_a_new_one_77'
    expect(await pages.put('/profile/password', { password })).toMatchObject({ status: 404 })
    expect((await pages.post('/identification', { verificationId })).status).toBe(204)
    expect(await pages.post('/submit')).toMatchObject({
      status: 422,
      body: { code: 'user.new_password_required_in_profile' },
    })
    expect(await pages.put('/profile/password', { password: person.password })).toMatchObject({
      status: 422,
      body: { code: 'user.same_password' },
    })
    expect((await pages.post('/profile', { type: 'password', value: password })).status).toBe(400)
    expect((await pages.put('/profile/password', { password })).status).toBe(204)
    expect(await pages.post('/submit')).toMatchObject({ status: 200, body: '' })
    expect(pages.browser.cookies.has('surrogate_session')).toBe(false)
    expect((await pages.post('/submit')).status).toBe(404)
    expect(await experience.events('PostResetPassword')).toContainEqual(expect.objectContaining({ userId: person.id }))

    const after = await identified({ ...person, password })
    expect(await after.post('/submit')).toMatchObject(requireMfa)
  })

  test('does not get a class by it that only a passkey has', async () => {
    const pages = await experience.pages({ parameters: { acr_values: 'urn:surrogate:acr:phr' } })
    const { body } = await pages.post('/verification/password', {
      identifier: { type: 'username', value: person.username },
      password: person.password,
    })
    await pages.post('/identification', body)
    await pages.post('/verification/totp/verify', { code: experience.totp(secret) })
    const tokens = await experience.flow.redeem(experience.client, (await pages.finish())['code']!)
    expect((await claimsOf(tokens.body.id_token))['acr']).toBe('urn:surrogate:acr:mfa')
  })

  test('signs in with a backup code, once for each', async () => {
    const [first, second] = await experience.addBackupCodes(person)
    const pages = await identified(person)
    expect((await pages.post('/submit')).body.data.availableFactors).toContain('BackupCode')
    expect(await pages.post('/verification/backup-code/verify', { code: first })).toMatchObject({ status: 200 })
    await pages.finish()
    const again = await identified(person)
    expect(await again.post('/verification/backup-code/verify', { code: first })).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.invalid_backup_code' },
    })
    expect(await again.post('/verification/backup-code/verify', { code: second })).toMatchObject({ status: 200 })
    await again.finish()
  })
})

const claimsOf = async (jwt: string): Promise<Record<string, unknown>> =>
  JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())

describe('codes as a second factor', () => {
  test('a code by mail does not stand beside the mail that came first, one by text message does', async () => {
    const person = await experience.createPerson()
    await experience.addTotp(person)
    const pages = await experience.pages()
    const identifier = { type: 'email', value: person.email }
    const sent = await pages.post('/verification/verification-code', { identifier, interactionEvent: 'SignIn' })
    const { verificationId } = sent.body
    const code = await experience.codeTo(person.email)
    await pages.post('/verification/verification-code/verify', { identifier, verificationId, code })
    await pages.post('/identification', { verificationId })
    expect((await pages.post('/submit')).body.data.availableFactors).toEqual(['Totp', 'PhoneVerificationCode'])

    const byMail = await pages.post('/verification/mfa-verification-code', { identifierType: 'email' })
    const mailed = { ...byMail.body, code: await experience.codeTo(person.email), identifierType: 'email' }
    expect((await pages.post('/verification/mfa-verification-code/verify', mailed)).status).toBe(200)
    expect(await pages.post('/submit')).toMatchObject(requireMfa)

    const byPhone = await pages.post('/verification/mfa-verification-code', { identifierType: 'phone' })
    const texted = { ...byPhone.body, code: await experience.codeTo(person.phone), identifierType: 'phone' }
    expect((await pages.post('/verification/mfa-verification-code/verify', texted)).status).toBe(200)
    await pages.finish()
  })
})

describe('passkeys', () => {
  test('one is added, signs in by itself with and without a name, and its challenge is good once', async () => {
    const person = await experience.createPerson({ hasAddresses: false })
    const device = experience.authenticator()
    const pages = await identified(person)
    const made = await pages.post('/verification/web-authn/registration')
    expect(made).toMatchObject({
      status: 200,
      body: { verificationId: expect.any(String), registrationOptions: { challenge: expect.any(String) } },
    })
    const { verificationId } = made.body
    const payload = device.create(made.body.registrationOptions)
    const verify = () => pages.post('/verification/web-authn/registration/verify', { verificationId, payload })
    expect(await verify()).toMatchObject({ status: 200, body: { verificationId } })
    expect(await verify()).toMatchObject({ status: 400, body: { code: 'session.verification_failed' } })
    expect((await pages.post('/profile/mfa', { type: 'Totp', verificationId })).status).toBe(400)
    expect((await pages.post('/profile/mfa', { type: 'WebAuthn', verificationId })).status).toBe(204)
    await pages.finish()

    const preflight = await experience.pages()
    const asked = await preflight.post('/preflight/sign-in-passkey/authentication')
    const answer = { ...asked.body, payload: device.get(asked.body.authenticationOptions) }
    const path = '/verification/sign-in-passkey/authentication/verify'
    const proven = await preflight.post(path, answer)
    expect(proven).toMatchObject({ status: 200, body: { verificationId: asked.body.verificationId } })
    expect((await preflight.post(path, answer)).status).toBe(400)
    await preflight.post('/identification', proven.body)
    const tokens = await experience.flow.redeem(experience.client, (await preflight.finish())['code']!)
    expect((await claimsOf(tokens.body.id_token))['acr']).toBe('urn:surrogate:acr:phr')

    const named = await experience.pages()
    const identifier = { type: 'username', value: person.username }
    const options = await named.post('/verification/sign-in-passkey/authentication', { identifier })
    const nobody = await named.post('/verification/sign-in-passkey/authentication', {
      identifier: { type: 'username', value: 'nobody_at_all' },
    })
    // Whoever does not exist has passkeys too, as far as can be told.
    expect(nobody.body.authenticationOptions.allowCredentials.length).toBeGreaterThan(0)
    // The challenge that was asked for last is the one.
    expect((await named.post(path, { payload: device.get(options.body.authenticationOptions) })).status).toBe(400)
    const last = await named.post('/verification/sign-in-passkey/authentication', { identifier })
    const right = await named.post(path, { payload: device.get(last.body.authenticationOptions) })
    await named.post('/identification', right.body)
    await named.finish()

    const asFactor = await identified(person)
    expect((await asFactor.post('/submit')).body.data.availableFactors[0]).toBe('WebAuthn')
    const challenge = await asFactor.post('/verification/web-authn/authentication')
    const given = { ...challenge.body, payload: device.get(challenge.body.authenticationOptions) }
    // A challenge for the one is none for the other.
    expect((await asFactor.post(path, given)).status).toBe(404)
    expect((await asFactor.post('/verification/web-authn/authentication/verify', given)).status).toBe(200)
    await asFactor.finish()
  })
})

describe('new factors', () => {
  test('a new authenticator app is kept when the sign-in is, and proves nothing in it', async () => {
    const person = await experience.createPerson({ hasAddresses: false })
    const pages = await identified(person)
    const { body } = await pages.post('/verification/totp/secret')
    expect(body).toMatchObject({ secretQrCode: expect.stringMatching(/^data:image/) })
    const { verificationId } = body
    const wrong = { code: '000000', verificationId }
    expect((await pages.post('/verification/totp/verify', wrong)).status).toBe(400)
    const confirmed = { code: experience.totp(body.secret), verificationId }
    expect(await pages.post('/verification/totp/verify', confirmed)).toMatchObject({ status: 200 })
    expect((await pages.post('/profile/mfa', { type: 'Totp', verificationId })).status).toBe(204)
    expect((await pages.post('/profile/mfa', { type: 'BackupCode', verificationId })).status).toBe(404)
    const codes = await pages.post('/verification/backup-code/generate')
    expect(codes.body.codes).toHaveLength(10)
    const ofCodes = { type: 'BackupCode', verificationId: codes.body.verificationId }
    expect((await pages.post('/profile/mfa', ofCodes)).status).toBe(204)
    const tokens = await experience.flow.redeem(experience.client, (await pages.finish())['code']!)
    expect((await claimsOf(tokens.body.id_token))['acr']).toBe('urn:surrogate:acr:basic')

    const next = await identified(person)
    expect(await next.post('/submit')).toMatchObject(requireMfa)
    // The step that confirmed it was used up.
    expect((await next.post('/verification/totp/verify', { code: confirmed.code })).status).toBe(400)
    expect((await next.post('/verification/backup-code/verify', { code: codes.body.codes[0] })).status).toBe(200)
    expect((await next.post('/verification/totp/secret')).body.code).toBe('user.totp_already_in_use')
    await next.finish()
  })
})

describe('factors that are demanded', () => {
  let mandatory: TestExperience
  beforeAll(async () => {
    mandatory = await startExperience({ settings: { mfa: { factors: ['Totp', 'BackupCode'], policy: 'Mandatory' } } })
  })
  afterAll(() => mandatory.close())

  test('cannot be skipped, and backup codes have to be kept beside them', async () => {
    const person = await mandatory.createPerson()
    const pages = await mandatory.pages()
    const { body } = await pages.post('/verification/password', {
      identifier: { type: 'username', value: person.username },
      password: person.password,
    })
    await pages.post('/identification', body)
    expect(await pages.post('/submit')).toMatchObject({
      status: 422,
      body: { code: 'user.missing_mfa', data: { availableFactors: ['Totp'], skippable: false } },
    })
    for (const path of ['/profile/mfa/mfa-skipped', '/profile/mfa/mfa-enabled']) {
      expect(await pages.post(path)).toMatchObject({
        status: 422,
        body: { code: 'session.mfa.mfa_policy_not_user_controlled' },
      })
    }
    const alone = await pages.post('/verification/backup-code/generate')
    expect(
      await pages.post('/profile/mfa', { type: 'BackupCode', verificationId: alone.body.verificationId }),
    ).toMatchObject({ status: 422, body: { code: 'session.mfa.backup_code_can_not_be_alone' } })
    expect(await pages.post('/verification/web-authn/registration')).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.mfa_factor_not_enabled' },
    })
    const made = await pages.post('/verification/totp/secret')
    const { verificationId, secret } = made.body
    await pages.post('/verification/totp/verify', { code: mandatory.totp(secret), verificationId })
    expect(await pages.post('/submit')).toMatchObject({
      status: 422,
      body: { code: 'session.mfa.backup_code_required' },
    })
    const codes = await pages.post('/verification/backup-code/generate')
    await pages.post('/profile/mfa', { type: 'BackupCode', verificationId: codes.body.verificationId })
    expect(await pages.finish()).toMatchObject({ code: expect.any(String) })
  })

  test('by an organization cannot be skipped by its members, others may', async () => {
    const { api } = mandatory.issuer
    const mfa = { factors: ['Totp'], policy: 'PromptAtSignInAndSignUp', organizationRequiredMfaPolicy: 'Mandatory' }
    expect((await api('PATCH', '/sign-in-exp', { mfa })).status).toBe(200)
    const [member, other] = [await mandatory.createPerson(), await mandatory.createPerson()]
    const organization = (await api('POST', '/organizations', { name: 'Acme', isMfaRequired: true })).body.id
    await api('POST', `/organizations/${organization}/users`, { userIds: [member.id] })
    const passwordGiven = async (person: ExperiencePerson) => {
      const pages = await mandatory.pages()
      const asked = { identifier: { type: 'username', value: person.username }, password: person.password }
      await pages.post('/identification', (await pages.post('/verification/password', asked)).body)
      return pages
    }
    const pages = await passwordGiven(member)
    for (const path of ['/profile/mfa/mfa-skipped', '/profile/mfa/mfa-enabled']) {
      expect(await pages.post(path)).toMatchObject({
        status: 422,
        body: { code: 'session.mfa.mfa_policy_not_user_controlled' },
      })
    }
    expect(await pages.post('/submit')).toMatchObject({
      status: 422,
      body: { code: 'user.missing_mfa', data: { skippable: false } },
    })
    expect(pages.browser.cookies.has('surrogate_session')).toBe(false)

    const free = await passwordGiven(other)
    expect((await free.post('/submit')).body.data).toMatchObject({ skippable: true })
    expect((await free.post('/profile/mfa/mfa-skipped')).status).toBe(204)
    expect(await free.finish()).toMatchObject({ code: expect.any(String) })
  })
})
