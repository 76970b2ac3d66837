import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPostgresBus } from '../../../events/postgres-bus.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import type { Browser } from '../../support/browser.ts'
import { type InteractionFlow, startInteractionFlow } from '../../support/interaction-flow.ts'
import { startTestRelay } from '../../support/relay.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

/** What is told of what people do on the way in: which events, in which order, with what in them. */

let flows: InteractionFlow
let client: { id: string }
beforeAll(async () => {
  flows = await startInteractionFlow()
  client = await flows.flow.createClient()
  await flows.mail.connect()
})
afterAll(() => flows.close())

const typesOf = async (id: string) => (await flows.eventsOf(id)).map(({ event }) => event)
const sinceCreated = async (id: string) => (await flows.eventsOf(id)).slice(1)

const register = async (email: string, username: string) => {
  await flows.experience({ signUp: { identifiers: ['username', 'email'], password: true, verify: true } })
  const begun = await flows.begin(client)
  const { staging } = flows.operations
  await staging.begin(await begun.now(), 'Register')
  await flows.code(begun, email, 'register')
  expect(await staging.username(await begun.now(), username, begun.visitor)).toEqual({ outcome: 'staged' })
  expect(await staging.password(await begun.now(), 'the first of many')).toEqual({ outcome: 'staged' })
  const proceeded = await begun.proceed()
  await flows.experience({ signUp: { identifiers: ['username'], password: true, verify: false } })
  expect(proceeded.kind).toBe('redirect')
  const [row] = await flows.issuer.sql<{ id: string }>('SELECT id FROM users WHERE username = $1', [username])
  return { id: row!.id, begun }
}

test('registering: the user, then the registration, and the organization that is joined by the address', async () => {
  const { body: organization } = await flows.issuer.api('POST', '/organizations', { name: 'Acme' })
  const path = `/organizations/${organization.id}/jit/email-domains`
  expect((await flows.issuer.api('POST', path, { emailDomain: 'acme.test' })).status).toBe(201)
  const { id, begun } = await register('new@acme.test', 'newcomer')
  const events = await flows.eventsOf(id)
  expect(events.map(({ event }) => event)).toEqual(['User.Created', 'PostRegister'])
  const circumstances = {
    ...{ interactionEvent: 'Register', sessionId: begun.id, userIp: '203.0.113.9' },
    application: { id: client.id, type: 'Native', name: expect.any(String), description: null },
  }
  expect(events[0]).toMatchObject({ ...circumstances, data: { id, username: 'newcomer' } })
  expect(events[1]).toMatchObject({
    ...circumstances,
    ...{ userId: id, user: { id, username: 'newcomer', primaryEmail: 'new@acme.test' }, data: { id } },
  })
  const joined = (await flows.eventsOf(organization.id)).filter(
    ({ event }) => event === 'Organization.Membership.Updated',
  )
  expect(joined).toMatchObject([{ organizationId: organization.id, addedUserIds: [id] }])
  expect(new Set([...events, ...joined].map(({ correlationId }) => correlationId)).size).toBe(1)
})

test('signing in is one event, and a change of the user only where something was added', async () => {
  const person = await flows.createPerson()
  await flows.signIn(client, person)
  expect((await sinceCreated(person.id)).map(({ event }) => event)).toEqual(['PostSignIn'])

  await flows.experience({ mfa: { factors: ['WebAuthn'], policy: 'PromptAtSignInAndSignUp' } })
  const adding = await flows.begin(client)
  await flows.password(adding, person)
  const about = { name: person.username, displayName: person.username }
  const { proofId, options } = (await flows.operations.passkeys.registration(await adding.now(), about))!
  const authenticator = createAuthenticator({ origin: new URL(flows.issuer.baseUrl).origin })
  const credential = authenticator.create(options as Parameters<typeof authenticator.create>[0])
  const answer = { proofId, credential: credential as never }
  expect(await flows.operations.passkeys.bind(await adding.now(), adding.visitor, answer)).toBe(true)
  await adding.proceed()
  await flows.experience({ mfa: { factors: [], policy: 'NoPrompt' } })
  const [, signedIn, changed, ...others] = await sinceCreated(person.id)
  expect(others).toEqual([])
  expect(signedIn).toMatchObject({ event: 'PostSignIn', interactionEvent: 'SignIn', sessionId: adding.id })
  expect(changed).toMatchObject({ event: 'User.Data.Updated', data: { id: person.id } })
  expect(changed.correlationId).toBe(signedIn.correlationId)
})

