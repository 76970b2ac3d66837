import { describe, expect, test } from 'vitest'
import { createVerifiedTokenCache, tokenKey } from '../../../gateway/caller/verified-token-cache.ts'
import type { Principal } from '../../../gateway/request/principal.ts'

const keys = { generation: 0, usable: () => true }
const entry = (size = 500, expiresAt = 1_000) => ({
  principal: { claims: {} } as unknown as Principal,
  keys,
  generation: 0,
  expiresAt,
  size,
})

describe('the cache of verified tokens is bounded', () => {
  test('by their number: the oldest goes first', () => {
    const cache = createVerifiedTokenCache({ maxEntries: 3 })
    for (const name of ['a', 'b', 'c', 'd']) cache.set(name, entry())
    expect([cache.size, cache.get('a', 0), cache.get('b', 0) !== undefined]).toEqual([3, undefined, true])
  })

  test('by their length together, so that long tokens cannot take all memory', () => {
    const cache = createVerifiedTokenCache({ maxSize: 10_000 })
    for (let count = 0; count < 100; count++) cache.set(String(count), entry(4_000))
    expect(cache.size).toBe(2)
    cache.set('99', entry(100))
    cache.set('small', entry(5_000))
    expect(cache.size, 'an entry that is set anew counts once').toBe(3)
  })

  test('by their time: an expired one leaves when it is asked for, and its place is free', () => {
    const cache = createVerifiedTokenCache({ maxSize: 1_000 })
    cache.set('a', entry(600, 1_000))
    expect(cache.get('a', 999)).toBeDefined()
    expect([cache.get('a', 1_000), cache.size]).toEqual([undefined, 0])
    cache.set('b', entry(400))
    cache.set('c', entry(600))
    expect(cache.size).toBe(2)
  })

  test('and holds hashes, not tokens', () => {
    expect(tokenKey('a.b.c')).toMatch(/^[A-Za-z0-9+/]{43}=$/)
  })
})
