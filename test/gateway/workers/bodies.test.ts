import { expect, test } from 'vitest'
import { amountRules, json } from '../../support/body-policies.ts'
import { orders, startUpstream } from '../../support/gateway.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

test('every worker decides by the body, and has its part of the memory for them', async () => {
  const issuer = await startTokenIssuer()
  const upstream = await startUpstream()
  const config = {
    allowInsecure: ['http-issuer', 'no-revocations'],
    issuers: [{ issuer: issuer.issuer }],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'old', path: '/old', auth: 'none', upstream: 'api', entrypoint: 'surrogate/gateway/decision' }],
  }
  const gateway = await startGatewayWorkers(config)
  try {
    await gateway.writeFile('rules/app.rego', amountRules)
    const payments = {
      id: 'payments',
      path: '/payments',
      audience: [orders],
      upstream: 'api',
      entrypoint: 'app/decision',
      policyBody: { type: 'json', maxBytes: '128kB' },
    }
    await gateway.write({ ...config, routes: [...config.routes, payments] })
    const authorization = `Bearer ${await issuer.sign({ client_id: 'c1' })}`
    const send = (amount: number, length = 0) =>
      fetch(`${gateway.url}/payments`, {
        method: 'POST',
        // A connection for each: they go to the workers in turn.
        headers: { ...json, authorization, connection: 'close' },
        body: JSON.stringify({ amount, text: 'a'.repeat(length) }),
      }).then(({ status }) => status)
    await until(async () => expect(await send(1)).toBe(200))

    const amounts = Array.from({ length: 20 }, (_, index) => index * 10)
    const statuses = await Promise.all(amounts.map((amount) => send(amount, 100_000)))
    expect(statuses).toEqual(amounts.map((amount) => (amount <= 100 ? 200 : 403)))
    await until(async () => {
      const metrics = await gateway.metrics()
      expect(metrics).toMatch(/^surrogate_gateway_held_body_bytes 0$/m)
    })
    // Two of the longest bodies for each worker.
    await gateway.write({ ...config, limits: { policyBodies: '300kB' }, routes: [...config.routes, payments] })
    await gateway.child.waitFor(/must be at least 524288: two of the longest bodies for each of the workers \(2\)/)
  } finally {
    await gateway.close()
    await upstream.close()
    await issuer.close()
  }
})
