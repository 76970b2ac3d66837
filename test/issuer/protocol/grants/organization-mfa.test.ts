import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { authorize, refresh } from '../../../support/authorizations.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** `isMfaRequired` of an organization: its tokens are for members who have a factor. */

let issuer: TestIssuer
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  client = await issuer.createApplication()
})
afterAll(() => issuer.close())

let userId: string
let organization: string
beforeEach(async () => {
  userId = (await issuer.createUser()).id
  organization = (await issuer.api('POST', '/organizations', { name: 'Acme', isMfaRequired: true })).body.id
  await issuer.api('POST', `/organizations/${organization}/users`, { userIds: [userId] })
})

const message = 'The organization requires multi-factor authentication, and the user has no factor for it.'
const refused = {
  status: 403,
  body: { error: 'access_denied', error_description: message, code: 'oidc.access_denied', message },
}
const give = (type: string) => issuer.api('POST', `/users/${userId}/mfa-verifications`, { type })

const refreshed = async () => {
  const scopes = ['openid', 'offline_access', 'urn:logto:scope:organizations']
  const { redeem } = await authorize(issuer, client, userId, { scopes })
  const { body } = await redeem()
  return () => refresh(issuer, client, body.refresh_token, { organization_id: organization })
}
const exchanged = async () =>
  issuer.exchange(client, await issuer.subjectToken(userId), { organization_id: organization })

test('a member without a factor gets none by refresh token, and one as soon as there is a factor', async () => {
  const ask = await refreshed()
  expect(await ask()).toMatchObject(refused)
  await give('Totp')
  const answer = await ask()
  expect(answer).toMatchObject({ status: 200 })
  expect(await issuer.verify(answer.body.access_token, `urn:logto:organization:${organization}`)).toMatchObject({
    sub: userId,
    organization_id: organization,
  })
})

test('nor by exchange, which a passkey opens too', async () => {
  expect(await exchanged()).toMatchObject(refused)
  await issuer.sql(
    `INSERT INTO passkeys (id, user_id, credential_id, public_key, algorithm, sign_count, is_backup_eligible, is_backed_up)
     VALUES ($1, $2, $3, '', -7, 0, true, true)`,
    [randomBytes(8).toString('hex'), userId, randomBytes(32)],
  )
  expect(await exchanged()).toMatchObject({ status: 200 })
})

test('backup codes alone stand in for nothing, and a factor that is taken away opens nothing', async () => {
  await give('BackupCode')
  expect(await exchanged()).toMatchObject(refused)
  await give('Totp')
  expect(await exchanged()).toMatchObject({ status: 200 })
  const { body: factors } = await issuer.api('GET', `/users/${userId}/mfa-verifications`)
  const { id } = factors.find(({ type }: { type: string }) => type === 'Totp')
  await issuer.api('DELETE', `/users/${userId}/mfa-verifications/${id}`)
  expect(await exchanged()).toMatchObject(refused)
})

test('whoever is no member hears that, and not what the organization asks for', async () => {
  await issuer.api('DELETE', `/organizations/${organization}/users/${userId}`)
  const text = 'The user is not a member of the organization.'
  expect(await exchanged()).toMatchObject({ status: 403, body: { error_description: text } })
})

test('an organization that does not ask for it, and applications, are as before', async () => {
  await issuer.api('PATCH', `/organizations/${organization}`, { isMfaRequired: false })
  expect(await exchanged()).toMatchObject({ status: 200 })
  await issuer.api('PATCH', `/organizations/${organization}`, { isMfaRequired: true })
  const machine = await issuer.createApplication({ type: 'MachineToMachine' })
  await issuer.api('POST', `/organizations/${organization}/applications`, { applicationIds: [machine.id] })
  const asked = { grant_type: 'client_credentials', organization_id: organization }
  expect(await issuer.token(machine, asked)).toMatchObject({ status: 200 })
})