test('a reset password is a change of the user, then the reset; sessions end, and nobody signs in by it', async () => {
  const person = await flows.createPerson()
  await flows.signIn(client, person)
  const begun = await flows.begin(client)
  await flows.reset(begun, person.email, 'quite another one')
  const events = (await sinceCreated(person.id)).slice(1)
  expect(events).toMatchObject([
    { event: 'User.Data.Updated', interactionEvent: 'ForgotPassword', data: { id: person.id } },
    {
      ...{ event: 'PostResetPassword', interactionEvent: 'ForgotPassword', sessionId: begun.id, userId: person.id },
      user: { id: person.id, primaryEmail: person.email },
    },
    { event: 'Session.Ended', reason: 'password_changed', endedBy: person.id, sessionId: expect.any(String) },
  ])
  expect(new Set(events.map(({ correlationId }) => correlationId)).size).toBe(1)
})

test('what a third-party application is allowed, and what is taken back, is told; used again it is not', async () => {
  const person = await flows.createPerson()
  const third = await flows.flow.createClient({ type: 'SPA', isThirdParty: true })
  const consentTo = async () => {
    const begun = await flows.begin(third, { parameters: { scope: 'openid', prompt: 'login' } })
    await flows.password(begun, person)
    return begun
  }
  const first = await consentTo()
  const consent = { userId: person.id, isAllowed: true, organizationIds: [] }
  expect((await first.proceed({ consent })).kind).toBe('redirect')
  expect((await (await consentTo()).proceed()).kind).toBe('redirect')
  const [{ id: grant } = { id: '' }] = await flows.issuer.sql<{ id: string }>(
    'SELECT id FROM authorizations WHERE user_id = $1 LIMIT 1',
    [person.id],
  )
  const path = `/users/${person.id}/grants/${grant}`
  expect((await flows.issuer.api('DELETE', path)).status).toBe(204)
  await flows.issuer.api('DELETE', path)
  expect(await sinceCreated(person.id)).toMatchObject([
    { event: 'PostSignIn' },
    {
      ...{ event: 'Consent.Granted', data: null, userId: person.id, applicationId: third.id, scopes: ['openid'] },
      sessionId: first.id,
    },
    { event: 'PostSignIn' },
    { event: 'Consent.Revoked', userId: person.id, applicationId: third.id, revokedBy: flows.issuer.bootstrap.id },
  ])
})

const signOut = async (browser: Browser) => {
  const asked = await browser.get(`${flows.issuer.issuer}/session/end?client_id=${client.id}`)
  const confirm = () => browser.submit(asked, { logout: 'yes' }, { follow: false })
  // Sent twice it is one.
  return Promise.all([confirm(), confirm()])
}
const liveSession = async (id: string) => {
  const rows = await flows.issuer.sql<{ id: string }>(
    'SELECT id FROM sessions WHERE user_id = $1 AND ended_at IS NULL',
    [id],
  )
  expect(rows).toHaveLength(1)
  return rows[0]!.id
}

test('signing out is told once, without anything of a sign-in', async () => {
  const person = await flows.createPerson()
  const browser = flows.flow.browser()
  await flows.flow.signIn(browser, client, person)
  const sessionId = await liveSession(person.id)
  await signOut(browser)
  const [signedIn, ...ended] = await sinceCreated(person.id)
  expect(signedIn).toMatchObject({ event: 'PostSignIn' })
  expect(ended).toMatchObject([
    {
      ...{ event: 'Session.Ended', data: null, userId: person.id, sessionId, reason: 'logout', endedBy: person.id },
      ...{ method: 'POST', path: '/oidc/session/end' },
    },
  ])
  expect(ended[0]).not.toHaveProperty('interactionEvent')
})

test('whoever signs in where somebody else was ends that session, which is told of its owner with the sign-in', async () => {
  const [first, second] = [await flows.createPerson(), await flows.createPerson()]
  const browser = flows.flow.browser()
  await flows.flow.signIn(browser, client, first)
  const sessionId = await liveSession(first.id)
  await flows.flow.signIn(browser, client, second, { prompt: 'login' })
  // The same person again goes on in a session that is renewed: nothing ends.
  await flows.flow.signIn(browser, client, second, { prompt: 'login' })
  const signedIn = await sinceCreated(second.id)
  expect(signedIn.map(({ event }) => event)).toEqual(['PostSignIn', 'PostSignIn'])
  expect((await sinceCreated(first.id)).slice(1)).toMatchObject([
    {
      ...{ event: 'Session.Ended', data: null, userId: first.id, sessionId, reason: 'signed_in_again' },
      ...{ endedBy: second.id, interactionEvent: 'SignIn', correlationId: signedIn[0].correlationId },
    },
  ])
})

