import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endAuthorizations } from '../../../../issuer/tokens/authorizations/end.ts'
import { authorize, challengeOf, refresh, signIn } from '../../../support/authorizations.ts'
import { request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { recordingIn } from '../../../support/recording.ts'

let issuer: TestIssuer
let spa: TestApplication
let web: TestApplication
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  spa = await issuer.createApplication({ type: 'SPA' })
  web = await issuer.createApplication()
  user = await issuer.createUser({ name: 'Ada' })
})
afterAll(() => issuer.close())

const invalidGrant = { status: 400, body: { error: 'invalid_grant' } }

const isActive = async (token: string) =>
  (await request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${token}` } })).status === 200

const moveCode = (code: { sid: string }, seconds: number) =>
  issuer.sql(
    `UPDATE authorization_codes SET created_at = created_at - $2 * interval '1 second',
       expires_at = expires_at - $2 * interval '1 second', redeemed_at = redeemed_at - $2 * interval '1 second'
     WHERE authorization_id = $1`,
    [code.sid, seconds],
  )

describe('a code', () => {
  test('becomes an opaque access token, a refresh token and an ID token', async () => {
    const code = await authorize(issuer, spa, user.id, {
      scopes: ['openid', 'offline_access', 'profile'],
      nonce: 'n-0S6_WzA2Mj',
    })
    const answer = await code.redeem()
    expect(answer).toMatchObject({
      status: 200,
      body: {
        access_token: expect.stringMatching(/^[\w-]{43}$/),
        refresh_token: expect.stringMatching(/^[\w-]{43}$/),
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'openid offline_access profile',
      },
    })
    const keys = createRemoteJWKSet(new URL(`${issuer.url}/oidc/jwks`))
    const { payload, protectedHeader } = await jwtVerify(answer.body.id_token, keys, { issuer: issuer.issuer })
    expect(Object.keys(protectedHeader).sort()).toEqual(['alg', 'kid'])
    const [session] = await issuer.sql<{ at: number }>(
      'SELECT floor(extract(epoch FROM authenticated_at))::float8 AS at FROM sessions WHERE id = $1',
      [code.sessionId],
    )
    expect(payload).toEqual({
      iss: issuer.issuer,
      sub: user.id,
      aud: spa.id,
      iat: expect.any(Number),
      exp: payload.iat! + 3600,
      auth_time: session!.at,
      amr: ['pwd'],
      acr: 'urn:surrogate:acr:basic',
      sid: code.sid,
      nonce: 'n-0S6_WzA2Mj',
      name: 'Ada',
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
    })
    expect(await isActive(answer.body.access_token)).toBe(true)
  })

  test('without nonce, openid or offline access gives none of what they ask for', async () => {
    const answer = await (await authorize(issuer, spa, user.id, { isOffline: false })).redeem()
    expect(answer.body).not.toHaveProperty('refresh_token')
    expect(answer.body.scope).toBe('openid')
    expect(decodeJwt(answer.body.id_token)).not.toHaveProperty('nonce')
    const plain = await (await authorize(issuer, spa, user.id, { scopes: ['profile'], isOffline: false })).redeem()
    expect(plain.status).toBe(200)
    expect(plain.body).not.toHaveProperty('id_token')
  })

  test('gives a web application that is set so a refresh token that ends with the session', async () => {
    const keeper = await issuer.createApplication()
    const native = await issuer.createApplication({ type: 'Native' })
    await issuer.sql(
      `UPDATE applications SET custom_client_metadata = '{"alwaysIssueRefreshToken": true}' WHERE id = ANY ($1)`,
      [[keeper.id, native.id]],
    )
    const answer = await (await authorize(issuer, keeper, user.id, { isOffline: false })).redeem()
    expect(answer.body).toMatchObject({ refresh_token: expect.any(String), scope: 'openid' })
    expect((await (await authorize(issuer, native, user.id, { isOffline: false })).redeem()).body).not.toHaveProperty(
      'refresh_token',
    )
  })

  test('tells of its client’s life of ID tokens and extended claims that are on by default', async () => {
    const client = await issuer.createApplication()
    await issuer.sql(`UPDATE applications SET custom_client_metadata = '{"idTokenTtl": 60}' WHERE id = $1`, [client.id])
    const resource = await issuer.createResource({ scopes: ['read'] })
    const person = await issuer.createUser({ customData: { plan: 'gold' } })
    await issuer.grantUser(person.id, resource, ['read'], 'Reader')
    const code = await authorize(issuer, client, person.id, {
      scopes: ['openid', 'roles', 'custom_data', 'urn:logto:scope:organizations', 'urn:logto:scope:organization_roles'],
    })
    const answer = await code.redeem()
    const claims = decodeJwt(answer.body.id_token)
    expect(claims).toMatchObject({ roles: ['Reader'], organizations: [], organization_roles: [] })
    expect(claims.exp! - claims.iat!).toBe(60)
    for (const name of ['custom_data', 'organization_data']) expect(claims).not.toHaveProperty(name)
    const me = await request(`${issuer.url}/oidc/me`, {
      headers: { authorization: `Bearer ${answer.body.access_token}` },
    })
    const told = { custom_data: { plan: 'gold' }, roles: ['Reader'], organizations: [], organization_data: [] }
    expect(me.body).toMatchObject(told)
    const settings = { enabledExtendedClaims: ['custom_data'] }
    expect(await issuer.api('PUT', '/configs/id-token', settings)).toMatchObject({ status: 200 })
    const { body: later } = await refresh(issuer, client, answer.body.refresh_token, {}, { instance: 1 })
    expect(decodeJwt(later.id_token)).toMatchObject({ custom_data: { plan: 'gold' } })
    expect(decodeJwt(later.id_token)).not.toHaveProperty('roles')
    await issuer.sql('DELETE FROM settings')
  })

  test('gives an ID token that is signed as its client asks', async () => {
    const client = await issuer.createApplication()
    await issuer.sql(
      `UPDATE applications SET oidc_client_metadata = '{"idTokenSignedResponseAlg": "RS256"}' WHERE id = $1`,
      [client.id],
    )
    const { body } = await (await authorize(issuer, client, user.id)).redeem()
    const keys = createRemoteJWKSet(new URL(`${issuer.url}/oidc/jwks`))
    await jwtVerify(body.id_token, keys, { issuer: issuer.issuer, audience: client.id, algorithms: ['RS256'] })
  })

  test('for a resource gives what the person holds there now, in the order of the request', async () => {
    const resource = await issuer.createResource({ scopes: ['read', 'write', 'delete'], ttl: 600 })
    const person = await issuer.createUser()
    await issuer.grantUser(person.id, resource, ['delete', 'read'])
    const code = await authorize(issuer, spa, person.id, {
      scopes: ['openid', 'write', 'read', 'delete'],
      resources: [resource],
    })
    const answer = await code.redeem({ resource })
    expect(answer.body).toMatchObject({ scope: 'read delete', expires_in: 600 })
    const claims = await issuer.verify(answer.body.access_token, resource)
    expect(claims).toEqual({
      jti: expect.any(String),
      iss: issuer.issuer,
      sub: person.id,
      aud: resource,
      client_id: spa.id,
      scope: 'read delete',
      iat: expect.any(Number),
      exp: claims.iat! + 600,
      sid: code.sid,
      auth_time: expect.any(Number),
      acr: 'urn:surrogate:acr:basic',
    })
    expect(decodeProtectedHeader(answer.body.access_token)['typ']).toBe('at+jwt')
  })

  test('never carries permissions of the Management API to a person', async () => {
    const person = await issuer.createUser()
    await issuer.sql(`INSERT INTO roles (id, name, description, type) VALUES ('people-all', 'All', '', 'User')`)
    await issuer.sql(
      `INSERT INTO role_scopes (role_id, scope_id)
       SELECT 'people-all', s.id FROM scopes s JOIN resources r ON r.id = s.resource_id WHERE r.indicator = $1`,
      [issuer.managementResource],
    )
    await issuer.sql(`INSERT INTO user_roles (user_id, role_id) VALUES ($1, 'people-all')`, [person.id])
    const code = await authorize(issuer, spa, person.id, {
      scopes: ['openid', 'all', 'users'],
      resources: [issuer.managementResource],
    })
    const answer = await code.redeem({ resource: issuer.managementResource })
    expect(answer).toMatchObject({ status: 200, body: { scope: '' } })
  })

  test('no access token of a session without offline access outlives the session', async () => {
    const resource = await issuer.createResource({ ttl: 3600 })
    const sessionId = await signIn(issuer, user.id)
    await issuer.sql(`UPDATE sessions SET expires_at = now() + interval '100 seconds' WHERE id = $1`, [sessionId])
    const options = { sessionId, resources: [resource], scopes: ['openid'] }
    const bound = await (await authorize(issuer, spa, user.id, { ...options, isOffline: false })).redeem({ resource })
    expect(bound.body.expires_in).toBeGreaterThan(90)
    expect(bound.body.expires_in).toBeLessThanOrEqual(100)
    const free = await (await authorize(issuer, spa, user.id, options)).redeem({ resource })
    expect(free.body.expires_in).toBe(3600)
  })
})

describe('a code survives', () => {
  test('another client, which is refused', async () => {
    const code = await authorize(issuer, web, user.id)
    expect(await code.redeem({}, { client: await issuer.createApplication() })).toMatchObject(invalidGrant)
    expect(await code.redeem()).toMatchObject({ status: 200 })
  })

  test('a redirect URI that is missing or another', async () => {
    const code = await authorize(issuer, web, user.id)
    expect(await code.redeem({ redirect_uri: undefined })).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
    expect(await code.redeem({ redirect_uri: 'https://app.example.test/callback/' })).toMatchObject(invalidGrant)
    expect(await code.redeem()).toMatchObject({ status: 200 })
  })

  test('a verifier that is missing, malformed, wrong, or the challenge itself', async () => {
    const code = await authorize(issuer, spa, user.id)
    const wrong = [undefined, 'a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(43)}=`, 'a'.repeat(128)]
    for (const code_verifier of [...wrong, challengeOf(code.verifier)])
      expect(await code.redeem({ code_verifier })).toMatchObject(invalidGrant)
    expect(await code.redeem()).toMatchObject({ status: 200 })
  })

  test('a suspension that is lifted again', async () => {
    const person = await issuer.createUser()
    const code = await authorize(issuer, spa, person.id)
    await issuer.suspend(person.id)
    expect(await code.redeem()).toMatchObject({ status: 400, body: { reason: 'user_suspended' } })
    await issuer.suspend(person.id, false)
    expect(await code.redeem()).toMatchObject({ status: 200 })
  })

  test('58 seconds, and no 61', async () => {
    const code = await authorize(issuer, spa, user.id)
    await moveCode(code, 58)
    expect(await code.redeem()).toMatchObject({ status: 200 })
    const late = await authorize(issuer, spa, user.id)
    await moveCode(late, 61)
    expect(await late.redeem()).toMatchObject(invalidGrant)
  })
})

