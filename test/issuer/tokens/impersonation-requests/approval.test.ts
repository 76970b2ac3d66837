import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventTypes } from '../../../../events/catalogue.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { type AskedFirst, type Customer, startAskedFirst } from '../../../support/asked-first.ts'
import { createMessageReader, type MessageReader } from '../../../support/notices.ts'

/** A customer is asked before somebody acts as them, agrees with limits or refuses, and ends it. */

const keyEncryptionKey = randomBytes(32)
let asked: AskedFirst
let mail: MessageReader
beforeAll(async () => {
  asked = await startAskedFirst({ instances: 2, config: { keyEncryptionKey } })
  const { database } = asked.issuer
  const refreshed = () => asked.issuer.api('PATCH', '/sign-in-exp', {})
  mail = createMessageReader({ database, envelope: createEnvelope({ current: keyEncryptionKey }), refreshed })
  await mail.connect()
})
afterAll(() => asked?.close())
beforeEach(() => {
  asked.questions.length = 0
})

const why = { reason: 'The invoice is wrong', ticket: 'T-7' }

/** Asked for, and waiting. */
const pending = async (customer: Customer, members: object = {}) => {
  const answer = await asked.mint({ userId: customer.id, ...why, ...members })
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  return answer.body as { requestId: string; number: string; expiresAt: number }
}
const statusOf = async (requestId: string) =>
  (await asked.issuer.api('GET', `/impersonation-requests/${requestId}`)).body.status as string
const conflict = (code: string, status: string) => ({
  status: 409,
  body: { code: `impersonation.${code}`, data: { status } },
})
const expire = (requestId: string) =>
  asked.issuer.sql(`UPDATE impersonation_requests SET expires_at = now() - interval '1 second' WHERE id = $1`, [
    requestId,
  ])
const eventsOf = async (requestId: string) =>
  (
    await asked.issuer.sql<{ payload: Buffer }>('SELECT payload FROM outbox WHERE entity_id = $1 ORDER BY version', [
      requestId,
    ])
  ).map(({ payload }) => JSON.parse(payload.toString()))

test('nothing is minted before the customer agrees; then one token, within the limits that they set', async () => {
  const { issuer, orders } = asked
  const [customer, staff] = [await asked.customer(), await asked.staff()]
  const { requestId, ...answer } = await pending(customer, {
    actorToken: staff.token,
    scopes: ['read:orders', 'write:orders'],
  })
  expect(answer).toEqual({ status: 'pending', number: expect.stringMatching(/^\d\d$/), expiresAt: expect.any(Number) })
  expect(await issuer.sql('SELECT FROM subject_tokens WHERE user_id = $1', [customer.id])).toEqual([])
  expect(await asked.mint({ requestId })).toMatchObject(conflict('request_not_approved', 'pending'))

  const [shown] = (await customer.account('GET', '/my-account/impersonation-requests')).body
  expect(shown).toEqual({
    ...{ id: requestId, status: 'pending', number: answer.number, ...why },
    actor: { id: staff.id, name: 'Sam of Support' },
    application: { id: issuer.bootstrap.id, name: expect.any(String) },
    ...{ resource: null, scopes: ['read:orders', 'write:orders'] },
    ...{ createdAt: expect.any(Number), expiresAt: answer.expiresAt, decidedAt: null, readOnly: false, maxTtl: null },
    canBeWithdrawn: false,
  })
  expect((await customer.approve({ requestId, ...answer }, { readOnly: true, maxTtl: 900 })).status).toBe(204)
  expect((await issuer.api('GET', `/impersonation-requests/${requestId}`)).body).toMatchObject({
    ...{ id: requestId, status: 'approved', userId: customer.id, actorId: staff.id, readOnly: true, maxTtl: 900 },
    decidedAt: expect.any(Number),
  })

  const minted = await asked.mint({ requestId })
  expect(minted).toMatchObject({ status: 201, body: { subjectToken: expect.stringMatching(/^sub_/), expiresIn: 600 } })
  expect(await asked.mint({ requestId })).toMatchObject(conflict('request_not_approved', 'used'))
  const exchanged = await asked.exchange(minted.body.subjectToken, staff.token)
  expect(exchanged).toMatchObject({ status: 200, body: { expires_in: 900, scope: 'read:orders write:orders' } })
  const claims = await issuer.verify(exchanged.body.access_token, orders)
  expect(claims).toMatchObject({ sub: customer.id, act: { sub: staff.id }, access: 'read' })
  expect((await issuer.api('GET', `/impersonations/${claims['sid']}`)).body).toMatchObject({
    ...{ approvalId: requestId, access: 'read', actorVia: 'sign_in', ...why },
  })

  const approval = {
    ...{ id: requestId, at: expect.any(Number), scopes: ['read:orders', 'write:orders'], maxTtl: 900, readOnly: true },
  }
  const actor = { id: staff.id, via: 'sign_in', acr: 'urn:surrogate:acr:mfa', auth_time: expect.any(Number) }
  expect(asked.questions).toMatchObject([
    { stage: 'mint', actor },
    { stage: 'mint', actor, approval },
    { stage: 'exchange', actor, approval },
  ])
  expect(asked.questions[0]).not.toHaveProperty('approval')
})

