import { expect, test } from 'vitest'
import { fuzz } from './fuzz/run.ts'

test('whatever a client sends, the upstream sees the request that the policy saw, once', async () => {
  const { failures, forwarded, answers } = await fuzz({ seed: 20_260_101, conversations: 480 })
  expect(failures).toEqual([])
  // It would prove nothing if everything, or nothing, were refused.
  expect(forwarded).toBeGreaterThan(100)
  expect(answers['400']).toBeGreaterThan(50)
}, 120_000)
