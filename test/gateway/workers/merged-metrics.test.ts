import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../gateway/workers/merged-metrics.ts'
import { createMetrics, mergeSnapshots } from '../../../platform/metrics.ts'

test('what workers have counted stays when several of them end at once', async () => {
  const counted = createWorkerMetrics()
  const add = async (worker: number, requests: number) => {
    const metrics = createMetrics()
    metrics.counter('surrogate_gateway_requests_total', 'Requests', ['route']).inc({ route: 'a' }, requests)
    metrics.gauge('surrogate_gateway_requests_running', 'Running').set(1)
    counted.add(worker, await metrics.snapshot())
  }
  const told = async () => {
    const all = (await mergeSnapshots(counted.all())) as { name: string; values?: { value: number }[] }[]
    return Object.fromEntries(all.map(({ name, values }) => [name, values?.[0]?.value]))
  }
  for (const [worker, requests] of [
    [1, 3],
    [2, 4],
    [3, 5],
  ] as const)
    await add(worker, requests)
  expect(await told()).toEqual({ surrogate_gateway_requests_total: 12, surrogate_gateway_requests_running: 3 })

  counted.end(1)
  counted.end(2)
  // At no time is anything missing.
  for (let at = 0; at < 20; at++) {
    const { surrogate_gateway_requests_total: total } = await told()
    expect(total).toBe(12)
  }
  expect(await told()).toEqual({ surrogate_gateway_requests_total: 12, surrogate_gateway_requests_running: 1 })
  await add(1, 2)
  counted.end(3)
  expect(await told()).toMatchObject({ surrogate_gateway_requests_total: 14 })
})
