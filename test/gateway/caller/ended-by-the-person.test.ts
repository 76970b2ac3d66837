import { expect, onTestFinished, test } from 'vitest'
import { startAskedFirst } from '../../support/asked-first.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/** A whole system: an issuer whose tokens a real gateway verifies, with its keys and its revocation feed. */
const startAll = async () => {
  const asked = await startAskedFirst()
  onTestFinished(() => asked.close())
  const { issuer, orders } = asked
  const reader = await issuer.createMachine(issuer.managementResource, ['revocations'])
  const gateway = await startTestGateway({
    config: () => ({
      issuers: [
        {
          issuer: issuer.issuer,
          client: { id: reader.id, secret: reader.secret },
          revocations: { mode: 'feed', url: `${issuer.issuer}/revocations` },
        },
      ],
      routes: [
        {
          ...{ id: 'orders', path: '/orders/**', audience: [orders], scopes: ['read:orders'] },
          ...{ upstream: 'orders', impersonation: 'allow' },
        },
      ],
    }),
  })
  onTestFinished(() => gateway.close())
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }), 50_000)
  return { asked, gateway }
}

test('what the customer allowed for reading reads at the gateway, and is refused within a second when they end it', async () => {
  const { asked, gateway } = await startAll()
  const [customer, staff] = [await asked.customer(), await asked.staff()]
  const request = (await asked.mint({ userId: customer.id, actorToken: staff.token })).body
  await customer.approve(request, { readOnly: true })
  const { subjectToken } = (await asked.mint({ requestId: request.requestId })).body
  const token = (await asked.exchange(subjectToken, staff.token)).body.access_token as string
  const call = (method: string) => gateway.call('/orders/1', { method, token })
  expect((await call('GET')).status).toBe(200)
  expect(await call('POST')).toMatchObject({ status: 403 })
  const [{ id }] = (await customer.account('GET', '/my-account/impersonations')).body
  expect((await customer.account('POST', `/my-account/impersonations/${id}/end`)).status).toBe(204)
  await until(async () => expect((await call('GET')).status).toBe(401), 1_000)
})

test('T 139: what support opened is refused within a second when they are signed out, and what others opened is not', async () => {
  const { asked, gateway } = await startAll()
  const [customer, staff, colleague] = [
    await asked.customer({ isProtected: false }),
    await asked.staff(),
    await asked.staff(),
  ]
  const actAs = async ({ token }: { token: string }) => {
    const { subjectToken } = (await asked.mint({ userId: customer.id, actorToken: token })).body
    return (await asked.exchange(subjectToken, token)).body.access_token as string
  }
  const tokens = [await actAs(staff), await actAs(colleague)]
  const statuses = () => Promise.all(tokens.map(async (token) => (await gateway.call('/orders/1', { token })).status))
  expect(await statuses()).toEqual([200, 200])
  const { status } = await asked.issuer.api('DELETE', `/users/${staff.id}/sessions/${staff.sessionId}`)
  expect(status).toBe(204)
  await until(async () => expect(await statuses()).toEqual([401, 200]), 1_000)
})
