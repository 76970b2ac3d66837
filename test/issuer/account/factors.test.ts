import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SignedInApplication, startAccount, type TestAccount } from '../../support/account.ts'
import type { ExperiencePerson } from '../../support/experience.ts'

let account: TestAccount
let ada: ExperiencePerson
let shop: SignedInApplication

beforeAll(async () => {
  account = await startAccount()
})
afterAll(() => account.close())
beforeEach(async () => {
  account.experience.clock.now += 300_000
  ada = await account.createPerson()
  shop = await account.signIn(ada)
})

const factors = '/my-account/mfa-verifications'
const denied = { status: 401, body: { code: 'verification_record.permission_denied' } }
const noticesOf = async (person: ExperiencePerson) =>
  (await account.experience.messagesTo(person.email)).map(({ type }) => type).filter((type) => type !== 'NewDevice')
const changesOf = async (person: ExperiencePerson) =>
  (await account.eventsOf(person.id)).filter(({ type }) => type === 'User.Data.Updated')

const addTotp = async (application = shop, verification?: string): Promise<string> => {
  const { body } = await application.post(`${factors}/totp-secret/generate`)
  const code = account.experience.totp(body.secret)
  const named = verification ?? (await application.verify())
  const added = await application.post(factors, { type: 'Totp', secret: body.secret, code }, { verification: named })
  expect(added.status).toBe(204)
  return body.secret
}

/** A passkey made in the browser of the application, waiting to be added. */
const makePasskey = async (application: SignedInApplication, device = account.experience.authenticator()) => {
  const { body } = await application.post('/verifications/web-authn/registration')
  const payload = device.create(body.registrationOptions)
  const { verificationRecordId } = body
  const verified = await application.post('/verifications/web-authn/registration/verify', {
    verificationRecordId,
    payload,
  })
  expect(verified.status).toBe(200)
  return { device, id: verificationRecordId as string, payload }
}

describe('an authenticator app', () => {
  test('is added by its first code, with a verification; the owner is told, and other sessions go on', async () => {
    const elsewhere = await account.signIn(ada)
    const { body } = await shop.post(`${factors}/totp-secret/generate`)
    expect(body).toMatchObject({ secret: expect.stringMatching(/^[A-Z2-7]{32}$/), secretQrCode: expect.any(String) })
    const code = account.experience.totp(body.secret)
    const answer = { type: 'Totp', secret: body.secret, code }
    expect(await shop.post(factors, answer)).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await shop.post(factors, answer, { verification })).status).toBe(204)
    expect((await shop.get(factors)).body).toMatchObject([{ type: 'Totp', id: expect.any(String) }])
    expect(JSON.stringify((await shop.get(factors)).body)).not.toContain(body.secret)
    expect(await noticesOf(ada)).toEqual(['FactorAdded'])
    expect(await changesOf(ada)).toHaveLength(1)
    expect(await elsewhere.userinfo()).toBe(200)
    // The step of the code that confirmed it is used up.
    expect(await shop.post('/verifications/totp', { code })).toMatchObject({ status: 400 })
    // There is one at most.
    await shop.post(`${factors}/totp-secret/generate`)
    const second = await shop.post(`${factors}/totp-secret/generate`)
    const again = { type: 'Totp', code: account.experience.totp(second.body.secret) }
    expect(await shop.post(factors, again, { verification })).toMatchObject({
      status: 422,
      body: { code: 'user.totp_already_in_use' },
    })
  })

  test('a secret that somebody else made, or that was made with another token, is refused', async () => {
    const verification = await shop.verify()
    const elsewhere = await account.signIn(ada)
    const { body } = await elsewhere.post(`${factors}/totp-secret/generate`)
    const code = account.experience.totp(body.secret)
    const refused = { status: 422, body: { code: 'user.totp_secret_invalid' } }
    expect(await shop.post(factors, { type: 'Totp', secret: body.secret, code }, { verification })).toMatchObject(
      refused,
    )
    await shop.post(`${factors}/totp-secret/generate`)
    expect(await shop.post(factors, { type: 'Totp', secret: body.secret, code }, { verification })).toMatchObject(
      refused,
    )
  })

  test('five codes are compared', async () => {
    const verification = await shop.verify()
    const { body } = await shop.post(`${factors}/totp-secret/generate`)
    for (let count = 0; count < 5; count++) {
      expect(await shop.post(factors, { type: 'Totp', code: '000000' }, { verification })).toMatchObject({
        status: 400,
        body: { code: 'session.mfa.invalid_totp_code' },
      })
    }
    const code = account.experience.totp(body.secret)
    expect(await shop.post(factors, { type: 'Totp', code }, { verification })).toMatchObject({ status: 422 })
    expect((await shop.get(factors)).body).toEqual([])
  })

  test('that is removed ends all other sessions but this one, and the owner is told', async () => {
    const secret = await addTotp()
    account.experience.clock.now += 60_000
    const elsewhere = await account.signIn(ada, { totp: account.experience.totp(secret) })
    const [{ id }] = (await shop.get(factors)).body
    expect(await shop.delete(`${factors}/${id}`)).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await shop.delete(`${factors}/${id}`, { verification })).status).toBe(204)
    expect([await shop.userinfo(), await elsewhere.userinfo()]).toEqual([200, 401])
    expect(await noticesOf(ada)).toEqual(['FactorAdded', 'FactorRemoved'])
    expect(await shop.delete(`${factors}/${id}`, { verification })).toMatchObject({ status: 404 })
    const { flow, client } = account.experience
    expect((await flow.refresh(client, elsewhere.refreshToken!)).body).toMatchObject({ error: 'invalid_grant' })
  })
})

