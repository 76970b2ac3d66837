import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SignedInApplication, startAccount, type TestAccount } from '../../support/account.ts'
import { type ExperiencePerson, freshName } from '../../support/experience.ts'

let account: TestAccount
let ada: ExperiencePerson
let shop: SignedInApplication

beforeAll(async () => {
  account = await startAccount()
})
afterAll(() => account.close())
beforeEach(async () => {
  ada = await account.createPerson()
  shop = await account.signIn(ada)
})

const denied = { status: 401, body: { code: 'verification_record.permission_denied' } }
const notEditable = { status: 403, body: { code: 'account_center.field_not_editable' } }

const changesOf = async (person: ExperiencePerson) =>
  (await account.eventsOf(person.id)).filter(({ type }) => type === 'User.Data.Updated')
const messagesOf = async (address: string) =>
  (await account.experience.messagesTo(address)).map(({ type }) => type).filter((type) => type !== 'NewDevice')

/** A code to the address, entered: the id that shows it is theirs. */
const prove = async (type: 'email' | 'phone', value: string): Promise<string> => {
  const identifier = { type, value }
  const { body } = await shop.post('/verifications/verification-code', { identifier })
  const code = await account.experience.codeTo(value.replace('+', ''))
  const verificationId = body.verificationRecordId
  await shop.post('/verifications/verification-code/verify', { identifier, verificationId, code })
  return verificationId
}

describe('profile', () => {
  test('name, avatar and custom data; each real change is one event, and none is none', async () => {
    const answer = await shop.patch('/my-account', { name: 'Ada', customData: { theme: 'dark' } })
    expect(answer).toMatchObject({ status: 200, body: { id: ada.id, name: 'Ada', customData: { theme: 'dark' } } })
    const events = await changesOf(ada)
    expect(events).toMatchObject([
      {
        event: 'User.Data.Updated',
        data: { id: ada.id, name: 'Ada' },
        path: '/my-account',
        matchedRoute: '/my-account',
      },
    ])
    expect((await shop.patch('/my-account', { name: 'Ada' })).status).toBe(200)
    expect(await changesOf(ada)).toHaveLength(1)
    expect((await shop.patch('/my-account', { name: null })).body.name).toBeNull()
    expect(await changesOf(ada)).toHaveLength(2)
    expect(await shop.patch('/my-account', { avatar: 'javascript:alert(1)' })).toMatchObject({ status: 400 })
    const logs = await account.experience.issuer.sql(
      `SELECT payload FROM logs WHERE key = 'Account.updateMyAccount' AND user_id = $1`,
      [ada.id],
    )
    expect(logs).toHaveLength(3)
  })

  test('members of the profile are merged; the postal address has a scope of its own', async () => {
    await shop.patch('/my-account/profile', { familyName: 'Lovelace', address: { locality: 'London' } })
    const merged = await shop.patch('/my-account/profile', { nickname: 'Countess' })
    expect(merged).toMatchObject({
      status: 200,
      body: { familyName: 'Lovelace', nickname: 'Countess', address: { locality: 'London' } },
    })
    const bare = await account.signIn(ada, { scope: 'openid profile' })
    expect((await bare.get('/my-account')).body.profile).toEqual({ familyName: 'Lovelace', nickname: 'Countess' })
    expect(await bare.patch('/my-account/profile', { address: { locality: 'Paris' } })).toMatchObject({ status: 403 })
  })

  test('a user name needs a verification, and is one person’s, in any case where the settings say so', async () => {
    const username = freshName()
    expect(await shop.patch('/my-account', { username })).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await shop.patch('/my-account', { username }, { verification })).body.username).toBe(username)
    const eve = await account.createPerson()
    const hers = await account.signIn(eve)
    const taken = { status: 422, body: { code: 'user.username_already_in_use' } }
    expect(await hers.patch('/my-account', { username }, { verification: await hers.verify() })).toMatchObject(taken)
    const { issuer } = account.experience
    await issuer.api('PATCH', '/sign-in-exp', { usernamePolicy: { caseSensitive: false } })
    const other = username.toUpperCase()
    expect(await hers.patch('/my-account', { username: other }, { verification: await hers.verify() })).toMatchObject(
      taken,
    )
    expect((await shop.patch('/my-account', { username: other }, { verification })).body.username).toBe(other)
    await issuer.api('PATCH', '/sign-in-exp', { usernamePolicy: {} })
  })

  test('two people who take the same user name at once: one gets it', async () => {
    const others = await Promise.all([account.createPerson(), account.createPerson()])
    const applications = await Promise.all(others.map((person) => account.signIn(person)))
    const username = freshName()
    const answers = await Promise.all(
      applications.map(async (one) => one.patch('/my-account', { username }, { verification: await one.verify() })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  })
})