test('an administrator who ends a session and a suspension are told, each once', async () => {
  const person = await flows.createPerson()
  const signIn = async () => {
    await flows.signIn(client, person)
    const [row] = await flows.issuer.sql<{ id: string }>(
      'SELECT id FROM sessions WHERE user_id = $1 AND ended_at IS NULL ORDER BY created_at DESC LIMIT 1',
      [person.id],
    )
    return row!.id
  }
  const [first, second] = [await signIn(), await signIn()]
  expect((await flows.issuer.api('DELETE', `/users/${person.id}/sessions/${first}`)).status).toBe(204)
  expect((await flows.issuer.api('DELETE', `/users/${person.id}/sessions/${first}`)).status).toBe(404)
  await flows.issuer.api('PATCH', `/users/${person.id}/is-suspended`, { isSuspended: true })
  const events = await flows.eventsOf(person.id)
  expect(events.filter(({ event }) => event === 'Session.Ended')).toMatchObject([
    { sessionId: first, reason: 'ended_by_administrator', endedBy: flows.issuer.bootstrap.id },
    { sessionId: second, reason: 'user_suspended' },
  ])
})

test('a refresh token that is used again is told once', async () => {
  const { flow, issuer } = flows
  const person = await flows.createPerson()
  const code = await flow.signIn(flow.browser(), client, person)
  const first = (await flow.redeem(client, code)).body.refresh_token as string
  expect((await flow.refresh(client, first)).status).toBe(200)
  // The leeway for parallel requests is over.
  await issuer.sql(`UPDATE refresh_tokens SET rotated_at = now() - interval '1 minute' WHERE rotated_at IS NOT NULL`)
  const again = await Promise.all([flow.refresh(client, first), flow.refresh(client, first)])
  expect(again.map(({ status }) => status)).toEqual([400, 400])
  expect((await sinceCreated(person.id)).slice(1)).toMatchObject([
    {
      ...{ event: 'RefreshToken.Reused', data: null, userId: person.id, applicationId: client.id },
      ...{ authorizationId: expect.stringMatching(/^ps_/), path: '/oidc/token', status: 400 },
    },
  ])
})

test('a receiver of webhooks gets a registration, a sign-in and a reset in the order in which they happened', async () => {
  const receiver = await startWebhookReceiver()
  const { issuer, envelope } = flows
  const wanted = ['User.*', 'PostRegister', 'PostSignIn', 'PostResetPassword', 'Session.Ended']
  const hook = await issuer.api('POST', '/hooks', { name: 'all', events: wanted, config: { url: receiver.url } })
  expect(hook.status).toBe(201)
  const bus = createPostgresBus({ database: issuer.database, logger: silentLogger })
  const relay = await startTestRelay({ database: issuer.database, bus, envelope })
  try {
    const { id } = await register('whole@example.test', 'whole')
    const whole = { id, username: 'whole', password: 'quite another one' }
    const begun = await flows.begin(client)
    await flows.reset(begun, 'whole@example.test', whole.password)
    await flows.password(begun, whole)
    expect((await begun.proceed()).kind).toBe('redirect')
    const browser = flows.flow.browser()
    const other = await flows.createPerson()
    await flows.flow.signIn(browser, client, whole)
    await flows.flow.signIn(browser, client, other, { prompt: 'login' })
    await flows.flow.signIn(browser, client, whole, { prompt: 'login' })
    await signOut(browser)
    const expected = await typesOf(id)
    expect(expected).toEqual([
      ...['User.Created', 'PostRegister', 'User.Data.Updated', 'PostResetPassword', 'Session.Ended', 'PostSignIn'],
      ...['PostSignIn', 'Session.Ended', 'PostSignIn', 'Session.Ended'],
    ])
    const ofPerson = () => receiver.received.filter(({ body }) => (body.userId ?? body.data.id) === id)
    await expect.poll(() => ofPerson().length, { timeout: 20_000 }).toBeGreaterThanOrEqual(expected.length)
    expect(ofPerson().map(({ body }) => body.event)).toEqual(expected)
    expect(ofPerson().map(({ body }) => body.version)).toEqual(expected.map((_, index) => index + 1))
    const ends = ofPerson().filter(({ body }) => body.event === 'Session.Ended')
    expect(ends.map(({ body }) => [body.reason, body.endedBy, body.userId, body.data])).toEqual([
      ['password_changed', id, id, null],
      ['signed_in_again', other.id, id, null],
      ['logout', id, id, null],
    ])
    // Each says which: the sessions of this person, and no cookie of them.
    const sessions = await issuer.sql<{ id: string }>('SELECT id FROM sessions WHERE user_id = $1', [id])
    for (const { body } of ends) expect(sessions.map((session) => session.id)).toContain(body.sessionId)
    expect(JSON.stringify(ends)).not.toMatch(/surrogate_|digest/)
  } finally {
    await relay.close()
    await bus.close()
    await receiver.close()
  }
})
