import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../../issuer/tokens/token-digest.ts'
import { accessTokenType, startTestIssuer, type TestIssuer, tokenExchange } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

let issuer: TestIssuer
let woken = 0
let orders: string
let client: TestApplication
let customer: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ events: { wake: () => void woken++ } })
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders'], ttl: 1200 })
  client = await issuer.createApplication()
  customer = await issuer.createUser()
  await issuer.grantUser(customer.id, orders, ['read:orders'])
})
afterAll(() => issuer.close())

const refusal = (reason: string) => ({
  status: 400,
  body: {
    error: 'invalid_grant',
    error_description: expect.any(String),
    code: 'oidc.invalid_grant',
    message: expect.any(String),
    reason,
  },
})

const wanted = () => ({ resource: orders, scope: 'read:orders' })

test('a backend gets a subject token and a client exchanges it for an access token of the user', async () => {
  const minted = await issuer.api('POST', '/subject-tokens', {
    userId: customer.id,
    context: { ticketId: 'T-1', reason: 'wrong invoice', supportEngineerId: 'agent-7' },
  })
  expect(minted.status).toBe(201)
  expect(minted.body).toEqual({ subjectToken: expect.stringMatching(/^sub_[\w-]{43}$/), expiresIn: 600 })

  const answer = await issuer.exchange(client, minted.body.subjectToken, wanted())
  expect(answer.status).toBe(200)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.body).toEqual({
    access_token: expect.any(String),
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: 1200,
    scope: 'read:orders',
  })

  const claims = await issuer.verify(answer.body.access_token, orders)
  expect(claims).toEqual({
    iss: issuer.issuer,
    sub: customer.id,
    aud: orders,
    client_id: client.id,
    scope: 'read:orders',
    jti: expect.any(String),
    sid: expect.any(String),
    iat: expect.any(Number),
    exp: claims.iat! + 1200,
  })
  const [session] = await issuer.sql('SELECT * FROM impersonation_sessions WHERE id = $1', [claims.sid])
  expect(session).toMatchObject({
    subject_id: customer.id,
    actor_id: null,
    actor_via: null,
    client_id: client.id,
    creator_id: issuer.bootstrap.id,
    resource: orders,
    scopes: ['read:orders'],
    context: { ticketId: 'T-1', reason: 'wrong invoice', supportEngineerId: 'agent-7' },
    token_id: claims.jti,
    expires_at: new Date(claims.exp! * 1000),
    ended_at: null,
  })
})

