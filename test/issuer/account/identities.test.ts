import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { noMessages } from '../../../deliveries/messages/settings.ts'
import { createIdentityProviderStore } from '../../../issuer/connectors/providers/identity-provider-store.ts'
import { newId } from '../../../platform/ids.ts'
import { type SignedInApplication, startAccount, type TestAccount } from '../../support/account.ts'
import type { ExperiencePerson } from '../../support/experience.ts'
import { type IdentityProvider, startIdentityProvider } from '../../support/identity-provider.ts'

const redirectUri = 'https://shop.example.test/linked'

let account: TestAccount
let provider: IdentityProvider
let connectorId: string
let enterpriseId: string
let ada: ExperiencePerson
let shop: SignedInApplication

beforeAll(async () => {
  account = await startAccount({
    config: { messages: { ...noMessages, outbox: '/dev/null', allowedNetworks: ['127.0.0.0/8'] } },
    settings: { socialSignInConnectorTargets: ['acme'], singleSignOnEnabled: true },
  })
  provider = await startIdentityProvider()
  const { envelope, issuer } = account.experience
  const store = createIdentityProviderStore(envelope)
  const config = { issuer: provider.issuer, clientId: provider.clientId, clientSecret: provider.clientSecret }
  const row = { config, domains: [], syncProfile: false, look: {} }
  connectorId = newId()
  enterpriseId = newId()
  const { query } = issuer.database
  await store.insert(query, { ...row, id: connectorId, kind: 'social', provider: 'oidc', name: null, target: 'acme' })
  await store.insert(query, { ...row, id: enterpriseId, kind: 'sso', provider: 'OIDC', name: 'Corp', target: null })
})
afterAll(async () => {
  await account.close()
  await provider.close()
})
beforeEach(async () => {
  provider.be()
  provider.person = { sub: `acme-${newId(8)}`, email: 'ada@acme.example', email_verified: true, name: 'Ada' }
  ada = await account.createPerson()
  shop = await account.signIn(ada)
})

/** The person goes to the provider and comes back. Answers the verification, and what came back. */
const comeBack = async (application: SignedInApplication, connector = connectorId) => {
  const begun = await application.post('/verifications/social', {
    connectorId: connector,
    state: 'kept by the page',
    redirectUri,
  })
  expect(begun).toMatchObject({ status: 201 })
  const back = await provider.signIn(begun.body.authorizationUri)
  const connectorData = Object.fromEntries(back.searchParams)
  return { verificationRecordId: begun.body.verificationRecordId as string, connectorData }
}
const confirm = async (application: SignedInApplication, connector = connectorId): Promise<string> => {
  const answer = await comeBack(application, connector)
  const verified = await application.post('/verifications/social/verify', answer)
  expect(verified).toMatchObject({ status: 200, body: { verificationRecordId: answer.verificationRecordId } })
  return answer.verificationRecordId
}
const link = (application: SignedInApplication, id: string, verification: string | undefined, method = 'POST') =>
  application.call(method, '/my-account/identities', { newIdentifierVerificationRecordId: id }, { verification })

test('an identity is linked with a verification, proves who it is from then on, and is unlinked', async () => {
  const id = await confirm(shop)
  expect(await link(shop, id, undefined)).toMatchObject({ status: 401 })
  // It says who somebody is at the provider, not here.
  expect(await link(shop, id, id)).toMatchObject({ status: 401 })
  expect((await link(shop, id, await shop.verify())).status).toBe(204)
  expect((await shop.get('/my-account')).body.identities).toMatchObject({
    acme: { userId: provider.person.sub, details: { email: 'ada@acme.example' } },
  })
  expect((await account.eventsOf(ada.id)).filter(({ type }) => type === 'User.Data.Updated')).toHaveLength(1)
  const again = await confirm(shop)
  expect((await shop.patch('/my-account', { username: `a_${newId(8)}` }, { verification: again })).status).toBe(200)
  expect((await shop.delete('/my-account/identities/acme', { verification: again })).status).toBe(204)
  const told = await account.experience.messagesTo(ada.email)
  expect(told.filter(({ type }) => type.startsWith('Identity'))).toMatchObject([
    { type: 'IdentityLinked', text: expect.stringContaining('An account at acme was linked') },
    { type: 'IdentityUnlinked', text: expect.stringContaining('An account at acme is no longer linked') },
  ])
  // What is no longer theirs proves nothing more.
  expect(await shop.delete('/my-account/identities/acme', { verification: again })).toMatchObject({ status: 401 })
  expect(await shop.delete('/my-account/identities/acme', { verification: await shop.verify() })).toMatchObject({
    status: 404,
    body: { code: 'user.identity_not_exist' },
  })
})

