import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endSessionWhole } from '../../../../issuer/tokens/authorizations/end.ts'
import { type AskedFirst, type Customer, startAskedFirst } from '../../../support/asked-first.ts'
import { recordingIn } from '../../../support/recording.ts'

/**
 * Whoever acts as somebody may act through them as a third person. That reaches no further than what it goes through:
 * it only reads, ends in time and is ended with that.
 */

let asked: AskedFirst
beforeAll(async () => {
  asked = await startAskedFirst({ instances: 2 })
})
afterAll(() => asked?.close())

/** What the actor token is: both are good for it. */
const kinds = {
  'a JWT': {},
  'an opaque token': { resource: '' },
}
type Kind = keyof typeof kinds

/** Acts as a customer who has agreed within limits; the token can be an actor token. */
const actAs = async (customer: Customer, staffToken: string, kind: Kind, limits: object = {}) => {
  const request = (await asked.mint({ userId: customer.id })).body
  expect((await customer.approve(request, limits)).status).toBe(204)
  const { subjectToken } = (await asked.mint({ requestId: request.requestId })).body
  const form: Record<string, string> = kind === 'a JWT' ? { scope: 'openid read:orders' } : { scope: 'openid' }
  const { issuer, desk, orders } = asked
  const answer = await issuer.exchange(desk, subjectToken, {
    ...(kind === 'a JWT' && { resource: orders }),
    ...form,
    actor_token: staffToken,
    actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const [session] = (await issuer.api('GET', `/impersonations?userId=${customer.id}&active=true`)).body
  return { token: answer.body.access_token as string, session }
}

/** Acts as a third person, who need not be asked, through the first. */
const goOn = async (third: Customer, token: string, instance = 0) =>
  asked.issuer.exchange(
    asked.desk,
    (await asked.mint({ userId: third.id })).body.subjectToken,
    {
      ...{ resource: asked.orders, scope: 'read:orders write:orders', actor_token: token },
      actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    },
    { instance },
  )
const shown = async (id: unknown) => (await asked.issuer.api('GET', `/impersonations/${id}`)).body
const revoked = async (id: unknown) => (await asked.issuer.sql('SELECT FROM revocations WHERE value = $1', [id])).length
const endedEvents = async (id: unknown) =>
  (await asked.issuer.sql(`SELECT FROM outbox WHERE type = 'Impersonation.Ended' AND entity_id = $1`, [id])).length

describe.each(Object.keys(kinds) as Kind[])('through %s', (kind) => {
  const begin = async (limits: object = {}) => {
    const [customer, third, staff] = [
      await asked.customer(),
      await asked.customer({ isProtected: false }),
      await asked.staff(),
    ]
    const first = await actAs(customer, staff.token, kind, limits)
    const answer = await goOn(third, first.token)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    const claims = await asked.issuer.verify(answer.body.access_token, asked.orders)
    expect(claims).toMatchObject({ sub: third.id, act: { sub: customer.id, act: { sub: staff.id } } })
    return { customer, third, staff, first, claims }
  }

  test('somebody who may only read only reads as the third person too', async () => {
    const { claims } = await begin({ readOnly: true })
    expect(claims['access']).toBe('read')
    expect(await shown(claims['sid'])).toMatchObject({ access: 'read' })
  })

  test('the time that the customer set holds', async () => {
    const { first, claims } = await begin({ maxTtl: 300 })
    expect(Number(claims.exp) * 1000).toBeLessThanOrEqual(first.session.expiresAt)
  })

  test('what the customer ends takes along what was opened through them, once', async () => {
    const { customer, third, first, claims } = await begin()
    const unconcerned = await begin()
    const end = () => customer.account('POST', `/my-account/impersonations/${first.session.id}/end`)
    expect((await end()).status).toBe(204)
    expect((await end()).status).toBe(204)
    expect(await shown(claims['sid'])).toMatchObject({ endedBy: customer.id, endedAt: expect.any(Number) })
    expect([await revoked(claims['sid']), await endedEvents(claims['sid'])]).toEqual([1, 1])
    expect(await shown(unconcerned.claims['sid'])).toMatchObject({ endedAt: null })
    expect((await goOn(third, first.token, 1)).body).toMatchObject({ reason: 'actor_token_invalid' })
  })

  test('an administrator who ends it does so too, and so does the sign-in of whoever acts', async () => {
    const [byAdministrator, bySignOut] = [await begin(), await begin()]
    await asked.issuer.api('POST', `/impersonations/${byAdministrator.first.session.id}/end`)
    await asked.issuer.database.transaction((trx) =>
      endSessionWhole(recordingIn(trx), {
        sessionId: bySignOut.staff.sessionId,
        reason: 'logout',
        endedBy: 'somebody',
      }),
    )
    for (const { claims, first } of [byAdministrator, bySignOut]) {
      for (const id of [first.session.id, claims['sid']]) {
        expect(await shown(id)).toMatchObject({ endedAt: expect.any(Number) })
        expect([await revoked(id), await endedEvents(id)]).toEqual([1, 1])
      }
    }
  })

  test('exchanges that race with the end leave nothing open', async () => {
    const { customer, third, first } = await begin()
    await Promise.all([
      ...Array.from({ length: 6 }, (_, index) => goOn(third, first.token, index % 2)),
      customer.account('POST', `/my-account/impersonations/${first.session.id}/end`),
    ])
    expect((await asked.issuer.api('GET', `/impersonations?userId=${third.id}&active=true`)).body).toEqual([])
  })
})
