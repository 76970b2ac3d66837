import { expect, onTestFinished, test } from 'vitest'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { freePort } from '../../support/free-port.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { until } from '../../support/until.ts'

const routes = (id: string) => [{ id, path: '/public/**', auth: 'none' }]
const path = '/public/x'

const start = async () => {
  const port = await freePort()
  const extAuthz = { port }
  const config = { trustedProxies: ['127.0.0.1'], extAuthz, routes: routes('before') }
  const gateway = await startGatewayWorkers(config)
  onTestFinished(() => gateway.close())
  const connected = () => {
    const envoy = connectExtAuthz(port)
    onTestFinished(() => envoy.close())
    return envoy
  }
  return { gateway, connected, config }
}

test('workers share the port, and a killed one costs only its own connections', async () => {
  const { gateway, connected } = await start()
  const clients = Array.from({ length: 6 }, connected)
  await Promise.all(clients.map((client) => client.check({ path })))
  const open = async () =>
    [...(await gateway.metrics()).matchAll(/^surrogate_gateway_ext_authz_connections(?:\{.*\})? (\d+)$/gm)]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0)
  await until(async () => expect(await open()).toBe(6))
  const [first, second] = gateway.workers()
  expect(second).toBeGreaterThan(0)
  process.kill(first!, 'SIGKILL')
  // Each has its connection still, or gets another one; no answer is wrong.
  const outcomes = await Promise.all(clients.map((client) => client.check({ path }).catch(({ code }) => code)))
  for (const outcome of outcomes) expect(outcome === 14 || outcome.allowed).toBe(true)
  expect(outcomes.filter((outcome) => outcome.allowed).length).toBeGreaterThan(0)
  await until(async () => {
    const answers = await Promise.all(clients.map((client) => client.check({ path })))
    expect(answers.every(({ allowed }) => allowed)).toBe(true)
  })
  await until(() => expect(gateway.workers()).toHaveLength(2))
})

test('a reload counts in all of them together, and a stop answers what is under way', async () => {
  const { gateway, connected, config } = await start()
  const clients = Array.from({ length: 4 }, connected)
  for (const client of clients) expect((await client.check({ path })).metadata['route']).toBe('before')
  await gateway.write({ ...config, routes: routes('after') })
  await until(async () => expect((await clients[0]!.check({ path })).metadata['route']).toBe('after'))
  for (const client of clients) expect((await client.check({ path })).metadata['route']).toBe('after')
  let stopped = false
  const asking = clients.map(async (client) => {
    const outcomes: unknown[] = []
    while (!stopped) {
      const outcome = await client.check({ path }).catch(({ code }) => code)
      outcomes.push(outcome === 14 ? 14 : outcome.allowed)
      if (outcome === 14) break
    }
    return outcomes
  })
  gateway.child.signal('SIGTERM')
  expect(await gateway.child.exited).toMatchObject({ code: 0 })
  stopped = true
  const outcomes = (await Promise.all(asking)).flat()
  expect(outcomes.filter((outcome) => outcome !== true && outcome !== 14)).toEqual([])
})

test('a worker that is replaced serves the listeners of the start, also after a reload without them', async () => {
  const { gateway, connected, config } = await start()
  const { extAuthz: _, ...without } = config
  const routeOf = async () => (await connected().check({ path })).metadata['route']
  await gateway.write({
    ...without,
    // Only what asks or forwards makes a route; nobody asks by this file.
    routes: [{ id: 'after', path: '/public/**', auth: 'none', upstream: 'api' }],
    upstreams: { api: { url: 'https://api.test' } },
  })
  await until(async () => expect(await routeOf()).toBe('after'))
  for (const worker of gateway.workers()) {
    process.kill(worker, 'SIGKILL')
    await until(() => expect(gateway.workers()).not.toContain(worker))
    await until(async () => expect((await gateway.readiness()).checks['gateway workers']?.detail).toBe('2 of 2 serve'))
  }
  for (let at = 0; at < 6; at++) expect(await routeOf()).toBe('after')
})
