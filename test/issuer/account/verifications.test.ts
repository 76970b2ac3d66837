import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SignedInApplication, startAccount, type TestAccount } from '../../support/account.ts'
import { parametersOf } from '../../support/code-flow.ts'
import type { ExperiencePerson } from '../../support/experience.ts'
import { request } from '../../support/issuer.ts'

let account: TestAccount
let ada: ExperiencePerson
let shop: SignedInApplication

beforeAll(async () => {
  account = await startAccount({ instances: 2 })
})
afterAll(() => account.close())
beforeEach(async () => {
  account.experience.clock.now += 300_000
  ada = await account.createPerson()
  shop = await account.signIn(ada)
})

const denied = { status: 401, body: { code: 'verification_record.permission_denied' } }
const blocked = { status: 400, body: { code: 'session.verification_blocked_too_many_attempts' } }

/** A change that needs a verification. */
const rename = (application: SignedInApplication, verification?: string) =>
  application.patch('/my-account', { username: `n_${Math.random().toString(36).slice(2)}` }, { verification })

describe('each factor proves again who it is', () => {
  test('the password', async () => {
    const begun = await shop.post('/verifications/password', { password: ada.password })
    expect(begun).toMatchObject({ status: 201, body: { verificationRecordId: expect.any(String) } })
    const left = new Date(begun.body.expiresAt).getTime() - Date.now()
    expect(left).toBeGreaterThan(500_000)
    expect(left).toBeLessThan(700_000)
    expect((await rename(shop, begun.body.verificationRecordId)).status).toBe(200)
    // For ten minutes, for all that is changed.
    expect((await rename(shop, begun.body.verificationRecordId)).status).toBe(200)
  })

  test('a code sent to the own address, by mail and by text message', async () => {
    for (const identifier of [
      { type: 'email', value: ada.email.toUpperCase() },
      { type: 'phone', value: `+${ada.phone}` },
    ]) {
      const sent = await shop.post('/verifications/verification-code', { identifier })
      expect(sent.status).toBe(201)
      const to = identifier.type === 'email' ? ada.email : ada.phone
      const code = await account.experience.codeTo(to)
      expect(await rename(shop, sent.body.verificationRecordId)).toMatchObject(denied)
      const answer = { identifier, verificationId: sent.body.verificationRecordId, code }
      const verified = await shop.post('/verifications/verification-code/verify', answer)
      expect(verified).toMatchObject({ status: 200, body: { verificationRecordId: sent.body.verificationRecordId } })
      expect((await rename(shop, verified.body.verificationRecordId)).status).toBe(200)
      expect(await shop.post('/verifications/verification-code/verify', answer)).toMatchObject({
        status: 400,
        body: { code: 'session.verification_failed' },
      })
    }
  })

  test('an authenticator app, once for each code', async () => {
    const secret = await account.experience.addTotp(ada)
    const code = account.experience.totp(secret)
    const { status, body } = await shop.post('/verifications/totp', { code })
    expect(status).toBe(201)
    expect((await rename(shop, body.verificationRecordId)).status).toBe(200)
    expect(await shop.post('/verifications/totp', { code })).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.invalid_totp_code' },
    })
  })

  test('a backup code, which is used up, and its owner is told', async () => {
    const [code] = await account.experience.addBackupCodes(ada)
    const { status, body } = await shop.post('/verifications/backup-code', { code })
    expect(status).toBe(201)
    expect((await rename(shop, body.verificationRecordId)).status).toBe(200)
    expect((await account.experience.messagesTo(ada.email)).map(({ type }) => type)).toContain('BackupCodeUsed')
    expect(await shop.post('/verifications/backup-code', { code })).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.invalid_backup_code' },
    })
  })

  test('a passkey, whose challenge is good for one answer', async () => {
    const device = await account.experience.addPasskey(ada)
    const begun = await shop.post('/verifications/web-authn/authentication')
    expect(begun.status).toBe(200)
    const { verificationRecordId, authenticationOptions } = begun.body
    const payload = device.get(authenticationOptions)
    expect(await rename(shop, verificationRecordId)).toMatchObject(denied)
    const verified = await shop.post('/verifications/web-authn/authentication/verify', {
      verificationRecordId,
      payload,
    })
    expect(verified.status).toBe(200)
    expect((await rename(shop, verificationRecordId)).status).toBe(200)
    expect(
      await shop.post('/verifications/web-authn/authentication/verify', { verificationRecordId, payload }),
    ).toMatchObject({ status: 404, body: { code: 'verification_record.not_found' } })
  })
})

