import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endAuthorizations, endSessionHere, endSessionWhole } from '../../../../issuer/tokens/authorizations/end.ts'
import { eraseSuccessors } from '../../../../issuer/tokens/authorizations/refresh-token-store.ts'
import { revoke } from '../../../../issuer/tokens/revocations/revocation-store.ts'
import { tokenDigest } from '../../../../issuer/tokens/token-digest.ts'
import { newId } from '../../../../platform/ids.ts'
import { type AuthorizationOptions, authorize, refresh } from '../../../support/authorizations.ts'
import { request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { recordingIn } from '../../../support/recording.ts'

let issuer: TestIssuer
let native: TestApplication
let spa: TestApplication
let web: TestApplication
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  native = await issuer.createApplication({ type: 'Native' })
  spa = await issuer.createApplication({ type: 'SPA' })
  web = await issuer.createApplication()
  user = await issuer.createUser({ name: 'Ada' })
})
afterAll(() => issuer.close())

const refusedBecause = (reason: string) => ({ status: 400, body: { error: 'invalid_grant', reason } })

const isActive = async (token: string) =>
  (await request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${token}` } })).status === 200

/** A family of refresh tokens, with its first one. */
const family = async (client: TestApplication, options: AuthorizationOptions & { userId?: string } = {}) => {
  const authorization = await authorize(issuer, client, options.userId ?? user.id, options)
  const { body } = await authorization.redeem()
  expect(body.refresh_token).toEqual(expect.any(String))
  return { ...authorization, first: body.refresh_token as string, accessToken: body.access_token as string }
}

/** As if everything of the family had happened so much earlier. */
const age = (sid: string, seconds: number) =>
  issuer.sql(
    `UPDATE refresh_tokens SET created_at = created_at - $2 * interval '1 second',
       expires_at = expires_at - $2 * interval '1 second', rotated_at = rotated_at - $2 * interval '1 second'
     WHERE authorization_id = $1`,
    [sid, seconds],
  )

const refreshed = async (client: TestApplication, token: string, form = {}, options?: { instance?: number }) => {
  const answer = await refresh(issuer, client, token, form, options)
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

const lifeOf = async (token: string) => {
  const [row] = await issuer.sql<{ left: number; ofAuthorization: number }>(
    `SELECT extract(epoch FROM t.expires_at - now())::float8 AS left,
       extract(epoch FROM a.expires_at - now())::float8 AS "ofAuthorization"
     FROM refresh_tokens t JOIN authorizations a ON a.id = t.authorization_id WHERE digest = $1`,
    [tokenDigest('refresh-token', token)],
  )
  return row!
}

describe('a refresh token', () => {
  test('becomes an opaque access token, the next refresh token, and an ID token without nonce', async () => {
    const { first, sid } = await family(native, { scopes: ['openid', 'offline_access', 'profile'], nonce: 'n' })
    const answer = await refreshed(native, first)
    expect(answer).toEqual({
      access_token: expect.stringMatching(/^[\w-]{43}$/),
      refresh_token: expect.stringMatching(/^[\w-]{43}$/),
      id_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'openid offline_access profile',
    })
    expect(answer.refresh_token).not.toBe(first)
    const claims = decodeJwt(answer.id_token)
    expect(claims).toMatchObject({ sid, sub: user.id, name: 'Ada', amr: ['pwd'], auth_time: expect.any(Number) })
    expect(claims).not.toHaveProperty('nonce')
  })

  test('of a public client is replaced at every use; a used one later ends its authorization alone', async () => {
    const { first, sid, accessToken } = await family(native)
    const other = await family(native)
    const { refresh_token: second } = await refreshed(native, first)
    await age(sid, 11)
    expect(await refresh(issuer, native, first, {}, { instance: 1 })).toMatchObject(
      refusedBecause('refresh_token_reused'),
    )
    expect(await refresh(issuer, native, second)).toMatchObject(refusedBecause('refresh_token_reused'))
    expect(await isActive(accessToken)).toBe(false)
    expect(await issuer.sql(`SELECT FROM revocations WHERE kind = 'sid' AND value = $1`, [sid])).toHaveLength(1)
    await refreshed(native, other.first)
  })

  test('that was replaced a moment ago gets the newest of its chain, and ends nothing', async () => {
    const { first } = await family(native)
    const { refresh_token: second } = await refreshed(native, first)
    const { refresh_token: third } = await refreshed(native, second)
    const again = await refreshed(native, first, {}, { instance: 1 })
    expect(again.refresh_token).toBe(third)
    expect((await refreshed(native, second)).refresh_token).toBe(third)
    expect((await refreshed(native, third)).refresh_token).not.toBe(third)
  })

  test('used fifty times at once over two instances gives every one of them the same next token', async () => {
    const { first, sid } = await family(native)
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => refresh(issuer, native, first, {}, { instance: index % 2 })),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
    expect(new Set(answers.map(({ body }) => body.access_token)).size).toBe(50)
    for (const { body } of answers) expect(await isActive(body.access_token)).toBe(true)
    expect(await issuer.sql('SELECT FROM refresh_tokens WHERE authorization_id = $1', [sid])).toHaveLength(2)
  })

  test('is replaced by one that stands nowhere in clear, and sealed only until the leeway ends', async () => {
    const { first, sid } = await family(native)
    const { refresh_token: second } = await refreshed(native, first)
    const sealed = () =>
      issuer.sql<{ successor: Buffer }>(
        'SELECT successor FROM refresh_tokens WHERE authorization_id = $1 AND successor IS NOT NULL',
        [sid],
      )
    const [{ successor }] = (await sealed()) as [{ successor: Buffer }]
    expect(successor.includes(second)).toBe(false)
    const [{ stored }] = (await issuer.sql(
      `SELECT (SELECT string_agg(t::text, '') FROM refresh_tokens t) || (SELECT string_agg(l::text, '') FROM logs l) AS stored`,
    )) as [{ stored: string }]
    for (const token of [first, second]) {
      expect(stored).not.toContain(token)
      expect(issuer.logged()).not.toContain(token)
    }
    await eraseSuccessors(issuer.database.query, 10)
    expect(await sealed()).toHaveLength(1)
    await age(sid, 11)
    await refreshed(native, (await family(native)).first)
    expect(await sealed()).toHaveLength(0)
  })

  test('of a client that proves who it is stays until 70 % of its life have passed', async () => {
    const { first, sid } = await family(web)
    expect((await refreshed(web, first)).refresh_token).toBe(first)
    await age(sid, 9 * 86_400)
    expect((await refreshed(web, first)).refresh_token).toBe(first)
    await age(sid, 86_400)
    const { refresh_token: second } = await refreshed(web, first)
    expect(second).not.toBe(first)
    expect((await lifeOf(second)).left).toBeGreaterThan(13.9 * 86_400)
  })

  test('stays where rotation is switched off, but never that of a public client', async () => {
    const fixed = await issuer.createApplication()
    const page = await issuer.createApplication({ type: 'SPA' })
    await issuer.sql(
      `UPDATE applications SET custom_client_metadata = '{"rotateRefreshToken": false}' WHERE id = ANY ($1)`,
      [[fixed.id, page.id]],
    )
    const { first, sid } = await family(fixed)
    await age(sid, 12 * 86_400)
    expect((await refreshed(fixed, first)).refresh_token).toBe(first)
    const ofPage = await family(page)
    expect((await refreshed(page, ofPage.first)).refresh_token).not.toBe(ofPage.first)
  })
})

describe('a refresh token lives', () => {
  test('14 days from its last use, and its authorization as long', async () => {
    const { first, sid } = await family(native)
    await age(sid, 10 * 86_400)
    const { refresh_token: second } = await refreshed(native, first)
    const life = await lifeOf(second)
    expect(life.left).toBeGreaterThan(14 * 86_400 - 60)
    expect(life.ofAuthorization).toBeCloseTo(life.left, 0)
    await age(sid, 14 * 86_400 + 1)
    expect(await refresh(issuer, native, second)).toMatchObject(refusedBecause('refresh_token_expired'))
  })

  test('14 days from the sign-in for a page, however often it is used', async () => {
    const { first, sid } = await family(spa)
    await age(sid, 10 * 86_400)
    const { refresh_token: second } = await refreshed(spa, first)
    expect((await lifeOf(second)).left).toBeLessThan(4 * 86_400 + 60)
  })

  test('no longer than a year after the authorization', async () => {
    const { first, sid } = await family(native)
    await issuer.sql(
      `UPDATE authorizations SET created_at = now() - interval '1 year' + interval '3 days' WHERE id = $1`,
      [sid],
    )
    const { refresh_token: second } = await refreshed(native, first)
    expect((await lifeOf(second)).left).toBeLessThan(3 * 86_400 + 60)
  })
})

describe('a refresh token is refused, and not used up,', () => {
  test('to another client, and without the proof of its own', async () => {
    const { first } = await family(web)
    const stranger = await issuer.createApplication()
    expect(await refresh(issuer, stranger, first)).toMatchObject(refusedBecause('refresh_token_unknown'))
    expect(await refresh(issuer, { id: web.id }, first)).toMatchObject({ status: 401 })
    expect(await refresh(issuer, { ...web, secret: 'wrong' }, first)).toMatchObject({ status: 401 })
    await refreshed(web, first)
  })

  test('to another client although it was replaced long ago', async () => {
    const { first, sid } = await family(native)
    const { refresh_token: second } = await refreshed(native, first)
    await age(sid, 60)
    expect(await refresh(issuer, spa, first)).toMatchObject(refusedBecause('refresh_token_unknown'))
    await refreshed(native, second)
  })

  test('while its user is suspended', async () => {
    const person = await issuer.createUser()
    const { first } = await family(native, { userId: person.id })
    await issuer.suspend(person.id)
    expect(await refresh(issuer, native, first)).toMatchObject(refusedBecause('user_suspended'))
    await issuer.suspend(person.id, false)
    await refreshed(native, first)
  })

  test('for a scope or a resource that was not granted', async () => {
    const [asked, other] = [await issuer.createResource(), await issuer.createResource()]
    const { first } = await family(native, { resources: [asked] })
    const invalidTarget = { status: 400, body: { error: 'invalid_target' } }
    expect(await refresh(issuer, native, first, { resource: other })).toMatchObject(invalidTarget)
    expect(await refresh(issuer, native, first, { resource: `${asked}/x` })).toMatchObject(invalidTarget)
    expect(await refresh(issuer, native, first, { scope: 'openid profile' })).toMatchObject({
      status: 400,
      body: { error: 'invalid_scope' },
    })
    await refreshed(native, first, { resource: asked })
  })
})

describe('a refresh fails for good', () => {
  test('when the session of an authorization without offline access ended, idled or expired', async () => {
    const keeper = await issuer.createApplication({ type: 'SPA' })
    await issuer.sql(
      `UPDATE applications SET custom_client_metadata = '{"alwaysIssueRefreshToken": true}' WHERE id = $1`,
      [keeper.id],
    )
    const ends = [
      'ended_at = now()',
      `last_seen_at = now() - interval '4 days'`,
      `expires_at = now() - interval '1 second'`,
    ]
    for (const end of ends) {
      const { first, sessionId } = await family(keeper, { isOffline: false })
      const { refresh_token: second } = await refreshed(keeper, first)
      await issuer.sql(`UPDATE sessions SET ${end} WHERE id = $1`, [sessionId])
      expect(await refresh(issuer, keeper, second)).toMatchObject(refusedBecause('session_ended'))
    }
  })

  test('when the person ends the session, but not when it merely expires', async () => {
    const kept = await family(native)
    await issuer.sql(`UPDATE sessions SET expires_at = now() - interval '1 second' WHERE id = $1`, [kept.sessionId])
    await refreshed(native, kept.first)
    const { first, sessionId } = await family(native)
    await issuer.database.transaction((query) =>
      endSessionWhole(recordingIn(query), { sessionId, reason: 'ended_by_user', endedBy: user.id }),
    )
    expect(await refresh(issuer, native, first)).toMatchObject(refusedBecause('session_ended'))
    const loggedOut = await family(native)
    const ending = { reason: 'logout', endedBy: user.id } as const
    await issuer.database.transaction((query) =>
      endSessionHere(recordingIn(query), { sessionId: loggedOut.sessionId, clientId: native.id, ...ending }),
    )
    expect(await refresh(issuer, native, loggedOut.first)).toMatchObject(refusedBecause('session_ended'))
  })

  test('when the consent was revoked', async () => {
    const { first, sid } = await family(native)
    await issuer.database.transaction((query) =>
      endAuthorizations(recordingIn(query), { ids: [sid] }, 'consent_revoked'),
    )
    expect(await refresh(issuer, native, first)).toMatchObject(refusedBecause('consent_revoked'))
  })

  test('when the user is deleted', async () => {
    const person = await issuer.createUser()
    const { first } = await family(native, { userId: person.id })
    await issuer.sql('DELETE FROM users WHERE id = $1', [person.id])
    expect(await refresh(issuer, native, first)).toMatchObject(refusedBecause('refresh_token_unknown'))
  })
})

describe('what a refresh gives is what the person may have now:', () => {
  test('roles that were taken away are gone, and those in organizations count', async () => {
    const resource = await issuer.createResource({ scopes: ['read', 'write', 'close'] })
    const person = await issuer.createUser()
    const roleId = await issuer.grantUser(person.id, resource, ['read'])
    const { organizationId } = await membership(person.id, resource, ['write'])
    const { first } = await family(web, {
      userId: person.id,
      scopes: ['openid', 'offline_access', 'urn:logto:scope:organizations', 'write', 'read', 'close'],
      resources: [resource],
    })
    expect((await refreshed(web, first, { resource })).scope).toBe('write read')
    const { organizationId: elsewhere } = await membership(person.id, resource, [])
    expect((await refreshed(web, first, { resource, organization_id: elsewhere })).scope).toBe('read')
    await issuer.sql('DELETE FROM user_roles WHERE role_id = $1', [roleId])
    const inOrganization = await refreshed(web, first, { resource, organization_id: organizationId })
    expect(inOrganization.scope).toBe('write')
    expect(await issuer.verify(inOrganization.access_token, resource)).toMatchObject({
      organization_id: organizationId,
      scope: 'write',
    })
    await issuer.sql('DELETE FROM organization_users WHERE user_id = $1', [person.id])
    expect(await refresh(issuer, web, first, { resource, organization_id: organizationId })).toMatchObject({
      status: 403,
      body: { error: 'access_denied' },
    })
    expect((await refreshed(web, first, { resource })).scope).toBe('')
  })

  test('a token for an organization carries what the roles in it hold', async () => {
    const person = await issuer.createUser()
    const { organizationId } = await membership(person.id, undefined, ['invite:member'])
    const name = 'invite:member'
    const { first } = await family(web, {
      userId: person.id,
      scopes: ['openid', 'offline_access', 'urn:logto:scope:organizations', name],
    })
    const answer = await refreshed(web, first, { organization_id: organizationId })
    expect(answer).toMatchObject({ expires_in: 3600, scope: name, id_token: expect.any(String) })
    await issuer.verify(answer.access_token, `urn:logto:organization:${organizationId}`)
    const resource = 'urn:logto:resource:organizations'
    expect((await refreshed(web, first, { organization_id: organizationId, resource })).scope).toBe(name)
    expect(await refresh(issuer, web, first, { organization_id: 'nonesuch' })).toMatchObject({ status: 403 })
    const without = await family(web, { userId: person.id })
    expect(await refresh(issuer, web, without.first, { organization_id: organizationId })).toMatchObject({
      status: 403,
      body: { error: 'insufficient_scope', code: 'oidc.insufficient_scope' },
    })
  })

  test('a narrowed scope narrows the ID token as well, and leaves it out without openid', async () => {
    await issuer.sql(`UPDATE users SET primary_email = 'ada@example.test' WHERE id = $1`, [user.id])
    const { first } = await family(web, { scopes: ['openid', 'offline_access', 'profile', 'email'] })
    const narrow = await refreshed(web, first, { scope: 'profile openid' })
    expect(narrow.scope).toBe('profile openid')
    expect(decodeJwt(narrow.id_token)).not.toHaveProperty('email')
    expect(decodeJwt((await refreshed(web, first)).id_token)).toHaveProperty('email', 'ada@example.test')
    const plain = await refreshed(web, first, { scope: 'profile' })
    expect(plain).not.toHaveProperty('id_token')
  })

  test('leaving openid out leads to no default resource that was never asked for', async () => {
    const fallback = await issuer.createResource({ scopes: ['read'], isDefault: true })
    const asked = await issuer.createResource({ scopes: ['read'] })
    for (const resource of [fallback, asked]) await issuer.grantUser(user.id, resource, ['read'])
    const { first } = await family(native, { scopes: ['openid', 'offline_access', 'read'], resources: [asked] })
    const { access_token: token, scope } = await refreshed(native, first, { scope: 'read' })
    expect(token).not.toContain('.')
    expect(scope).toBe('')
    await issuer.sql('UPDATE resources SET is_default = false WHERE indicator = $1', [fallback])
  })

  test('without openid the default resource is meant, with it none is', async () => {
    const resource = await issuer.createResource({ scopes: ['read'], isDefault: true })
    const person = await issuer.createUser()
    await issuer.grantUser(person.id, resource, ['read'])
    const { first } = await family(web, { userId: person.id, scopes: ['openid', 'offline_access', 'read'] })
    expect((await refreshed(web, first)).access_token).not.toContain('.')
    const { access_token, scope } = await refreshed(web, first, { scope: 'read' })
    expect(await issuer.verify(access_token, resource)).toMatchObject({ scope: 'read' })
    expect(scope).toBe('read')
    expect((await refreshed(web, first, { resource })).scope).toBe('read')
    await issuer.sql('UPDATE resources SET is_default = false WHERE indicator = $1', [resource])
  })

  test('a third-party application gets what the consent still allows, and keeps it alive by use', async () => {
    const partner = await issuer.createApplication({ isThirdParty: true })
    const resource = await issuer.createResource({ scopes: ['read', 'write'] })
    const person = await issuer.createUser({ name: 'Ada' })
    await issuer.grantUser(person.id, resource, ['read', 'write'])
    await issuer.sql(
      `INSERT INTO consents (id, user_id, client_id, scopes, resources, expires_at)
       VALUES ($1, $2, $3, '{profile}', $4, now() + interval '10 days')`,
      [newId(), person.id, partner.id, JSON.stringify({ [resource]: ['read'] })],
    )
    const { first } = await family(partner, {
      userId: person.id,
      scopes: ['openid', 'offline_access', 'profile', 'email', 'read', 'write'],
      resources: [resource],
    })
    expect((await refreshed(partner, first)).scope).toBe('openid offline_access profile')
    expect((await refreshed(partner, first, { resource })).scope).toBe('read')
    const [{ days }] = (await issuer.sql(
      'SELECT extract(day FROM expires_at - now())::int AS days FROM consents WHERE user_id = $1',
      [person.id],
    )) as [{ days: number }]
    expect(days).toBeGreaterThanOrEqual(179)
    await issuer.sql('UPDATE consents SET revoked_at = now() WHERE user_id = $1', [person.id])
    expect(await refresh(issuer, partner, first)).toMatchObject(refusedBecause('consent_revoked'))
  })
})

test('a token that was exchanged for a person’s own token says nothing of how they signed in', async () => {
  const resource = await issuer.createResource({ scopes: ['read'] })
  const { first, sid } = await family(web, { resources: [resource], scopes: ['openid', 'offline_access'] })
  const own = await refreshed(web, first, { resource })
  expect(decodeJwt(own.access_token)).toMatchObject({ acr: 'urn:surrogate:acr:basic', sid })
  const exchanged = await issuer.exchange(web, own.access_token, { resource })
  expect(exchanged).toMatchObject({ status: 200 })
  const claims = decodeJwt(exchanged.body.access_token)
  expect(claims).toMatchObject({ sid })
  for (const name of ['acr', 'auth_time', 'amr']) expect(claims).not.toHaveProperty(name)
  expect(exchanged.body).not.toHaveProperty('refresh_token')
})

test('a refused refresh is in the audit trail with its reason', async () => {
  const { first, sid } = await family(native)
  await refreshed(native, first)
  await age(sid, 30)
  await refresh(issuer, native, first)
  const rows = () =>
    issuer.sql(
      `SELECT user_id, payload->'error'->>'reason' AS reason, payload->>'ended' AS ended FROM logs
       WHERE key = 'ExchangeTokenBy.RefreshToken' AND result = 'Error' AND payload->>'sessionId' = $1`,
      [sid],
    )
  await expect.poll(rows).toEqual([{ user_id: user.id, reason: 'refresh_token_reused', ended: 'refresh_token_reused' }])
})

test('an end that is under way is waited for, and refuses the refresh', async () => {
  const waiting = () =>
    issuer.sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
  for (const client of [native, web]) {
    const { first, sid } = await family(client)
    let refused: ReturnType<typeof refresh> | undefined
    await issuer.database.transaction(async (query) => {
      await endAuthorizations(recordingIn(query), { ids: [sid] }, 'logout')
      refused = refresh(issuer, client, first, {}, { instance: 1 })
      await expect.poll(waiting).toHaveLength(1)
    })
    expect(await refused).toMatchObject(refusedBecause('session_ended'))
  }
})

test('a token that is issued in the second in which those of its person were revoked is not revoked itself', async () => {
  const person = await issuer.createUser()
  const resource = await issuer.createResource()
  const { first } = await family(web, { userId: person.id, resources: [resource], scopes: ['offline_access'] })
  await issuer.database.transaction((query) => revoke(query, [{ kind: 'sub', value: person.id }]))
  const { access_token } = await refreshed(web, first, { resource })
  const [{ revoked }] = (await issuer.sql(
    'SELECT extract(epoch FROM issued_before)::float8 AS revoked FROM revocations WHERE value = $1',
    [person.id],
  )) as [{ revoked: number }]
  expect(decodeJwt(access_token).iat).toBeGreaterThan(revoked)
})

/** An organization whose member's role carries these scopes: of the resource, or permissions in the organization. */
const membership = async (userId: string, resource: string | undefined, scopes: readonly string[]) => {
  const [organizationId, roleId] = [newId(12), newId()]
  await issuer.sql('INSERT INTO organizations (id, name) VALUES ($1, $1)', [organizationId])
  await issuer.sql('INSERT INTO organization_users (organization_id, user_id) VALUES ($1, $2)', [
    organizationId,
    userId,
  ])
  await issuer.sql(`INSERT INTO organization_roles (id, name, type) VALUES ($1, $1, 'User')`, [roleId])
  await issuer.sql(
    'INSERT INTO organization_user_roles (organization_id, user_id, organization_role_id) VALUES ($1, $2, $3)',
    [organizationId, userId, roleId],
  )
  if (resource !== undefined) {
    await issuer.sql(
      `INSERT INTO organization_role_resource_scopes (organization_role_id, scope_id)
       SELECT $1, s.id FROM scopes s JOIN resources r ON r.id = s.resource_id WHERE r.indicator = $2 AND s.name = ANY ($3)`,
      [roleId, resource, scopes],
    )
  } else {
    await issuer.sql(
      `WITH made AS (INSERT INTO organization_scopes (id, name) SELECT $2 || n, name FROM unnest($3::text[]) WITH ORDINALITY AS s (name, n)
         RETURNING id)
       INSERT INTO organization_role_scopes (organization_role_id, organization_scope_id) SELECT $1, id FROM made`,
      [roleId, newId(18), scopes],
    )
  }
  return { organizationId, roleId }
}
