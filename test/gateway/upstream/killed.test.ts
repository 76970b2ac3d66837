import { Agent, request } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startCountingProcess } from '../../support/targets.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const clients = 16
const requests = 3_000

test('a target that is killed under load costs no GET, and no POST reaches two targets', async () => {
  const targets = await Promise.all([1, 2, 3].map(() => startCountingProcess()))
  for (const target of targets) cleanup.push(() => target.close())
  const gateway = await startTestGateway({
    config: () => ({
      upstreams: {
        api: {
          targets: targets.map(({ url }) => ({ url })),
          retries: { attempts: 3, budget: '50%' },
          ejection: { consecutiveFailures: 3, for: '60s' },
        },
      },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())
  const dispatcher = new Agent({ connections: clients })
  cleanup.push(() => dispatcher.close())

  const statuses: Record<string, number> = {}
  let sent = 0
  const client = async () => {
    while (sent < requests) {
      const number = sent++
      const method = number % 2 === 0 ? 'GET' : 'POST'
      if (number === requests / 3) targets[0]!.signal('SIGKILL')
      const { statusCode, body } = await request(`${gateway.url}/${number}`, {
        method,
        dispatcher,
        ...(method === 'POST' && { body: 'order' }),
      })
      await body.dump()
      const key = `${method} ${statusCode}`
      statuses[key] = (statuses[key] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: clients }, client))

  const { 'POST 502': lost = 0, 'POST 200': done = 0, ...others } = statuses
  expect(others).toEqual({ 'GET 200': requests / 2 })
  expect(lost + done).toBe(requests / 2)
  // No more than were with the killed one.
  expect(lost).toBeLessThanOrEqual(clients)
  await until(() => {
    const posts = targets.flatMap(({ posts }) => posts())
    expect(posts.length).toBeGreaterThanOrEqual(done)
    expect(posts).toHaveLength(new Set(posts).size)
  })
  const { text } = await gateway.metrics.render()
  const running = [...text.matchAll(/gateway_(?:upstream|target)_running\{.*\} (\d+)/g)].map(([, value]) => value)
  expect(running).toEqual(['0', '0', '0', '0'])
})