describe('backup codes', () => {
  test('are made here, shown once, and stand only beside another factor', async () => {
    const verification = await shop.verify()
    const first = (await shop.post(`${factors}/backup-codes/generate`)).body.codes
    expect(first).toHaveLength(10)
    const alone = await shop.post(factors, { type: 'BackupCode', codes: first }, { verification })
    expect(alone).toMatchObject({ status: 422, body: { code: 'session.mfa.backup_code_can_not_be_alone' } })
    await addTotp(shop, verification)
    const { codes } = (await shop.post(`${factors}/backup-codes/generate`)).body
    expect((await shop.post(factors, { type: 'BackupCode', codes }, { verification })).status).toBe(204)
    const listed = (await shop.get(factors)).body
    expect(listed.map((factor: { type: string }) => factor.type)).toEqual(['Totp', 'BackupCode'])
    expect(listed[1].remainCodes).toBe(10)
    expect(JSON.stringify(listed)).not.toContain(codes[0])
    expect((await shop.post('/verifications/backup-code', { code: codes[0] })).status).toBe(201)
    expect(await shop.post('/verifications/backup-code', { code: first[0] })).toMatchObject({ status: 400 })
  })

  test('those that a client thought up are refused', async () => {
    const verification = await shop.verify()
    await addTotp(shop, verification)
    const codes = Array.from({ length: 10 }, (_, index) => `00000-0000${index}`)
    const refused = { status: 404, body: { code: 'verification_record.not_found' } }
    expect(await shop.post(factors, { type: 'BackupCode', codes }, { verification })).toMatchObject(refused)
    await shop.post(`${factors}/backup-codes/generate`)
    expect(await shop.post(factors, { type: 'BackupCode', codes }, { verification })).toMatchObject(refused)
  })
})