describe('a code is ended by', () => {
  test('the fifth wrong verifier, and no malformed one counts', async () => {
    const code = await authorize(issuer, spa, user.id)
    for (let count = 0; count < 10; count++) await code.redeem({ code_verifier: 'malformed' })
    for (let count = 0; count < 5; count++) await code.redeem({ code_verifier: 'w'.repeat(43) })
    expect(await code.redeem()).toMatchObject(invalidGrant)
  })

  test('the end of its session, its authorization, or the consent to a third party', async () => {
    const code = await authorize(issuer, spa, user.id, { isOffline: false })
    await issuer.sql('UPDATE sessions SET ended_at = now() WHERE id = $1', [code.sessionId])
    expect(await code.redeem()).toMatchObject({ status: 400, body: { reason: 'session_ended' } })
    const other = await authorize(issuer, spa, user.id)
    await issuer.database.transaction((query) =>
      endAuthorizations(recordingIn(query), { ids: [other.sid] }, 'consent_revoked'),
    )
    expect(await other.redeem()).toMatchObject({ status: 400, body: { reason: 'consent_revoked' } })
    const stranger = await issuer.createApplication({ isThirdParty: true })
    const foreign = await authorize(issuer, stranger, user.id)
    expect(await foreign.redeem()).toMatchObject({ status: 400, body: { reason: 'consent_revoked' } })
  })
})