describe('password', () => {
  const next = 'correct horse battery staple 42'

  test('is set with a verification; everybody else is signed out, this session goes on, and the owner is told', async () => {
    const elsewhere = await account.signIn(ada)
    expect(await shop.post('/my-account/password', { password: next })).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await shop.post('/my-account/password', { password: next }, { verification })).status).toBe(204)
    expect([await shop.userinfo(), await elsewhere.userinfo()]).toEqual([200, 401])
    expect((await elsewhere.get('/my-account')).status).toBe(401)
    const { flow, client, issuer } = account.experience
    expect((await flow.refresh(client, elsewhere.refreshToken!)).body).toMatchObject({ error: 'invalid_grant' })
    expect((await flow.refresh(client, shop.refreshToken!)).status).toBe(200)
    expect(await messagesOf(ada.email)).toContain('PasswordChanged')
    expect(await changesOf(ada)).toHaveLength(1)
    const ended = await issuer.sql('SELECT kind FROM revocations WHERE kind = $1', ['sid'])
    expect(ended.length).toBeGreaterThan(0)
    const again = await account.signIn({ ...ada, password: next })
    expect((await again.get('/my-account')).status).toBe(200)
  })

  test('the same one, and one that is not good enough, are refused, and end nothing', async () => {
    const verification = await shop.verify()
    const set = (password: string) => shop.post('/my-account/password', { password }, { verification })
    expect(await set(ada.password)).toMatchObject({ status: 422, body: { code: 'user.same_password' } })
    expect(await set('short')).toMatchObject({ status: 422, body: { code: 'password.rejected' } })
    expect(await set(`${ada.username}`)).toMatchObject({ status: 422, body: { code: 'password.rejected' } })
    expect((await shop.get('/my-account')).status).toBe(200)
    expect(await changesOf(ada)).toEqual([])
  })

  test('two sessions that change it at once: one wins, and has ended the other', async () => {
    const elsewhere = await account.signIn(ada)
    const [one, other] = [await shop.verify(), await elsewhere.verify()]
    const answers = await Promise.all([
      shop.post('/my-account/password', { password: `${next} one` }, { verification: one }),
      elsewhere.post('/my-account/password', { password: `${next} other` }, { verification: other }),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 401])
    expect(await changesOf(ada)).toHaveLength(1)
  })
})

describe('addresses', () => {
  test('a new one needs a code sent there and a verification besides; the old one is told', async () => {
    const email = `new-${ada.id}@example.test`
    const proof = await prove('email', email.toUpperCase().replace('EXAMPLE.TEST', 'example.test')).catch(
      () => undefined,
    )
    expect(proof).toBeUndefined()
    const newIdentifierVerificationRecordId = await prove('email', email)
    const body = { email, newIdentifierVerificationRecordId }
    expect(await shop.post('/my-account/primary-email', body)).toMatchObject(denied)
    const verification = await shop.verify()
    const other = { ...body, email: `else-${ada.id}@example.test` }
    expect(await shop.post('/my-account/primary-email', other, { verification })).toMatchObject({ status: 404 })
    expect((await shop.post('/my-account/primary-email', body, { verification })).status).toBe(204)
    expect((await shop.get('/my-account')).body.primaryEmail).toBe(email)
    expect(await messagesOf(ada.email)).toEqual(['AddressChanged'])
    expect(await changesOf(ada)).toMatchObject([{ data: { primaryEmail: email } }])
    // It is used up.
    expect(await shop.post('/my-account/primary-email', body, { verification })).toMatchObject({
      status: 404,
      body: { code: 'verification_record.not_found' },
    })
  })

  test('a verification of the address that was begun with another token does not do', async () => {
    const email = `new-${ada.id}@example.test`
    const newIdentifierVerificationRecordId = await prove('email', email)
    const elsewhere = await account.signIn(ada)
    const answer = await elsewhere.post(
      '/my-account/primary-email',
      { email, newIdentifierVerificationRecordId },
      { verification: await elsewhere.verify() },
    )
    expect(answer).toMatchObject({ status: 404, body: { code: 'verification_record.not_found' } })
  })

  test('one that is somebody else’s is refused, in any case, and so is a number in another spelling', async () => {
    const eve = await account.createPerson()
    const verification = await shop.verify()
    const { issuer } = account.experience
    await issuer.sql('UPDATE users SET primary_email = $2 WHERE id = $1', [eve.id, eve.email.toUpperCase()])
    const proof = await prove('email', eve.email)
    expect(
      await shop.post(
        '/my-account/primary-email',
        { email: eve.email, newIdentifierVerificationRecordId: proof },
        { verification },
      ),
    ).toMatchObject({ status: 422, body: { code: 'user.email_already_in_use' } })
    const number = await prove('phone', `+${eve.phone}`)
    const phone = `+${eve.phone.slice(0, 2)} (0) ${eve.phone.slice(2)}`
    expect(
      await shop.post(
        '/my-account/primary-phone',
        { phone, newIdentifierVerificationRecordId: number },
        { verification },
      ),
    ).toMatchObject({ status: 422, body: { code: 'user.phone_already_in_use' } })
  })

  test('one is removed with a verification, but not the last way in', async () => {
    expect(await shop.delete('/my-account/primary-phone')).toMatchObject(denied)
    const verification = await shop.verify()
    expect((await shop.delete('/my-account/primary-phone', { verification })).status).toBe(204)
    expect((await shop.delete('/my-account/primary-phone', { verification })).status).toBe(204)
    expect(await changesOf(ada)).toHaveLength(1)
    expect((await shop.delete('/my-account/primary-email', { verification })).status).toBe(204)
    expect(await shop.patch('/my-account', { username: null }, { verification })).toMatchObject({
      status: 422,
      body: { code: 'user.last_sign_in_method_required' },
    })
    expect((await shop.get('/my-account')).body).toMatchObject({ username: ada.username, primaryEmail: null })
  })
})