test('whoever may be asked for without it is not asked', async () => {
  const customer = await asked.customer({ isProtected: false })
  expect((await asked.mint({ userId: customer.id })).status).toBe(201)
})

test('without limits nothing but the own ones of the token counts', async () => {
  const customer = await asked.customer()
  const request = await pending(customer)
  expect((await customer.approve(request)).status).toBe(204)
  const { subjectToken } = (await asked.mint({ requestId: request.requestId })).body
  const exchanged = await asked.exchange(subjectToken)
  expect(exchanged.body).toMatchObject({ expires_in: 3600, scope: 'read:orders write:orders' })
  expect(await asked.issuer.verify(exchanged.body.access_token, asked.orders)).not.toHaveProperty('access')
})

test('an opaque token says by introspection that it only reads', async () => {
  const { issuer, desk } = asked
  const customer = await asked.customer()
  const request = await pending(customer)
  await customer.approve(request, { readOnly: true })
  const { subjectToken } = (await asked.mint({ requestId: request.requestId })).body
  const { access_token } = (await issuer.exchange(desk, subjectToken, { scope: 'openid' })).body
  const answer = await fetch(`${issuer.issuer}/token/introspection`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${desk.id}:${desk.secret}`).toString('base64')}` },
    body: new URLSearchParams({ token: access_token }),
  })
  expect(await answer.json()).toMatchObject({ active: true, access: 'read' })
})