test('PKCE cannot be taken away: a verifier without a challenge is refused', async () => {
  const code = await authorize(issuer, web, user.id, { pkce: false })
  expect(await code.redeem({ code_verifier: 'v'.repeat(43) })).toMatchObject(invalidGrant)
  expect(await code.redeem()).toMatchObject({ status: 200 })
})

test('a stolen code is worth nothing with the thief’s own verifier', async () => {
  const [victim, thief] = [await authorize(issuer, spa, user.id), await authorize(issuer, spa, user.id)]
  expect(await thief.redeem({ code: victim.code })).toMatchObject(invalidGrant)
  expect(await victim.redeem()).toMatchObject({ status: 200 })
})

test('a code is no token of another kind, and no other token is a code', async () => {
  const code = await authorize(issuer, web, user.id)
  expect(await issuer.token(web, { grant_type: 'refresh_token', refresh_token: code.code })).toMatchObject(invalidGrant)
  expect(await issuer.exchange(web, code.code, { scope: 'openid' })).toMatchObject(invalidGrant)
  expect(await isActive(code.code)).toBe(false)
  const { body } = await code.redeem()
  expect(await code.redeem({ code: body.refresh_token })).toMatchObject(invalidGrant)
  expect(await issuer.exchange(web, body.refresh_token, { scope: 'openid' })).toMatchObject(invalidGrant)
})

