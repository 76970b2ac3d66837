import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { expect, test } from 'vitest'

/**
 * Advisory locks are numbers that the whole database shares: two purposes with one number would wait for, or skip, each
 * other. A second number tells locks of one purpose apart.
 */
test('every advisory lock has a number of its own', async () => {
  const users = new Map<string, Set<string>>()
  for await (const file of glob('{bin,events,issuer,platform,relay}/**/*.ts')) {
    for (const [, key] of readFileSync(file, 'utf8').matchAll(/pg_(?:try_)?advisory_(?:xact_)?lock\(([^),]*)/g)) {
      users.set(key!, (users.get(key!) ?? new Set()).add(file))
    }
  }
  const numbers = [...users.keys()]
  expect(numbers.length).toBeGreaterThan(5)
  expect(numbers.filter((key) => !/^\d{7,10}$/.test(key))).toEqual([])
  expect([...users].filter(([, files]) => files.size > 1)).toEqual([])
})