describe('what the settings let people do', () => {
  const set = (body: object) => account.experience.issuer.api('PATCH', '/account-center', body)
  const all = ['name', 'avatar', 'profile', 'email', 'phone', 'password', 'username', 'social', 'customData', 'mfa']
    .concat(['passkey', 'session'])
    .map((name) => [name, 'Edit'])

  test('everything at first; a field that is off is not shown, and one that is to be read is not changed', async () => {
    const { issuer } = account.experience
    expect(await issuer.api('GET', '/account-center')).toMatchObject({
      status: 200,
      body: { enabled: true, fields: Object.fromEntries(all) },
    })
    const fields = { name: 'ReadOnly', email: 'Off', username: 'ReadOnly', password: 'Off', mfa: 'Off' }
    expect((await set({ fields })).body.fields).toEqual({ ...Object.fromEntries(all), ...fields })
    try {
      const { body } = await shop.get('/my-account')
      expect(body).toMatchObject({ username: ada.username, primaryPhone: ada.phone })
      for (const member of ['primaryEmail', 'hasPassword']) expect(body).not.toHaveProperty(member)
      const verification = await shop.verify()
      for (const answer of [
        await shop.patch('/my-account', { name: 'Ada' }),
        await shop.patch('/my-account', { username: freshName() }, { verification }),
        await shop.post('/my-account/password', { password: 'correct horse battery 7' }, { verification }),
        await shop.delete('/my-account/primary-email', { verification }),
        await shop.post('/my-account/mfa-verifications/totp-secret/generate'),
      ])
        expect(answer).toMatchObject(notEditable)
      // Passkeys are a field of their own.
      expect((await shop.get('/my-account/mfa-verifications')).status).toBe(200)
      expect(await changesOf(ada)).toEqual([])
    } finally {
      await set({ fields: Object.fromEntries(all) })
    }
  })

  test('nothing at all', async () => {
    await set({ enabled: false })
    try {
      const disabled = { status: 403, body: { code: 'account_center.not_enabled' } }
      expect(await shop.get('/my-account')).toMatchObject(disabled)
      expect(await shop.patch('/my-account', { name: 'Ada' })).toMatchObject(disabled)
    } finally {
      await set({ enabled: true })
    }
  })

  test('two administrators who change different fields at once both have their way', async () => {
    await Promise.all([set({ fields: { name: 'ReadOnly' } }), set({ fields: { avatar: 'ReadOnly' } })])
    const { body } = await account.experience.issuer.api('GET', '/account-center')
    expect(body.fields).toMatchObject({ name: 'ReadOnly', avatar: 'ReadOnly', profile: 'Edit' })
    expect(await set({ fields: { name: 'Sometimes' } })).toMatchObject({ status: 400 })
    await set({ fields: Object.fromEntries(all) })
  })
})