test('T 107: the identity of somebody else is refused, also when both take it at once', async () => {
  const eve = await account.signIn(await account.createPerson())
  const [one, other] = [await confirm(shop), await confirm(eve)]
  const answers = await Promise.all([link(shop, one, await shop.verify()), link(eve, other, await eve.verify())])
  expect(answers.map(({ status }) => status).sort()).toEqual([204, 422])
  const loser = answers[0].status === 422 ? shop : eve
  const later = await confirm(loser)
  expect(await link(loser, later, await loser.verify())).toMatchObject({
    status: 422,
    body: { code: 'user.identity_already_in_use' },
  })
  // Nor does it prove that somebody else is its owner.
  expect(await loser.patch('/my-account', { username: `e_${newId(8)}` }, { verification: later })).toMatchObject({
    status: 401,
  })
})

test('another one at the same provider replaces it only where that is asked for', async () => {
  const verification = await shop.verify()
  await link(shop, await confirm(shop), verification)
  provider.person = { ...provider.person, sub: 'acme-other' }
  const other = await confirm(shop)
  expect(await link(shop, other, verification)).toMatchObject({ status: 422 })
  const again = await confirm(shop)
  expect((await link(shop, again, verification, 'PUT')).status).toBe(204)
  expect((await shop.get('/my-account')).body.identities.acme.userId).toBe('acme-other')
  await shop.delete('/my-account/identities/acme', { verification })
})

test('an answer that is not of this request, or of a hostile provider, proves nothing, and is good once', async () => {
  const invalid = { status: 400, body: { code: 'session.connector_answer_invalid' } }
  const verify = (answer: object, application = shop) => application.post('/verifications/social/verify', answer)
  const state = await comeBack(shop)
  expect(await verify({ ...state, connectorData: { ...state.connectorData, state: 'of another' } })).toMatchObject(
    invalid,
  )
  expect(await verify(state)).toMatchObject({ status: 200 })
  expect(await verify(state)).toMatchObject({ status: 404 })
  provider.be('wrong_nonce')
  expect(await verify(await comeBack(shop))).toMatchObject(invalid)
  provider.be('wrong_issuer')
  expect(await verify(await comeBack(shop))).toMatchObject(invalid)
  provider.be()
  const theirs = await comeBack(shop)
  const eve = await account.signIn(await account.createPerson())
  expect(await verify(theirs, eve)).toMatchObject({ status: 404, body: { code: 'verification_record.not_found' } })
  const unknown = { connectorId: newId(), state: 'x', redirectUri }
  expect(await shop.post('/verifications/social', unknown)).toMatchObject({ status: 404 })
})

test('the last way in is not unlinked', async () => {
  const verification = await shop.verify()
  await link(shop, await confirm(shop), verification)
  const { sql } = account.experience.issuer
  await sql(
    'UPDATE users SET password_digest = NULL, password_algorithm = NULL, primary_email = NULL, primary_phone = NULL WHERE id = $1',
    [ada.id],
  )
  expect(await shop.delete('/my-account/identities/acme', { verification })).toMatchObject({
    status: 422,
    body: { code: 'user.last_sign_in_method_required' },
  })
})

test('an identity at a provider that the pages do not offer is no way in', async () => {
  const verification = await shop.verify()
  const { sql, api } = account.experience.issuer
  await sql(`INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject) VALUES ($1, $2, $3, $4, $5)`, [
    newId(),
    ada.id,
    enterpriseId,
    provider.issuer,
    provider.person.sub,
  ])
  await sql(
    `UPDATE users SET password_digest = NULL, password_algorithm = NULL, primary_phone = NULL,
       identities = '{"gone": {"userId": "1"}}' WHERE id = $1`,
    [ada.id],
  )
  await api('PATCH', '/sign-in-exp', { singleSignOnEnabled: false })
  const removed = await shop.delete('/my-account/primary-email', { verification })
  await api('PATCH', '/sign-in-exp', { singleSignOnEnabled: true })
  expect(removed).toMatchObject({ status: 422, body: { code: 'user.last_sign_in_method_required' } })
})

test('people of an enterprise prove by it who they are; it is not linked here', async () => {
  const id = await confirm(shop, enterpriseId)
  expect(await link(shop, id, await shop.verify())).toMatchObject({ status: 404 })
  await account.experience.issuer.sql(
    `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject) VALUES ($1, $2, $3, $4, $5)`,
    [newId(), ada.id, enterpriseId, provider.issuer, provider.person.sub],
  )
  const verification = await confirm(shop, enterpriseId)
  expect((await shop.patch('/my-account', { username: `c_${newId(8)}` }, { verification })).status).toBe(200)
})

test('what a provider told is linked to nobody once the connector leads elsewhere', async () => {
  const id = await confirm(shop)
  await account.experience.issuer.sql(
    `UPDATE proofs SET data = jsonb_set(data, '{federated,origin}', '"elsewhere"') WHERE id = $1`,
    [id],
  )
  expect(await link(shop, id, await shop.verify())).toMatchObject({
    status: 404,
    body: { code: 'verification_record.not_found' },
  })
  expect((await shop.get('/my-account')).body.identities).toEqual({})
})
