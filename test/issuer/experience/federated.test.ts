import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ExperiencePages } from '../../support/experience.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../../support/federated.ts'

/** Identity providers, for pages of one's own: they get the answer of the provider, and bring it. */

let federated: TestFederatedSignIn
let count = 0
const own = () => `${federated.issuer.baseUrl}/own-page`
beforeAll(async () => {
  federated = await startFederatedSignIn({ signUp: { identifiers: [], password: false, verify: false } })
})
afterAll(() => federated.close())
beforeEach(() => {
  federated.clock.now = Date.now()
  federated.provider.be()
  count++
  federated.provider.person = {
    ...{ sub: `subject-${count}`, email: `ada${count}@example.com`, email_verified: true, name: 'Ada' },
  }
})

type Room = 'social' | 'sso'
const begin = (pages: ExperiencePages, { room = 'social' as Room, id = federated.social, redirectUri = own() } = {}) =>
  pages.post(`/verification/${room}/${id}/authorization-uri`, { state: 'of the page', redirectUri })
/** The parameters with which the browser comes back to the page. */
const answerTo = async (authorizationUri: string) =>
  Object.fromEntries((await federated.provider.signIn(authorizationUri)).searchParams)
const verify = async (pages: ExperiencePages, { room = 'social' as Room, id = federated.social } = {}) => {
  const { body } = await begin(pages, { room, id })
  const connectorData = { ...(await answerTo(body.authorizationUri)), redirectUri: own() }
  return pages.post(`/verification/${room}/${id}/verify`, { connectorData, verificationId: body.verificationId })
}
const identify = (pages: ExperiencePages, verificationId: string, more = {}) =>
  pages.post('/identification', { verificationId, ...more })

test('somebody new is told so, registers with the same verification, and comes back as the same user', async () => {
  const pages = await federated.pages()
  await pages.put('', { interactionEvent: 'SignIn' })
  const { status, body } = await verify(pages)
  expect(status).toBe(200)
  expect(await identify(pages, body.verificationId)).toMatchObject({
    ...{ status: 404, body: { code: 'user.identity_not_exist' } },
  })
  expect((await pages.put('/interaction-event', { interactionEvent: 'Register' })).status).toBe(204)
  expect((await identify(pages, body.verificationId)).status).toBe(201)
  expect(await pages.finish()).toHaveProperty('code')
  expect((await federated.events('User.Created')).at(-1)).toMatchObject({
    data: { primaryEmail: `ada${count}@example.com` },
  })

  const again = await federated.pages()
  await again.put('', { interactionEvent: 'SignIn' })
  const known = await verify(again)
  expect((await identify(again, known.body.verificationId)).status).toBe(204)
  const { body: interaction } = await again.get('/interaction')
  expect(interaction.verificationRecords).toMatchObject([{ type: 'Social', verified: true }])
  expect(await again.finish()).toHaveProperty('code')
})

test('an account with the address is named, linked by no flag, and linked once it has been proven', async () => {
  const person = await federated.personWith(`ada${count}@example.com`)
  const pages = await federated.pages()
  await pages.put('', { interactionEvent: 'SignIn' })
  const { body } = await verify(pages)
  for (const more of [{}, { linkSocialIdentity: true }]) {
    expect(await identify(pages, body.verificationId, more)).toMatchObject({
      status: 404,
      body: { code: 'user.identity_not_exist', data: { relatedUser: { type: 'email', value: person.email } } },
    })
  }
  const password = await pages.post('/verification/password', {
    ...{ identifier: { type: 'username', value: person.username }, password: person.password },
  })
  expect((await identify(pages, password.body.verificationId)).status).toBe(204)
  expect((await pages.post('/profile', { type: 'social', verificationId: body.verificationId })).status).toBe(204)
  expect(await federated.identitiesOf(person.id)).toEqual([])
  expect(await pages.finish()).toHaveProperty('code')
  expect(await federated.identitiesOf(person.id)).toEqual([{ target: 'acme', subject: `subject-${count}` }])
})

test('T 107: whoever has signed in cannot add the identity of somebody else', async () => {
  const owner = await federated.personWith(`owner${count}@example.com`)
  await federated.issuer.api('PUT', `/users/${owner.id}/identities/acme`, { userId: `subject-${count}` })
  const other = await federated.createPerson()
  const pages = await federated.pages()
  await pages.put('', { interactionEvent: 'SignIn' })
  const password = await pages.post('/verification/password', {
    ...{ identifier: { type: 'username', value: other.username }, password: other.password },
  })
  await identify(pages, password.body.verificationId)
  const { body } = await verify(pages)
  expect(await pages.post('/profile', { type: 'social', verificationId: body.verificationId })).toMatchObject({
    ...{ status: 422, body: { code: 'user.identity_already_in_use' } },
  })
  expect(await pages.post('/submit')).toMatchObject({ status: 422, body: { code: 'user.identity_already_in_use' } })
  expect(await federated.identitiesOf(other.id)).toEqual([])
})

test('whoever has signed in adds an identity of their own, which is one event', async () => {
  const person = await federated.createPerson()
  const pages = await federated.pages()
  await pages.put('', { interactionEvent: 'SignIn' })
  const password = await pages.post('/verification/password', {
    ...{ identifier: { type: 'username', value: person.username }, password: person.password },
  })
  await identify(pages, password.body.verificationId)
  const { body } = await verify(pages)
  expect((await pages.post('/profile', { type: 'social', verificationId: body.verificationId })).status).toBe(204)
  expect(await pages.finish()).toHaveProperty('code')
  expect(await federated.identitiesOf(person.id)).toHaveLength(1)
  const told = await federated.messagesTo(person.email)
  expect(told.filter(({ type }) => type === 'IdentityLinked')).toMatchObject([
    { text: expect.stringContaining('An account at Acme was linked to your account.') },
  ])
})