describe('passkeys', () => {
  const add = (application: SignedInApplication, id: string, verification: string) =>
    application.post(
      factors,
      { type: 'WebAuthn', newIdentifierVerificationRecordId: id, name: 'My phone' },
      { verification },
    )

  test('are added, named, used to prove who it is, and removed', async () => {
    const { id, device } = await makePasskey(shop)
    expect(await shop.post(factors, { type: 'WebAuthn', newIdentifierVerificationRecordId: id })).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await add(shop, id, verification)).status).toBe(204)
    expect(await add(shop, id, verification)).toMatchObject({ status: 404 })
    const [passkey] = (await shop.get(factors)).body
    expect(passkey).toMatchObject({ type: 'WebAuthn', name: 'My phone' })
    const named = await shop.patch(`${factors}/${passkey.id}/name`, { name: 'Key' }, { verification })
    expect(named.status).toBe(200)
    expect((await shop.get(factors)).body[0].name).toBe('Key')
    expect(await changesOf(ada)).toHaveLength(2)
    const begun = (await shop.post('/verifications/web-authn/authentication')).body
    const payload = device.get(begun.authenticationOptions)
    const { verificationRecordId } = begun
    await shop.post('/verifications/web-authn/authentication/verify', { verificationRecordId, payload })
    const removed = await shop.delete(`${factors}/${passkey.id}`, { verification: verificationRecordId })
    expect(removed.status).toBe(204)
    expect(await noticesOf(ada)).toEqual(['FactorAdded', 'FactorRemoved'])
  })

  test('T 96: a credential that is registered is refused, for its owner and for somebody else, by 409', async () => {
    const { id, payload } = await makePasskey(shop)
    const verification = await shop.verify()
    await add(shop, id, verification)
    const eve = await account.signIn(await account.createPerson())
    for (const application of [shop, eve]) {
      const device = account.experience.authenticator()
      const { body } = await application.post('/verifications/web-authn/registration')
      // The same credential id again, by another authenticator.
      const credentialId = Buffer.from(payload.id, 'base64url')
      const same = device.create({ ...body.registrationOptions, excludeCredentials: [] }, { credentialId })
      const { verificationRecordId } = body
      const verified = await application.post('/verifications/web-authn/registration/verify', {
        verificationRecordId,
        payload: same,
      })
      expect(verified.status).toBe(200)
      expect(await add(application, verificationRecordId, await application.verify())).toMatchObject({
        status: 409,
        body: { code: 'user.passkey_already_in_use' },
      })
    }
    expect((await eve.get(factors)).body).toEqual([])
    expect((await shop.get(factors)).body).toHaveLength(1)
  })

  test('an answer to another challenge, or to the challenge of another token, makes none', async () => {
    const device = account.experience.authenticator()
    const one = (await shop.post('/verifications/web-authn/registration')).body
    const payload = device.create({ ...one.registrationOptions, challenge: 'bm90IHRoZSBjaGFsbGVuZ2U' })
    const { verificationRecordId } = one
    const verify = (application: SignedInApplication, answer: object) =>
      application.post('/verifications/web-authn/registration/verify', { verificationRecordId, payload: answer })
    const elsewhere = await account.signIn(ada)
    expect(await verify(elsewhere, payload)).toMatchObject({ status: 404 })
    expect(await verify(shop, payload)).toMatchObject({
      status: 400,
      body: { code: 'session.mfa.webauthn_verification_failed' },
    })
    // It was used up by that.
    expect(await verify(shop, device.create(one.registrationOptions))).toMatchObject({ status: 404 })
  })
})

test('the factors of somebody else are nobody’s here', async () => {
  await addTotp()
  const [{ id }] = (await shop.get(factors)).body
  const eve = await account.signIn(await account.createPerson())
  const verification = await eve.verify()
  expect(await eve.delete(`${factors}/${id}`, { verification })).toMatchObject({ status: 404 })
  expect(await eve.patch(`${factors}/${id}/name`, { name: 'Mine' }, { verification })).toMatchObject({ status: 404 })
  expect((await shop.get(factors)).body).toHaveLength(1)
})

test('who was signed out by a removal cannot finish a change that was under way', async () => {
  const secret = await addTotp()
  account.experience.clock.now += 60_000
  const elsewhere = await account.signIn(ada, { totp: account.experience.totp(secret) })
  const theirs = await elsewhere.verify()
  const [{ id }] = (await shop.get(factors)).body
  const verification = await shop.verify()
  const [removed, renamed] = await Promise.all([
    shop.delete(`${factors}/${id}`, { verification }),
    elsewhere.post('/my-account/password', { password: 'correct horse battery 99' }, { verification: theirs }),
  ])
  // Either one was first; the other is refused then, for it was signed out.
  expect([
    [204, 401],
    [401, 204],
  ]).toContainEqual([removed.status, renamed.status])
})