test('machine-to-machine applications sign nobody in', async () => {
  const machine = await issuer.createApplication({ type: 'MachineToMachine' })
  const code = await authorize(issuer, web, user.id)
  expect(await code.redeem({}, { client: machine })).toMatchObject({
    status: 400,
    body: { error: 'unauthorized_client' },
  })
})

test('of fifty parallel redemptions over two instances exactly one succeeds, and its tokens live', async () => {
  // What comes a second late is a replay, and a busy machine is slow to send fifty requests: then once more.
  let tookMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20 && tookMs > 900; round++) {
    const code = await authorize(issuer, spa, user.id)
    const startedAt = performance.now()
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => code.redeem({}, { instance: index % 2 })),
    )
    tookMs = performance.now() - startedAt
    const [issued, ...others] = answers.toSorted((one, two) => one.status - two.status)
    expect(issued!.status).toBe(200)
    for (const other of others) expect(other).toMatchObject(invalidGrant)
    if (tookMs < 900) expect(await isActive(issued!.body.access_token)).toBe(true)
    expect(await issuer.sql('SELECT FROM refresh_tokens WHERE authorization_id = $1', [code.sid])).toHaveLength(1)
    expect(
      await issuer.sql(`SELECT FROM logs WHERE payload->>'sessionId' = $1 AND result = 'Success'`, [code.sid]),
    ).toHaveLength(1)
  }
})

describe('a replay', () => {
  test('more than a second after the redemption ends what came of the code, although it is refused', async () => {
    const code = await authorize(issuer, spa, user.id)
    const { body } = await code.redeem()
    await moveCode(code, 2)
    expect(await code.redeem({}, { instance: 1 })).toMatchObject(invalidGrant)
    expect(await isActive(body.access_token)).toBe(false)
    expect(await issuer.token(spa, { grant_type: 'refresh_token', refresh_token: body.refresh_token })).toMatchObject({
      status: 400,
      body: { reason: 'session_ended' },
    })
    expect(await issuer.sql(`SELECT FROM revocations WHERE kind = 'sid' AND value = $1`, [code.sid])).toHaveLength(1)
  })

  test('long after the code expired does so too', async () => {
    const code = await authorize(issuer, spa, user.id)
    const { body } = await code.redeem()
    await moveCode(code, 3600)
    expect(await code.redeem()).toMatchObject(invalidGrant)
    expect(await isActive(body.access_token)).toBe(false)
  })

  test('with anything wrong ends nothing', async () => {
    const code = await authorize(issuer, web, user.id)
    const { body } = await code.redeem()
    await moveCode(code, 2)
    expect(await code.redeem({ code_verifier: 'w'.repeat(43) })).toMatchObject(invalidGrant)
    expect(await code.redeem({ code_verifier: undefined })).toMatchObject(invalidGrant)
    expect(await code.redeem({ redirect_uri: 'https://other.example.test/' })).toMatchObject(invalidGrant)
    expect(await code.redeem({}, { client: await issuer.createApplication() })).toMatchObject(invalidGrant)
    expect(await isActive(body.access_token)).toBe(true)
  })
})

test('a suspension that is under way is waited for, and refuses the code', async () => {
  const person = await issuer.createUser()
  const code = await authorize(issuer, spa, person.id)
  const suspension = await issuer.database.pool.connect()
  try {
    await suspension.query('BEGIN')
    await suspension.query('UPDATE users SET is_suspended = true WHERE id = $1', [person.id])
    const redeemed = code.redeem({}, { instance: 1 })
    await expect
      .poll(() =>
        issuer.sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`),
      )
      .toHaveLength(1)
    await suspension.query('COMMIT')
    expect(await redeemed).toMatchObject(invalidGrant)
  } finally {
    suspension.release()
  }
})

test('the audit trail names the secret that was used, and holds no code and no token', async () => {
  const code = await authorize(issuer, web, user.id)
  const { body } = await code.redeem()
  const [row] = await issuer.sql<{ key: string; user_id: string; payload: object }>(
    `SELECT key, user_id, payload FROM logs WHERE payload->>'sessionId' = $1`,
    [code.sid],
  )
  expect(row).toMatchObject({
    key: 'ExchangeTokenBy.AuthorizationCode',
    user_id: user.id,
    payload: {
      applicationSecret: { name: 'Default secret' },
      params: { grant_type: 'authorization_code' },
      scope: 'openid offline_access',
    },
  })
  const text = JSON.stringify(row) + issuer.logged()
  for (const secret of [code.code, code.verifier, body.access_token, body.refresh_token, web.secret!])
    expect(text).not.toContain(secret)
})