test('a standard client speaks this exchange', async () => {
  const server = {
    issuer: issuer.issuer,
    token_endpoint: `${issuer.url}/oidc/token`,
    jwks_uri: `${issuer.url}/oidc/jwks`,
  }
  const insecure = { [oauth.allowInsecureRequests]: true }
  const response = await oauth.genericTokenEndpointRequest(
    server,
    { client_id: client.id },
    oauth.ClientSecretPost(client.secret!),
    tokenExchange,
    {
      subject_token: await issuer.subjectToken(customer.id),
      subject_token_type: accessTokenType,
      ...wanted(),
    },
    insecure,
  )
  const tokens = await oauth.processGenericTokenEndpointResponse(server, { client_id: client.id }, response)
  const call = new Request(orders, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  expect(await oauth.validateJwtAccessToken(server, call, orders, insecure)).toMatchObject({ sub: customer.id })
})

test.each(['Native', 'SPA', 'MachineToMachine', 'Protected'] as const)(
  'a %s application may exchange',
  async (type) => {
    const application = await issuer.createApplication({ type })
    const answer = await issuer.exchange(application, await issuer.subjectToken(customer.id), wanted())
    expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders' } })
  },
)

test('what the user’s roles hold decides, exactly as at this moment', async () => {
  const user = await issuer.createUser()
  const scopeOf = async () => {
    const form = { resource: orders, scope: 'read:orders write:orders openid profile' }
    return (await issuer.exchange(client, await issuer.subjectToken(user.id), form)).body.scope
  }
  expect(await scopeOf()).toBe('openid')
  await issuer.grantUser(user.id, orders, ['write:orders'])
  expect(await scopeOf()).toBe('write:orders openid')
})

test('the default resource is the audience when none is asked for, unless only userinfo is wanted', async () => {
  const fallback = await issuer.createResource({ scopes: ['read:all'], isDefault: true })
  await issuer.grantUser(customer.id, fallback, ['read:all'])
  const exchange = async (scope?: string) => issuer.exchange(client, await issuer.subjectToken(customer.id), { scope })
  const answer = await exchange('read:all')
  expect(await issuer.verify(answer.body.access_token, fallback)).toMatchObject({ scope: 'read:all' })
  expect((await issuer.verify((await exchange()).body.access_token, fallback)).scope).toBe('')
  expect((await exchange('openid')).body.access_token).toMatch(/^[\w-]{43}$/)
  await issuer.sql('DELETE FROM resources WHERE indicator = $1', [fallback])
})

test('without a resource the token is opaque, and the database knows its digest only', async () => {
  const answer = await issuer.exchange(client, await issuer.subjectToken(customer.id), {
    scope: 'openid email offline_access',
  })
  expect(answer.body).toEqual({
    access_token: expect.stringMatching(/^[\w-]{43}$/),
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: 3600,
    scope: 'openid email',
  })
  const rows = await issuer.sql('SELECT user_id, client_id, scope FROM opaque_tokens WHERE digest = $1', [
    tokenDigest('opaque-token', answer.body.access_token),
  ])
  expect(rows).toEqual([{ user_id: customer.id, client_id: client.id, scope: 'openid email' }])
  expect(await issuer.exchange(client, await issuer.subjectToken(customer.id), { scope: 'read:orders' })).toMatchObject(
    {
      status: 400,
      body: { error: 'invalid_scope' },
    },
  )
})

describe('subject tokens that cannot be used are invalid_grant with a reason:', () => {
  test('used before', async () => {
    const token = await issuer.subjectToken(customer.id)
    expect((await issuer.exchange(client, token, wanted())).status).toBe(200)
    expect(await issuer.exchange(client, token, wanted())).toMatchObject(refusal('subject_token_consumed'))
  })

  test('expired a second ago, by the clock of the database', async () => {
    const token = await issuer.subjectToken(customer.id)
    await issuer.sql(`UPDATE subject_tokens SET expires_at = now() - interval '1 second' WHERE digest = $1`, [
      tokenDigest('subject-token', token),
    ])
    expect(await issuer.exchange(client, token, wanted())).toMatchObject(refusal('subject_token_expired'))
  })

  // CVE-2026-27840: truncated tokens stayed valid.
  test('cut, extended, in another case, never issued', async () => {
    const token = await issuer.subjectToken(customer.id)
    const swapped = token.replace(/[a-zA-Z](?=[^a-zA-Z]*$)/, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    )
    for (const wrong of [token.slice(0, -1), `${token}A`, swapped, `sub_${'A'.repeat(43)}`, 'sub_']) {
      expect(await issuer.exchange(client, wrong, wanted())).toMatchObject(refusal('subject_token_unknown'))
    }
    expect((await issuer.exchange(client, token, wanted())).status).toBe(200)
  })

  test('of a user who was suspended or deleted meanwhile', async () => {
    const user = await issuer.createUser()
    const [first, second] = [await issuer.subjectToken(user.id), await issuer.subjectToken(user.id)]
    await issuer.suspend(user.id)
    expect(await issuer.exchange(client, first, wanted())).toMatchObject(refusal('subject_suspended'))
    await issuer.suspend(user.id, false)
    expect((await issuer.exchange(client, first, wanted())).status).toBe(200)
    await issuer.sql('DELETE FROM users WHERE id = $1', [user.id])
    expect(await issuer.exchange(client, second, wanted())).toMatchObject(refusal('subject_token_unknown'))
  })

  test('another kind of token', async () => {
    const machine = await issuer.clientToken(issuer.bootstrap, issuer.managementResource, 'all')
    expect(await issuer.exchange(client, machine, wanted())).toMatchObject(refusal('subject_token_type'))
    expect(await issuer.exchange(client, client.secret!, wanted())).toMatchObject(refusal('subject_token_unknown'))
    expect(await issuer.exchange(client, 'a.b.c', wanted())).toMatchObject(refusal('subject_token_unknown'))
    expect(await issuer.exchange(client, 'pat_abc', wanted())).toMatchObject(refusal('subject_token_unknown'))
  })

  // Each kind of stored token has a namespace of its own (CVE-2026-4282).
  test('an opaque token under the name of a subject token, and the reverse', async () => {
    const impersonation = 'urn:logto:token-type:impersonation_token'
    const opaque = await issuer.actorToken(client, customer.id)
    expect(await issuer.exchange(client, opaque, { ...wanted(), subject_token_type: impersonation })).toMatchObject(
      refusal('subject_token_unknown'),
    )
    await issuer.sql('UPDATE opaque_tokens SET digest = $2 WHERE digest = $1', [
      tokenDigest('opaque-token', opaque),
      tokenDigest('opaque-token', 'sub_like'),
    ])
    expect(await issuer.exchange(client, 'sub_like', wanted())).toMatchObject(refusal('subject_token_unknown'))
  })
})

test('the older name of the token type still works', async () => {
  const subject_token_type = 'urn:logto:token-type:impersonation_token'
  const answer = await issuer.exchange(client, await issuer.subjectToken(customer.id), {
    ...wanted(),
    subject_token_type,
  })
  expect(answer.status).toBe(200)
})

describe('a request that is refused leaves the subject token as it was:', () => {
  const cases: Record<string, [form: object, as?: (right: TestApplication) => TestApplication]> = {
    'wrong secret': [{}, (right) => ({ ...right, secret: 'wrong' })],
    'wrong resource': [{ resource: 'https://api.example.test/unknown' }],
    'unknown scope': [{ scope: 'read' }],
    'bad actor token': [{ actor_token: 'nothing', actor_token_type: accessTokenType }],
    'unsupported subject token type': [{ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }],
  }
  test.each(Object.entries(cases))('%s', async (_, [form, as = (right) => right]) => {
    const token = await issuer.subjectToken(customer.id)
    expect((await issuer.exchange(as(client), token, { ...wanted(), ...form })).status).toBeGreaterThanOrEqual(400)
    expect((await issuer.exchange(client, token, wanted())).status).toBe(200)
  })
})

describe('requests that RFC 8693 does not know are invalid_request:', () => {
  const idToken = 'urn:ietf:params:oauth:token-type:id_token'
  const cases: Record<string, Record<string, string | string[] | undefined>> = {
    'no subject_token': { subject_token: undefined },
    'an empty subject_token': { subject_token: '' },
    'no subject_token_type': { subject_token_type: undefined },
    'a subject_token_type that is not supported': { subject_token_type: idToken },
    'a repeated subject_token': { subject_token: ['sub_a', 'sub_b'] },
    'an actor_token without its type': { actor_token: 'x' },
    'an actor_token_type without a token': { actor_token_type: accessTokenType },
    'an actor_token_type that is not supported': { actor_token: 'x', actor_token_type: idToken },
    'a refresh token wanted': { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
    'an ID token wanted': { requested_token_type: idToken },
    'an audience': { audience: 'https://api.example.test' },
  }
  test.each(Object.entries(cases))('%s', async (_, form) => {
    const answer = await issuer.exchange(client, 'sub_token', form)
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('two resources', async () => {
    const answer = await issuer.exchange(client, 'sub_token', { resource: [orders, 'https://api.example.test/other'] })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })
})

describe('a bound subject token', () => {
  const other = 'https://api.example.test/elsewhere'
  beforeAll(() => issuer.createResource({ indicator: other, scopes: ['read:orders'] }))

  test('serves its client only', async () => {
    const token = await issuer.subjectToken(customer.id, { clientId: client.id })
    const stranger = await issuer.createApplication()
    expect(await issuer.exchange(stranger, token, wanted())).toMatchObject(refusal('subject_token_bound'))
    expect((await issuer.exchange(client, token, wanted())).status).toBe(200)
  })

  test('serves its resource only', async () => {
    const token = await issuer.subjectToken(customer.id, { resource: orders })
    for (const resource of [other, undefined]) {
      const answer = await issuer.exchange(client, token, { resource, scope: 'openid' })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    }
    expect((await issuer.exchange(client, token, wanted())).status).toBe(200)
  })

  test('allows its scopes only', async () => {
    const token = await issuer.subjectToken(customer.id, { scopes: ['read:orders'] })
    const answer = await issuer.exchange(client, token, { resource: orders, scope: 'read:orders write:orders' })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
    expect(await issuer.exchange(client, token, { resource: orders, scope: 'read:orders openid' })).toMatchObject({
      status: 200,
      body: { scope: 'read:orders' },
    })
  })

  test('wants its actor, and no other, and not none', async () => {
    const agent = await issuer.createUser()
    const stranger = await issuer.createUser()
    const token = await issuer.subjectToken(customer.id, { actorId: agent.id })
    const as = async (actor: { id: string }) => ({
      ...wanted(),
      actor_token: await issuer.actorToken(client, actor.id),
      actor_token_type: accessTokenType,
    })
    expect(await issuer.exchange(client, token, wanted())).toMatchObject(refusal('subject_token_bound'))
    expect(await issuer.exchange(client, token, await as(stranger))).toMatchObject(refusal('subject_token_bound'))
    expect((await issuer.exchange(client, token, await as(agent))).status).toBe(200)
  })
})

describe('an access token as subject token', () => {
  /** As a sign-in leaves it: without a session of impersonation. */
  const signedIn = async (owner = client, secondsLeft = 600) => {
    const token = `signed-in-${Math.random().toString(36).slice(2)}`
    await issuer.sql(
      `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
       VALUES ($1, $2, $3, 'openid', now() + make_interval(secs => $4))`,
      [tokenDigest('opaque-token', token), customer.id, owner.id, secondsLeft],
    )
    return token
  }

  test('of a signed-in user can be exchanged again and again, opens no session and is not outlived', async () => {
    const token = await signedIn()
    for (const _ of [1, 2]) {
      const answer = await issuer.exchange(client, token, wanted())
      expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders' } })
      expect(answer.body.expires_in).toBeLessThanOrEqual(600)
      const claims = await issuer.verify(answer.body.access_token, orders)
      expect(claims).toMatchObject({ sub: customer.id })
      expect(claims).not.toHaveProperty('sid')
      // The result is a JWT of the same user, without an actor: exchanged once more it is still that.
      expect((await issuer.exchange(client, answer.body.access_token, wanted())).status).toBe(200)
    }
  })

  test('of an impersonation is bound to what it is', async () => {
    const answer = await issuer.exchange(client, await issuer.subjectToken(customer.id), wanted())
    const opaque = await issuer.actorToken(client, customer.id)
    for (const token of [answer.body.access_token, opaque]) {
      expect(await issuer.exchange(client, token, wanted())).toMatchObject(refusal('subject_token_bound'))
    }
  })

  test('that expired, or was issued to a third party or to nobody known, is refused', async () => {
    const thirdParty = await issuer.createApplication({ isThirdParty: true })
    expect(await issuer.exchange(client, await signedIn(client, -1), wanted())).toMatchObject(
      refusal('subject_token_expired'),
    )
    expect(await issuer.exchange(client, await signedIn(thirdParty), wanted())).toMatchObject(
      refusal('subject_token_type'),
    )
    expect(await issuer.exchange(client, await signedIn({ id: 'gone' }), wanted())).toMatchObject(
      refusal('subject_token_type'),
    )
  })

  test('of a user who was suspended is refused', async () => {
    const token = await signedIn()
    await issuer.suspend(customer.id)
    expect(await issuer.exchange(client, token, wanted())).toMatchObject(refusal('subject_suspended'))
    await issuer.suspend(customer.id, false)
  })
})

test('an exchange leaves one audit row that names everybody, and no token anywhere', async () => {
  const agent = await issuer.createUser()
  const actor_token = await issuer.actorToken(client, agent.id)
  const subjectToken = await issuer.subjectToken(customer.id, { reason: 'wrong invoice', ticket: 'T-2' })
  const answer = await issuer.exchange(client, subjectToken, {
    ...wanted(),
    actor_token,
    actor_token_type: accessTokenType,
  })
  const { sid, jti } = await issuer.verify(answer.body.access_token, orders)

  const rows = await issuer.sql<{ payload: object }>(`SELECT * FROM logs WHERE payload->>'sessionId' = $1`, [sid])
  expect(rows).toHaveLength(1)
  expect(rows[0]).toMatchObject({
    key: 'ExchangeTokenBy.TokenExchange',
    result: 'Success',
    application_id: client.id,
    user_id: customer.id,
    payload: {
      ip: '127.0.0.1',
      userAgent: expect.any(String),
      params: {
        grant_type: tokenExchange,
        resource: orders,
        scope: 'read:orders',
        subject_token_type: accessTokenType,
      },
      actorId: agent.id,
      creatorId: issuer.bootstrap.id,
      scope: 'read:orders',
      tokenId: jti,
    },
  })
  const [dump] = await issuer.sql<{ text: string }>(
    `SELECT string_agg(t::text, ' ') AS text FROM (SELECT row_to_json(l)::text FROM logs l
     UNION ALL SELECT row_to_json(s)::text FROM subject_tokens s UNION ALL SELECT row_to_json(i)::text FROM impersonation_sessions i
     UNION ALL SELECT row_to_json(o)::text FROM opaque_tokens o) t`,
  )
  for (const token of [subjectToken, actor_token, answer.body.access_token, client.secret!]) {
    expect(dump!.text).not.toContain(token)
    expect(issuer.logged()).not.toContain(token)
  }
})

test('the start of an impersonation is an event, recorded with the session and only with it', async () => {
  const events = () =>
    issuer.sql<{ payload: string }>(
      `SELECT entity_kind, entity_id, convert_from(payload, 'UTF8') AS payload FROM outbox WHERE type = 'Impersonation.Started' ORDER BY id`,
    )
  const agent = await issuer.createUser()
  const actor_token = await issuer.actorToken(client, agent.id)
  const subjectToken = await issuer.subjectToken(customer.id, {
    context: { channel: 'phone' },
    reason: 'wrong invoice',
    ticket: 'T-3',
  })
  const before = (await events()).length
  await issuer.exchange(client, subjectToken, { ...wanted(), scope: 'read' })
  expect(await events()).toHaveLength(before)
  woken = 0

  const form = { ...wanted(), actor_token, actor_token_type: accessTokenType }
  const { sid, iat, exp } = await issuer.verify(
    (await issuer.exchange(client, subjectToken, form)).body.access_token,
    orders,
  )
  const recorded = (await events()).slice(before)
  expect(recorded).toMatchObject([{ entity_kind: 'impersonation', entity_id: sid }])
  const payload = JSON.parse(recorded[0]!.payload)
  expect(payload).toMatchObject({
    event: 'Impersonation.Started',
    version: 1,
    ip: '127.0.0.1',
    method: 'POST',
    path: '/oidc/token',
    status: 200,
    data: {
      id: sid,
      subjectId: customer.id,
      actorId: agent.id,
      actorVia: 'subject_token',
      clientId: client.id,
      creatorId: issuer.bootstrap.id,
      resource: orders,
      scopes: ['read:orders'],
      context: { channel: 'phone' },
      reason: 'wrong invoice',
      ticket: 'T-3',
      expiresAt: exp! * 1000,
      endedAt: null,
      endedBy: null,
    },
  })
  expect(Math.floor(payload.data.startedAt / 1000)).toBe(iat)
  expect(woken).toBe(1)
  for (const token of [subjectToken, actor_token]) expect(recorded[0]!.payload).not.toContain(token)
})
