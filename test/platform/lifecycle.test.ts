import { expect, test } from 'vitest'
import { createLifecycle } from '../../platform/lifecycle.ts'
import { silentLogger } from '../../platform/logger.ts'

test('parts are released in reverse order, once, and a failing or hanging one does not hold up the others', async () => {
  const lifecycle = createLifecycle({ logger: silentLogger })
  const released: string[] = []
  lifecycle.onStop('database', () => released.push('database'))
  lifecycle.onStop('broken', () => Promise.reject(new Error('cannot stop')))
  lifecycle.onStop('hanging', () => new Promise(() => {}), 10)
  lifecycle.onStop('server', async () => released.push('server'))

  await Promise.all([lifecycle.stop(), lifecycle.stop()])

  expect(released).toEqual(['server', 'database'])
  expect(lifecycle.stopping).toBe(true)
})