describe('the customer', () => {
  test('agrees only with a fresh proof, and to the request that they were shown', async () => {
    const [customer, other] = [await asked.customer(), await asked.customer()]
    const request = await pending(customer)
    const path = `/my-account/impersonation-requests/${request.requestId}`
    const approve = (body: object, verification?: string) =>
      customer.account('POST', `${path}/approve`, body, verification === undefined ? {} : { verification })
    const { number } = request
    expect(await approve({ number })).toMatchObject({
      status: 401,
      body: { code: 'verification_record.permission_denied' },
    })
    expect(await approve({ number }, await other.verify())).toMatchObject({ status: 401 })
    const verification = await customer.verify()
    const wrong = number === '99' ? '10' : String(Number(number) + 1)
    expect(await approve({ number: wrong }, verification)).toMatchObject({
      status: 422,
      body: { code: 'impersonation.number_mismatch' },
    })
    for (const body of [
      {},
      { number: 47 },
      { number, maxTtl: 59 },
      { number, maxTtl: 1.5 },
      { number, readOnly: 'yes' },
    ])
      expect(await approve(body, verification)).toMatchObject({ status: 400 })
    await asked.issuer.sql(`UPDATE proofs SET expires_at = now() WHERE id = $1`, [verification])
    expect((await approve({ number }, verification)).status).toBe(401)
    expect(await statusOf(request.requestId)).toBe('pending')
  })

  test('knows nothing of the requests and impersonations of others, and decides and ends none', async () => {
    const [customer, stranger] = [await asked.customer(), await asked.customer()]
    const request = await pending(customer)
    const free = await asked.customer({ isProtected: false })
    const token = (await asked.mint({ userId: free.id })).body.subjectToken
    const { sid } = await asked.issuer.verify((await asked.exchange(token)).body.access_token, asked.orders)
    const verification = await stranger.verify()
    const unknown = { status: 404, body: { code: 'entity.not_exists_with_id' } }
    expect((await stranger.account('GET', '/my-account/impersonation-requests')).body).toEqual([])
    expect((await stranger.account('GET', '/my-account/impersonations')).body).toEqual([])
    const requests = '/my-account/impersonation-requests'
    const approval = { number: request.number }
    expect(
      await stranger.account('POST', `${requests}/${request.requestId}/approve`, approval, { verification }),
    ).toMatchObject(unknown)
    expect(await stranger.account('POST', `${requests}/${request.requestId}/refuse`)).toMatchObject(unknown)
    expect(await stranger.account('POST', `/my-account/impersonations/${sid}/end`)).toMatchObject(unknown)
    expect(await statusOf(request.requestId)).toBe('pending')
  })

  test('refuses without more ado, and that stands', async () => {
    const customer = await asked.customer()
    const request = await pending(customer)
    const refuse = () => customer.account('POST', `/my-account/impersonation-requests/${request.requestId}/refuse`)
    expect((await refuse()).status).toBe(204)
    expect(await refuse()).toMatchObject(conflict('request_not_pending', 'refused'))
    expect(await customer.approve(request)).toMatchObject(conflict('request_not_pending', 'refused'))
    expect(await asked.mint({ requestId: request.requestId })).toMatchObject(
      conflict('request_not_approved', 'refused'),
    )
    expect((await eventsOf(request.requestId)).map(({ event }) => event)).toEqual([
      'Impersonation.Requested',
      'Impersonation.Refused',
    ])
  })

  test('takes an approval back until somebody acts by it, also when its subject token is already minted', async () => {
    const customer = await asked.customer()
    const [unused, minted, acted] = [await pending(customer), await pending(customer), await pending(customer)]
    const refuse = ({ requestId }: { requestId: string }) =>
      customer.account('POST', `/my-account/impersonation-requests/${requestId}/refuse`)
    const withdrawable = async () =>
      (await customer.account('GET', '/my-account/impersonation-requests')).body
        .filter(({ canBeWithdrawn }: { canBeWithdrawn: boolean }) => canBeWithdrawn)
        .map(({ id }: { id: string }) => id)
        .toSorted()
    for (const request of [unused, minted, acted]) expect((await customer.approve(request)).status).toBe(204)
    const token = (await asked.mint({ requestId: minted.requestId })).body.subjectToken
    const used = (await asked.mint({ requestId: acted.requestId })).body.subjectToken
    expect((await asked.exchange(used)).status).toBe(200)
    expect(await withdrawable()).toEqual([unused.requestId, minted.requestId].toSorted())

    expect([(await refuse(unused)).status, (await refuse(minted)).status]).toEqual([204, 204])
    expect(await refuse(acted)).toMatchObject(conflict('request_not_pending', 'used'))
    expect(await refuse(unused)).toMatchObject(conflict('request_not_pending', 'refused'))
    expect(await withdrawable()).toEqual([])
    expect(await asked.mint({ requestId: unused.requestId })).toMatchObject(conflict('request_not_approved', 'refused'))
    expect(await asked.exchange(token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await statusOf(minted.requestId)).toBe('refused')
    expect((await eventsOf(minted.requestId)).map(({ event }) => event)).toEqual([
      'Impersonation.Requested',
      'Impersonation.Approved',
      'Impersonation.Refused',
    ])
    expect(
      await asked.issuer.sql('SELECT FROM impersonation_sessions WHERE subject_id = $1', [customer.id]),
    ).toHaveLength(1)
  })

  test('takes no approval back that has expired, and none of somebody else', async () => {
    const [customer, stranger] = [await asked.customer(), await asked.customer()]
    const request = await pending(customer)
    await customer.approve(request)
    const path = `/my-account/impersonation-requests/${request.requestId}/refuse`
    expect(await stranger.account('POST', path)).toMatchObject({ status: 404 })
    expect(await statusOf(request.requestId)).toBe('approved')
    await expire(request.requestId)
    expect(await customer.account('POST', path)).toMatchObject(conflict('request_not_pending', 'expired'))
  })

  test('sees who acts and who did, and ends it at once; again changes nothing', async () => {
    const { issuer } = asked
    const [customer, staff] = [await asked.customer({ isProtected: false }), await asked.staff()]
    const { subjectToken } = (await asked.mint({ userId: customer.id, ...why })).body
    const { access_token } = (await asked.exchange(subjectToken, staff.token)).body
    const { sid } = await issuer.verify(access_token, asked.orders)
    const list = async () => (await customer.account('GET', '/my-account/impersonations')).body
    expect(await list()).toEqual([
      {
        ...{ id: sid, isActive: true, ...why, access: null, approvalId: null },
        actor: { id: staff.id, name: 'Sam of Support' },
        application: { id: asked.desk.id, name: 'Support desk' },
        ...{ resource: asked.orders, scopes: ['read:orders', 'write:orders'] },
        ...{ startedAt: expect.any(Number), expiresAt: expect.any(Number), endedAt: null },
      },
    ])
    const end = () => customer.account('POST', `/my-account/impersonations/${sid}/end`)
    expect([(await end()).status, (await end()).status]).toEqual([204, 204])
    expect(await list()).toMatchObject([{ id: sid, isActive: false, endedAt: expect.any(Number) }])
    expect((await issuer.api('GET', `/impersonations/${sid}`)).body).toMatchObject({ endedBy: customer.id })
    expect((await eventsOf(String(sid))).map(({ event }) => event)).toEqual([
      'Impersonation.Started',
      'Impersonation.Ended',
    ])
    expect(await issuer.sql('SELECT kind FROM revocations WHERE value = $1', [sid])).toEqual([{ kind: 'sid' }])
  })

  test('hears of it by mail: who, why as plain text without links, which number, and where to answer', async () => {
    const [customer, staff] = [await asked.customer(), await asked.staff()]
    const reason = 'See https://evil.example/x and www.evil.example now'
    const { number } = await pending(customer, { actorToken: staff.token, reason })
    const [message, ...others] = await mail.waiting(customer.email)
    expect(others).toEqual([])
    expect(message).toMatchObject({ type: 'ImpersonationRequested', subject: 'Somebody asks to act in your name' })
    expect(message!.text).toContain(`Sam of Support asks to act in your name. The number is ${number}.`)
    expect(message!.text).toContain(`${asked.issuer.baseUrl}/account/impersonations`)
    expect(message!.text).not.toContain('evil.example')
  })
})

test('of parallel approvals one stands, a refusal stands whenever it comes, and of parallel uses one gets the token', async () => {
  const customer = await asked.customer()
  const request = await pending(customer)
  const verifications = await Promise.all([customer.verify(), customer.verify(), customer.verify()])
  const path = `/my-account/impersonation-requests/${request.requestId}`
  const [refusal, ...approvals] = await Promise.all([
    customer.account('POST', `${path}/refuse`),
    ...verifications.map((verification) =>
      customer.account('POST', `${path}/approve`, { number: request.number }, { verification }),
    ),
  ])
  expect(refusal.status).toBe(204)
  const approved = approvals.filter(({ status }) => status === 204)
  expect(approved.length).toBeLessThanOrEqual(1)
  expect(approvals.filter(({ status }) => status === 409)).toHaveLength(3 - approved.length)
  expect(await statusOf(request.requestId)).toBe('refused')
  expect((await eventsOf(request.requestId)).map(({ event }) => event)).toEqual([
    'Impersonation.Requested',
    ...approved.map(() => 'Impersonation.Approved'),
    'Impersonation.Refused',
  ])

  const another = await pending(customer)
  await customer.approve(another)
  const uses = await Promise.all(
    Array.from({ length: 10 }, (_, index) => asked.mint({ requestId: another.requestId }, { instance: index % 2 })),
  )
  expect(uses.map(({ status }) => status).toSorted()).toEqual([201, ...Array(9).fill(409)])
})

test('of withdrawal and use at once exactly one stands', async () => {
  const outcomes = Array.from({ length: 8 }, async (_, index) => {
    const customer = await asked.customer()
    const [unused, minted] = [await pending(customer), await pending(customer)]
    await customer.approve(unused)
    await customer.approve(minted)
    const { subjectToken } = (await asked.mint({ requestId: minted.requestId })).body
    const refuse = ({ requestId }: { requestId: string }) =>
      customer.account('POST', `/my-account/impersonation-requests/${requestId}/refuse`)

    const [withdrawn, used] = await Promise.all([
      refuse(unused),
      asked.mint({ requestId: unused.requestId }, { instance: index % 2 }),
    ])
    expect([withdrawn.status, used.status]).toEqual(used.status === 201 ? [expect.any(Number), 201] : [204, 409])
    // What was minted before it was taken back is gone with it.
    if (used.status === 201 && withdrawn.status === 204)
      expect((await asked.exchange(used.body.subjectToken)).status).toBe(400)

    const [refused, exchanged] = await Promise.all([refuse(minted), asked.exchange(subjectToken)])
    expect([refused.status, exchanged.status]).toEqual(exchanged.status === 200 ? [409, 200] : [204, 400])
    const sessions = await asked.issuer.sql('SELECT FROM impersonation_sessions WHERE approval_id = $1', [
      minted.requestId,
    ])
    expect(sessions).toHaveLength(exchanged.status === 200 ? 1 : 0)
    expect(await statusOf(minted.requestId)).toBe(exchanged.status === 200 ? 'used' : 'refused')
  })
  await Promise.all(outcomes)
})

test('a customer is asked three times within an hour and no more, whoever asks and however fast', async () => {
  const [customer, other] = [await asked.customer(), await asked.customer()]
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => asked.mint({ userId: customer.id }, { instance: index % 2 })),
  )
  expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 202, 202, 429, 429, 429, 429, 429])
  const numbers = answers.filter(({ status }) => status === 202).map(({ body }) => body.number)
  expect(new Set(numbers).size).toBe(3)
  const refused = await asked.mint({ userId: customer.id })
  expect(refused).toMatchObject({ status: 429, body: { code: 'impersonation.too_many_requests' } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3_000)
  await pending(other)
  await asked.issuer.sql(
    `UPDATE impersonation_requests SET created_at = created_at - interval '1 hour' WHERE user_id = $1`,
    [customer.id],
  )
  await pending(customer)
})

