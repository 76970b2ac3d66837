import { afterAll, beforeAll, expect, test } from 'vitest'
import { issueTime } from '../../../../issuer/tokens/revocations/issue-time.ts'
import { accessTokenType, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

let issuer: TestIssuer
let orders: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders'] })
})
afterAll(() => issuer.close())

const introspect = async (token: string) =>
  (
    await request(`${issuer.url}/oidc/token/introspection`, {
      method: 'POST',
      headers: { authorization: basic(issuer.bootstrap) },
      body: formOf({ token }),
    })
  ).body
/** As if it had happened just now, at the very end of a second that is still going on. */
const moveRevocation = (value: string) =>
  issuer.sql(
    `UPDATE revocations SET issued_before = date_trunc('second', now()) + interval '1999 ms' WHERE value = $1`,
    [value],
  )

test('a client that removes its old secret and asks with its new one gets a token that is good', async () => {
  const client = await issuer.createMachine(orders, ['read:orders'])
  await issuer.addSecret(client, { name: 'old', value: 'o'.repeat(43) })
  const before = await issuer.clientToken(client, orders, 'read:orders')
  await issuer.api('DELETE', `/applications/${client.id}/secrets/old`)
  await moveRevocation(client.id)
  const after = await issuer.clientToken(client, orders, 'read:orders')
  expect([(await introspect(before)).active, (await introspect(after)).active]).toEqual([false, true])
})

test('a user who is suspended and reactivated can be acted for and can act again at once', async () => {
  const client = await issuer.createApplication()
  const [subject, actor] = [await issuer.createUser(), await issuer.createUser()]
  const exchange = async () => {
    const answer = await issuer.exchange(client, await issuer.subjectToken(subject.id), {
      resource: orders,
      actor_token: await issuer.actorToken(client, actor.id),
      actor_token_type: accessTokenType,
    })
    expect(answer.status).toBe(200)
    return answer.body.access_token
  }
  const before = await exchange()
  for (const { id } of [subject, actor]) {
    await issuer.api('PATCH', `/users/${id}/is-suspended`, { isSuspended: true })
    await issuer.api('PATCH', `/users/${id}/is-suspended`, { isSuspended: false })
  }
  const after = await exchange()
  expect((await introspect(before)).active).toBe(false)
  expect(await introspect(after)).toMatchObject({ active: true, sub: subject.id, act: { sub: actor.id } })
})

test('an opaque token of a user who was suspended and is back counts at once', async () => {
  const client = await issuer.createApplication()
  const user = await issuer.createUser()
  const before = await issuer.actorToken(client, user.id)
  for (const isSuspended of [true, false]) await issuer.api('PATCH', `/users/${user.id}/is-suspended`, { isSuspended })
  const status = async (token: string) =>
    (await fetch(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${token}` } })).status
  expect(await status(before)).toBe(401)
  expect(await status(await issuer.actorToken(client, user.id))).toBe(200)
})

test('a token says a later second only when that helps', () => {
  const now = new Date(10_300)
  expect(issueTime(now, null)).toEqual(now)
  expect(issueTime(now, 9)).toEqual(now)
  expect(issueTime(now, 10)).toEqual(new Date(11_000))
  // The database's clock is an hour ahead: a token from the future would be refused too.
  expect(issueTime(now, 3_610)).toEqual(now)
})
