import { expect, test } from 'vitest'
import { newId, randomAlphanumerics, randomHex, randomToken, uuidv7 } from '../../platform/ids.ts'

test('ids have the length and alphabet that existing SDKs expect, and do not repeat', () => {
  const ids = Array.from({ length: 2_000 }, () => newId())
  expect(ids.every((id) => /^[0-9a-z]{21}$/.test(id))).toBe(true)
  expect(new Set(ids).size).toBe(ids.length)
  expect(newId(12)).toMatch(/^[0-9a-z]{12}$/)
  expect(randomAlphanumerics(32)).toMatch(/^[0-9A-Za-z]{32}$/)
})

test('every character of the alphabet is used', () => {
  expect(new Set(newId(20_000)).size).toBe(36)
})

test('a random token carries 256 bits behind its prefix', () => {
  expect(randomToken('pat_')).toMatch(/^pat_[A-Za-z0-9_-]{43}$/)
})

test('random tokens do not repeat, whatever is drawn between them', () => {
  const tokens = Array.from({ length: 2_000 }, (_, number) => {
    newId(number % 30)
    return randomToken()
  })
  expect(new Set(tokens).size).toBe(tokens.length)
  // None has bytes that another one has used up.
  expect(tokens.filter((token) => /A{6}/.test(token))).toEqual([])
})

test('hexadecimal ids have their length and do not repeat, however they are mixed', () => {
  const ids = Array.from({ length: 4_000 }, (_, number) => randomHex(number % 2 === 0 ? 16 : 8))
  expect(ids.every((id, number) => /^[0-9a-f]+$/.test(id) && id.length === (number % 2 === 0 ? 32 : 16))).toBe(true)
  expect(new Set(ids.map((id) => id.slice(0, 16))).size).toBe(ids.length)
})

test('UUIDs of version 7 are well formed and sort by their time', () => {
  const uuid = uuidv7(0x0123456789ab)
  expect(uuid).toMatch(/^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(uuidv7(1_000) < uuidv7(1_001)).toBe(true)
})