test('a request waits ten minutes, and so does an approval', async () => {
  const customer = await asked.customer()
  const [late, unused] = [await pending(customer), await pending(customer)]
  expect(late.expiresAt - Date.now()).toBeGreaterThan(500_000)
  expect(late.expiresAt - Date.now()).toBeLessThanOrEqual(605_000)
  await expire(late.requestId)
  expect(await customer.approve(late)).toMatchObject(conflict('request_not_pending', 'expired'))
  expect((await customer.approve(unused)).status).toBe(204)
  await expire(unused.requestId)
  expect(await asked.mint({ requestId: unused.requestId })).toMatchObject(conflict('request_not_approved', 'expired'))
})

test('an approval is of use to the application that asked, and stays when the policy refuses meanwhile', async () => {
  const { issuer } = asked
  const customer = await asked.customer()
  const request = await pending(customer)
  await customer.approve(request)
  const other = await issuer.createMachine(issuer.managementResource, ['impersonation'])
  const token = await issuer.clientToken(other, issuer.managementResource, 'impersonation')
  const { requestId } = request
  expect(await asked.mint({ requestId }, { token })).toMatchObject({ status: 404 })
  await issuer.suspend(customer.id)
  expect(await asked.mint({ requestId })).toMatchObject({ status: 422, body: { code: 'user.suspended' } })
  await issuer.suspend(customer.id, false)
  expect((await asked.mint({ requestId })).status).toBe(201)
})