describe('what proves nothing', () => {
  const factorId = async (type: string) =>
    (await shop.get('/my-account/mfa-verifications')).body.find((factor: { type: string }) => factor.type === type).id

  test('a factor that was removed since', async () => {
    const secret = await account.experience.addTotp(ada)
    const device = await account.experience.addPasskey(ada)
    const byApp = (await shop.post('/verifications/totp', { code: account.experience.totp(secret) })).body
    const begun = (await shop.post('/verifications/web-authn/authentication')).body
    const { verificationRecordId: byPasskey } = begun
    const payload = device.get(begun.authenticationOptions)
    await shop.post('/verifications/web-authn/authentication/verify', { verificationRecordId: byPasskey, payload })
    const verification = byApp.verificationRecordId
    expect((await rename(shop, verification)).status).toBe(200)
    expect((await rename(shop, byPasskey)).status).toBe(200)

    const [app, passkey] = [await factorId('Totp'), await factorId('WebAuthn')]
    const remove = (id: string) => shop.delete(`/my-account/mfa-verifications/${id}`, { verification })
    expect((await remove(passkey)).status).toBe(204)
    expect(await rename(shop, byPasskey)).toMatchObject(denied)
    expect((await remove(app)).status).toBe(204)
    expect(await rename(shop, verification)).toMatchObject(denied)
    expect((await rename(shop, await shop.verify())).status).toBe(200)
  })

  test('a set of backup codes that was replaced since', async () => {
    await account.experience.addTotp(ada)
    const [code] = await account.experience.addBackupCodes(ada)
    const { body } = await shop.post('/verifications/backup-code', { code })
    const verification = body.verificationRecordId
    expect((await rename(shop, verification)).status).toBe(200)
    const { codes } = (await shop.post('/my-account/mfa-verifications/backup-codes/generate')).body
    const added = await shop.post('/my-account/mfa-verifications', { type: 'BackupCode', codes }, { verification })
    expect(added.status, JSON.stringify(added.body)).toBeLessThan(300)
    expect(await rename(shop, verification)).toMatchObject(denied)
  })

  test('an address that was replaced since', async () => {
    const identifier = { type: 'email', value: ada.email }
    const { verificationRecordId: verificationId } = (
      await shop.post('/verifications/verification-code', { identifier })
    ).body
    const code = await account.experience.codeTo(ada.email)
    await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })
    expect((await rename(shop, verificationId)).status).toBe(200)
    await account.experience.issuer.sql('UPDATE users SET primary_email = $2 WHERE id = $1', [
      ada.id,
      `later-${ada.id}@example.test`,
    ])
    expect(await rename(shop, verificationId)).toMatchObject(denied)
  })

  test('the passkey of somebody else', async () => {
    const eve = await account.createPerson()
    const device = await account.experience.addPasskey(eve)
    const { body } = await shop.post('/verifications/web-authn/authentication')
    const payload = device.get({ ...body.authenticationOptions, allowCredentials: [] })
    const { verificationRecordId } = body
    expect(
      await shop.post('/verifications/web-authn/authentication/verify', { verificationRecordId, payload }),
    ).toMatchObject({ status: 400, body: { code: 'session.mfa.webauthn_verification_failed' } })
    expect(await rename(shop, verificationRecordId)).toMatchObject(denied)
  })

  test('a verification of somebody else, or of another session of the same person', async () => {
    const eve = await account.createPerson()
    const hers = await (await account.signIn(eve)).verify()
    expect(await rename(shop, hers)).toMatchObject(denied)
    const elsewhere = await account.signIn(ada)
    expect(await rename(shop, await elsewhere.verify())).toMatchObject(denied)
    expect((await rename(shop, await shop.verify())).status).toBe(200)
  })

  test('one that is older than ten minutes', async () => {
    const id = await shop.verify()
    await account.experience.issuer.sql(`UPDATE proofs SET expires_at = now() WHERE id = $1`, [id])
    expect(await rename(shop, id)).toMatchObject(denied)
  })

  test('a code that shows that another address is theirs', async () => {
    const identifier = { type: 'email', value: `new-${ada.id}@example.test` }
    const sent = await shop.post('/verifications/verification-code', { identifier })
    const code = await account.experience.codeTo(identifier.value)
    const verificationId = sent.body.verificationRecordId
    expect(
      (await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })).status,
    ).toBe(200)
    expect(await rename(shop, verificationId)).toMatchObject(denied)
  })

  test('a code sent to an own address that nobody has verified', async () => {
    await account.experience.issuer.sql('UPDATE users SET email_verified_at = NULL WHERE id = $1', [ada.id])
    const identifier = { type: 'email', value: ada.email }
    const { body } = await shop.post('/verifications/verification-code', { identifier })
    const code = await account.experience.codeTo(ada.email)
    const verificationId = body.verificationRecordId
    await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })
    expect(await rename(shop, verificationId)).toMatchObject(denied)
  })

  test('a code sent to an address that is no longer theirs', async () => {
    const identifier = { type: 'email', value: ada.email }
    const { body } = await shop.post('/verifications/verification-code', { identifier })
    const code = await account.experience.codeTo(ada.email)
    const { status } = await account.experience.issuer.api('PATCH', `/users/${ada.id}`, {
      primaryEmail: `safe-${ada.id}@example.test`,
    })
    expect(status).toBe(200)
    const verificationId = body.verificationRecordId
    await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })
    expect(await rename(shop, verificationId)).toMatchObject(denied)
  })

  test('a factor that is not enabled', async () => {
    const { issuer } = account.experience
    const secret = await account.experience.addTotp(ada)
    const { body } = await issuer.api('GET', '/sign-in-exp')
    await issuer.api('PATCH', '/sign-in-exp', { mfa: { factors: ['WebAuthn'], policy: 'NoPrompt' } })
    const code = account.experience.totp(secret)
    expect(await shop.post('/verifications/totp', { code })).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.mfa_factor_not_enabled' },
    })
    await issuer.api('PATCH', '/sign-in-exp', { mfa: body.mfa })
  })
})

