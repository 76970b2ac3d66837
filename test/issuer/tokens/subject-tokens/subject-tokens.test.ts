import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../../issuer/tokens/token-digest.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

let issuer: TestIssuer
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ config: { subjectTokenTtl: 120 } })
  user = await issuer.createUser()
})
afterAll(() => issuer.close())

const mint = (body: unknown, token?: string | null) =>
  issuer.api('POST', '/subject-tokens', body, token === undefined ? {} : { token })

const stored = async (token: string) =>
  (
    await issuer.sql('SELECT *, expires_at - created_at AS life FROM subject_tokens WHERE digest = $1', [
      tokenDigest('subject-token', token),
    ])
  )[0]

test('a subject token is minted for a user, and only its digest is kept', async () => {
  const answer = await mint({ userId: user.id, context: { ticketId: 'T-1' } })
  expect(answer.status).toBe(201)
  expect(answer.body).toEqual({ subjectToken: expect.stringMatching(/^sub_[\w-]{43}$/), expiresIn: 120 })
  expect(await stored(answer.body.subjectToken)).toMatchObject({
    user_id: user.id,
    creator_id: issuer.bootstrap.id,
    context: { ticketId: 'T-1' },
    consumed_at: null,
    life: { minutes: 2 },
  })
})

test('every optional member is kept', async () => {
  const bound = {
    clientId: 'client',
    resource: 'https://api.example.test/orders',
    scopes: ['read:orders'],
    actorId: 'agent',
    reason: 'wrong invoice',
    ticket: 'T-2',
  }
  const { body } = await mint({ userId: user.id, ...bound, notKnown: 'is ignored' })
  const { clientId, actorId, ...same } = bound
  expect(await stored(body.subjectToken)).toMatchObject({
    ...same,
    client_id: clientId,
    actor_id: actorId,
    context: {},
  })
})

test('two tokens of one user are two tokens', async () => {
  expect((await mint({ userId: user.id })).body.subjectToken).not.toBe(
    (await mint({ userId: user.id })).body.subjectToken,
  )
})

test('an unknown user is 404, a suspended one 422', async () => {
  expect(await mint({ userId: 'nobody' })).toMatchObject({
    status: 404,
    body: { code: 'entity.relation_foreign_key_not_found' },
  })
  const suspended = await issuer.createUser({ isSuspended: true })
  expect(await mint({ userId: suspended.id })).toMatchObject({ status: 422, body: { code: 'user.suspended' } })
})

describe('bodies that are refused:', () => {
  const nested = (depth: number): object => (depth === 1 ? { end: true } : { deeper: nested(depth - 1) })
  const cases: Record<string, unknown> = {
    'no userId': {},
    'userId is no string': { userId: 7 },
    'context is a list': { userId: 'u', context: ['a'] },
    'context is a string': { userId: 'u', context: 'ticket' },
    'context is null': { userId: 'u', context: null },
    'context over 8 kB': { userId: 'u', context: { text: 'x'.repeat(8_192) } },
    'context nine deep': { userId: 'u', context: nested(9) },
    'a NUL in the context': { userId: 'u', context: { text: 'a\0b' } },
    'a resource with a fragment': { userId: 'u', resource: 'https://api.example.test#x' },
    'a relative resource': { userId: 'u', resource: '/orders' },
    'a scope with a space': { userId: 'u', scopes: ['a b'] },
    'a reason that is no string': { userId: 'u', reason: {} },
  }
  test.each(Object.entries(cases))('%s', async (_, body) => {
    expect(await mint(body)).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  })
})

test('a context at its limits is kept whole, and a member called __proto__ is a member', async () => {
  const context = JSON.parse(`{"__proto__": {"admin": true}, "a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}`)
  const answer = await mint({ userId: user.id, context })
  expect(answer.status).toBe(201)
  const row = await issuer.sql<{ text: string }>('SELECT context::text AS text FROM subject_tokens WHERE digest = $1', [
    tokenDigest('subject-token', answer.body.subjectToken),
  ])
  expect(JSON.parse(row[0]!.text)).toEqual(context)
  expect(({} as { admin?: boolean }).admin).toBeUndefined()
})

test('nobody mints without a management token that allows it', async () => {
  const api = await issuer.createResource({ scopes: ['all'] })
  const other = await issuer.createMachine(api, ['all'])
  const body = { userId: user.id }
  expect(await mint(body, null)).toMatchObject({ status: 401, body: { code: 'auth.authorization_header_missing' } })
  expect(await mint(body, await issuer.clientToken(other, api, 'all'))).toMatchObject({ status: 401 })
  await issuer.grantApplication(other, issuer.managementResource, ['users', 'impersonation'])
  const withScope = (scope: string) => issuer.clientToken(other, issuer.managementResource, scope)
  expect(await mint(body, await withScope('users'))).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
  expect((await mint(body, await withScope('impersonation'))).status).toBe(201)
})

test('minting leaves an audit row without the token', async () => {
  const before = await issuer.sql(
    `SELECT id FROM logs WHERE key = 'Management.createSubjectToken' AND result = 'Success'`,
  )
  const { body } = await mint({ userId: user.id, ticket: 'T-3' })
  const rows = await issuer.sql(
    `SELECT row_to_json(l)::text AS text FROM logs l WHERE key = 'Management.createSubjectToken' AND result = 'Success'`,
  )
  expect(rows).toHaveLength(before.length + 1)
  expect(JSON.stringify(rows)).not.toContain(body.subjectToken)
  expect(issuer.logged()).not.toContain(body.subjectToken)
})