test('a request is named alone, and what is wrong with a body is said of the form that it comes closest to', async () => {
  const customer = await asked.customer()
  const issues = async (body: object) => {
    const answer = await asked.mint(body)
    expect([answer.status, answer.body.code]).toEqual([400, 'guard.invalid_input'])
    return answer.body.data.issues.map(({ path }: { path: string }) => path)
  }
  expect(await issues({ requestId: 'r1', userId: customer.id })).toEqual([''])
  expect(await issues({ requestId: 'r1', reason: 'x' })).toEqual([''])
  expect(await issues({})).toEqual(['userId'])
  expect(await issues({ userId: customer.id, reason: 7 })).toEqual(['reason'])
  expect(await asked.mint({ requestId: 'unknown' })).toMatchObject({ status: 404 })
  expect((await asked.issuer.api('GET', '/impersonation-requests/unknown')).status).toBe(404)
})

test('an actor token that does not count, or is of somebody else than was said, is refused', async () => {
  const { issuer } = asked
  const [customer, staff, machine] = [await asked.customer(), await asked.staff(), await issuer.managementToken()]
  const invalid = { status: 400, body: { code: 'impersonation.actor_token_invalid' } }
  const mint = (actorToken: string, more: object = {}) => asked.mint({ userId: customer.id, actorToken, ...more })
  expect(await mint('nonsense')).toMatchObject(invalid)
  expect(await mint('a.b.c')).toMatchObject(invalid)
  expect(await mint(machine)).toMatchObject(invalid)
  expect(await mint(staff.token, { actorId: customer.id.slice(0, 12) })).toMatchObject(invalid)
  await issuer.sql('UPDATE opaque_tokens SET revoked_at = now() WHERE user_id = $1', [staff.id])
  expect(await mint(staff.token)).toMatchObject(invalid)
  const logs = JSON.stringify(await issuer.sql('SELECT * FROM logs'))
  for (const secret of [staff.token, machine]) {
    expect(logs).not.toContain(secret)
    expect(issuer.logged()).not.toContain(secret)
  }
})