describe('guessing', () => {
  const wrong = { password: 'not the password' }
  const post = (body: object, application = shop, instance = 0) =>
    application.post('/verifications/password', body, { instance })

  test('the tenth wrong password locks this token, the right one too, and is told once; others go on', async () => {
    for (let count = 1; count < 10; count++) {
      expect(await post(wrong, shop, count % 2)).toMatchObject({
        status: 422,
        body: { code: 'session.invalid_credentials' },
      })
    }
    expect(await post(wrong)).toMatchObject(blocked)
    expect(await post({ password: ada.password })).toMatchObject(blocked)
    const events = (await account.eventsOf(ada.id)).filter(({ type }) => type === 'Identifier.Lockout')
    expect(events).toHaveLength(1)
    // Neither another session nor signing in is locked by somebody who stole one token.
    const elsewhere = await account.signIn(ada)
    expect((await post({ password: ada.password }, elsewhere)).status).toBe(201)
    await account.experience.issuer.api('POST', '/sentinel-activities/delete', {
      targetType: 'User',
      targets: [ada.username],
    })
    expect((await post({ password: ada.password })).status).toBe(201)
  })

  test('another token of the same sign-in gives no more guesses', async () => {
    const { flow, client, issuer } = account.experience
    const browser = flow.browser()
    const tokenOf = async (code: string) => (await flow.redeem(client, code)).body.access_token as string
    const tokens = [await tokenOf(await flow.signIn(browser, client, ada))]
    tokens.push(await tokenOf(parametersOf(await flow.ask(browser, client, { prompt: 'none', scope: 'openid' })).code!))
    const guess = (token: string, password: string) =>
      request(`${issuer.urls[0]}/api/verifications/password`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ password }),
      })
    for (let count = 1; count < 10; count++) await guess(tokens[0]!, 'not the password')
    expect((await guess(tokens[1]!, 'not the password')).body).toMatchObject(blocked.body)
    expect(await guess(tokens[1]!, ada.password)).toMatchObject(blocked)
    const targets = { targetType: 'User', targets: [ada.username] }
    await issuer.api('POST', '/sentinel-activities/delete', targets)
    expect((await guess(tokens[1]!, ada.password)).status).toBe(201)
  })

  test('what is proven of an address of the guesser gives no more guesses', async () => {
    const identifier = { type: 'email', value: `eve-${ada.id}@example.test` }
    for (let count = 1; count < 10; count++) await post(wrong)
    const { body } = await shop.post('/verifications/verification-code', { identifier })
    const code = await account.experience.codeTo(identifier.value)
    const answer = { identifier, verificationId: body.verificationRecordId, code }
    expect((await shop.post('/verifications/verification-code/verify', answer)).status).toBe(200)
    expect(await post(wrong)).toMatchObject(blocked)
    expect(await post({ password: ada.password })).toMatchObject(blocked)
  })

  test('no more than ten wrong passwords are looked at, however many come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => post(wrong, shop, index % 2)))
    const codes = answers.map(({ body }) => body.code)
    expect(codes.filter((code) => code === 'session.invalid_credentials').length).toBeLessThan(10)
    expect(await post({ password: ada.password })).toMatchObject(blocked)
  })

  test('five wrong codes of an authenticator app lock second factors, here and elsewhere', async () => {
    const secret = await account.experience.addTotp(ada)
    const elsewhere = await account.signIn(ada, { totp: account.experience.totp(secret, -1) })
    for (let count = 1; count < 5; count++) {
      expect((await shop.post('/verifications/totp', { code: '000000' })).body.code).toBe(
        'session.mfa.invalid_totp_code',
      )
    }
    expect(await shop.post('/verifications/totp', { code: '000000' })).toMatchObject(blocked)
    const code = account.experience.totp(secret)
    expect(await elsewhere.post('/verifications/totp', { code })).toMatchObject(blocked)
  })

  test('a mailed code is compared so often, and then void', async () => {
    const identifier = { type: 'email', value: ada.email }
    const { body } = await shop.post('/verifications/verification-code', { identifier })
    const verificationId = body.verificationRecordId
    const code = await account.experience.codeTo(ada.email)
    const off = code === '000000' ? '000001' : '000000'
    const answers = []
    for (let count = 0; count < 5; count++) {
      answers.push(
        await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code: off }),
      )
    }
    expect(answers.map((answer) => answer.body.code)).toEqual(Array(5).fill('verification_code.code_mismatch'))
    expect(
      (await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })).body.code,
    ).toBe('verification_code.exceed_max_try')
  })

  test('one address is refused after a hundred failures, whosever token it has', async () => {
    const { sql } = account.experience.issuer
    await post(wrong)
    await sql('UPDATE sign_in_failures SET count = 101 WHERE locked_until IS NULL AND count = 1 AND locks = 0')
    const answer = await post({ password: ada.password })
    expect([429, 400]).toContain(answer.status)
    await sql('DELETE FROM sign_in_failures')
  })
})

test('nothing that opens something stands in the database, in the log or in the audit trail', async () => {
  const { issuer } = account.experience
  const identifier = { type: 'email', value: ada.email }
  const { body } = await shop.post('/verifications/verification-code', { identifier })
  const code = await account.experience.codeTo(ada.email)
  const secret = (await shop.post('/my-account/mfa-verifications/totp-secret/generate')).body.secret
  const { codes } = (await shop.post('/my-account/mfa-verifications/backup-codes/generate')).body
  await shop.post('/verifications/password', { password: ada.password })
  const rows = await issuer.sql('SELECT data, secret FROM proofs WHERE holder IS NOT NULL')
  const logs = await issuer.sql('SELECT key, payload FROM logs')
  for (const text of [JSON.stringify(rows), JSON.stringify(logs), issuer.logged()]) {
    for (const value of [secret, codes[0], ada.password, shop.token]) expect(text).not.toContain(value)
  }
  expect(
    JSON.stringify(await issuer.sql('SELECT * FROM proofs WHERE id = $1', [body.verificationRecordId])),
  ).not.toContain(`"${code}"`)
})