test('what a provider told makes nobody and is linked to nobody once the connector leads elsewhere', async () => {
  const leadElsewhere = (verificationId: string) =>
    federated.issuer.sql(
      `UPDATE proofs SET data = jsonb_set(data, '{federated,origin}', '"elsewhere"') WHERE id = $1`,
      [verificationId],
    )
  const before = (await federated.users()).length
  const pages = await federated.pages()
  await pages.put('', { interactionEvent: 'Register' })
  const { body } = await verify(pages)
  await leadElsewhere(body.verificationId)
  await identify(pages, body.verificationId)
  expect((await pages.post('/submit')).body.code).toBe('user.identity_already_in_use')
  expect(await federated.users()).toHaveLength(before)
})

describe('an enterprise', () => {
  const employee = () => {
    const email = `emp${count}@corp.example`
    federated.provider.person = { sub: `employee-${count}`, email, email_verified: true }
    return email
  }

  test('is found by the domain of an address, which tells nothing of the person', async () => {
    const pages = await federated.pages()
    const person = await federated.personWith(employee())
    for (const email of [person.email, 'nobody@corp.example', 'NOBODY@CORP.EXAMPLE']) {
      const { body } = await pages.get(`/sso-connectors?email=${encodeURIComponent(email)}`)
      expect(body).toEqual({ connectorIds: [federated.enterprise] })
    }
    const { body } = await pages.get('/sso-connectors?email=somebody%40elsewhere.example')
    expect(body).toEqual({ connectorIds: [] })
    for (const query of ['', '?email=', '?email=x', '?email=a@b.example&email=c@d.example']) {
      expect((await pages.get(`/sso-connectors${query}`)).status, query).toBe(400)
    }
  })

  test('its people are signed in by nothing else that their address begins', async () => {
    const person = await federated.personWith(employee())
    const pages = await federated.pages()
    await pages.put('', { interactionEvent: 'SignIn' })
    const password = await pages.post('/verification/password', {
      ...{ identifier: { type: 'email', value: person.email }, password: person.password },
    })
    expect(await identify(pages, password.body.verificationId)).toMatchObject({
      status: 422,
      body: { code: 'session.sso_enabled', data: { ssoConnectors: [{ id: federated.enterprise }] } },
    })
    expect((await pages.post('/submit')).status).toBe(404)
    const { body } = await verify(pages, { room: 'sso', id: federated.enterprise })
    expect((await identify(pages, body.verificationId)).status).toBe(204)
    const { body: interaction } = await pages.get('/interaction')
    expect(interaction.verificationRecords).toMatchObject([{ type: 'EnterpriseSso' }])
    expect(await pages.finish()).toHaveProperty('code')
    expect(await federated.identitiesOf(person.id)).toHaveLength(1)
  })

  test('its people register without anything else', async () => {
    employee()
    const pages = await federated.pages()
    await pages.put('', { interactionEvent: 'SignIn' })
    const { body } = await verify(pages, { room: 'sso', id: federated.enterprise })
    expect((await identify(pages, body.verificationId)).body.code).toBe('user.sso_identity_not_exist')
    await pages.put('/interaction-event', { interactionEvent: 'Register' })
    expect((await identify(pages, body.verificationId)).status).toBe(201)
    expect(await pages.finish()).toHaveProperty('code')
  })
})

describe('what is not the page’s own', () => {
  test('an answer is sent to pages that may sign people in, and nowhere else', async () => {
    const pages = await federated.pages()
    for (const redirectUri of [
      'https://evil.example/',
      `${own()}#part`,
      own().replace('://', '://me@'),
      'javascript:alert(1)',
    ]) {
      expect([redirectUri, (await begin(pages, { redirectUri })).status]).toEqual([redirectUri, 400])
    }
    expect((await begin(pages, { id: 'unknown' })).status).toBe(404)
  })

  test('the verification of another browser, another connector, a second time, or with another state is not found', async () => {
    const pages = await federated.pages()
    await pages.put('', { interactionEvent: 'SignIn' })
    const { body } = await begin(pages)
    const connectorData = await answerTo(body.authorizationUri)
    const answer = { connectorData, verificationId: body.verificationId }
    const path = `/verification/social/${federated.social}/verify`
    const notFound = { status: 404, body: { code: 'session.connector_session_not_found' } }
    const stranger = await federated.pages()
    expect(await stranger.post(path, answer)).toMatchObject(notFound)
    expect(await pages.post(path.replace(federated.social, federated.enterprise), answer)).toMatchObject(notFound)
    const forged = { ...answer, connectorData: { ...connectorData, state: 'of another page' } }
    expect(await pages.post(path, forged)).toMatchObject(notFound)
    expect((await pages.post(path, answer)).status).toBe(200)
    expect(await pages.post(path, answer)).toMatchObject(notFound)
  })

  test('a lie of the provider proves nothing, and its error is told as one', async () => {
    const pages = await federated.pages()
    await pages.put('', { interactionEvent: 'SignIn' })
    const codes = { wrong_nonce: 400, mix_up: 400, error_with_script: 422, broken: 502 } as const
    for (const [hostility, status] of Object.entries(codes)) {
      federated.provider.be(hostility as keyof typeof codes)
      const answer = await verify(pages)
      expect([hostility, answer.status]).toEqual([hostility, status])
      expect(JSON.stringify(answer.body)).not.toContain('<script>')
    }
  })

  test('nothing of it resets a password', async () => {
    const pages = await federated.pages()
    await pages.put('', { interactionEvent: 'ForgotPassword' })
    expect(await begin(pages)).toMatchObject({ status: 400, body: { code: 'session.invalid_interaction_type' } })
  })
})