test('every step is an event that says what was asked, and a row of the audit trail; no token stands in either', async () => {
  const { issuer } = asked
  const [customer, staff] = [await asked.customer(), await asked.staff()]
  const request = await pending(customer, { actorToken: staff.token })
  await customer.approve(request, { maxTtl: 300 })
  const { subjectToken } = (await asked.mint({ requestId: request.requestId })).body
  const events = await eventsOf(request.requestId)
  expect(events).toMatchObject([
    { event: 'Impersonation.Requested', status: 202, data: { status: 'pending', actorId: staff.id, ...why } },
    { event: 'Impersonation.Approved', status: 204, data: { status: 'approved', maxTtl: 300 } },
  ])
  for (const { event, data } of events)
    expect(eventTypes.get(event)!.data.safeParse(data)).toMatchObject({ success: true })
  const logs = await issuer.sql(`SELECT key, payload FROM logs WHERE user_id = $1`, [customer.id])
  expect(logs).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ key: 'Management.createSubjectToken' }),
      expect.objectContaining({ key: 'Account.approveMyImpersonationRequest' }),
      expect.objectContaining({
        key: 'Management.createSubjectToken',
        payload: expect.objectContaining({ approvalId: request.requestId }),
      }),
    ]),
  )
  const everything = JSON.stringify([events, logs, await issuer.sql('SELECT * FROM impersonation_requests')])
  for (const secret of [subjectToken, staff.token, customer.token]) expect(everything).not.toContain(secret)
})

test('an issuer that does not know the limits of an approval cannot use its token up', async () => {
  const { issuer } = asked
  const customer = await asked.customer()
  const request = await pending(customer)
  await customer.approve(request, { readOnly: true })
  await asked.mint({ requestId: request.requestId })
  await expect(
    issuer.sql('UPDATE subject_tokens SET consumed_at = now() WHERE user_id = $1', [customer.id]),
  ).rejects.toThrow(/subject_tokens_limits/)
})
