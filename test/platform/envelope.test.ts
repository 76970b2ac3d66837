import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createEnvelope } from '../../platform/envelope.ts'

test('a sealed value opens only in its own context and unchanged', () => {
  const envelope = createEnvelope({ current: randomBytes(32) })
  const sealed = envelope.seal('private key', 'signing-key:a')

  expect(envelope.open(sealed, 'signing-key:a').toString()).toBe('private key')
  expect(() => envelope.open(sealed, 'signing-key:b')).toThrow()
  for (const index of [0, 1, 5, 17, 33, sealed.length - 1]) {
    const changed = Buffer.from(sealed)
    changed[index]! ^= 1
    expect(() => envelope.open(changed, 'signing-key:a'), `byte ${index} changed`).toThrow()
  }
  expect(() => envelope.open(sealed.subarray(0, 20), 'signing-key:a')).toThrow('not a sealed value')
})

test('sealing twice gives different bytes, and none of them is the plaintext', () => {
  const envelope = createEnvelope({ current: randomBytes(32) })
  const [first, second] = [envelope.seal('whsec', 'hook:1'), envelope.seal('whsec', 'hook:1')]
  expect(first.equals(second)).toBe(false)
  expect(first.includes('whsec')).toBe(false)
})

test('while the key is replaced, the previous one is still readable, and what it sealed is known to be stale', () => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
  const sealed = createEnvelope({ current: oldKey }).seal('value', 'context')
  const rotating = createEnvelope({ current: newKey, previous: oldKey })

  expect(rotating.open(sealed, 'context').toString()).toBe('value')
  expect(rotating.isStale(sealed)).toBe(true)
  expect(rotating.isStale(rotating.seal('value', 'context'))).toBe(false)
  expect(() => createEnvelope({ current: newKey }).open(sealed, 'context')).toThrow('not configured')
})

test('a key of another length is refused', () => {
  expect(() => createEnvelope({ current: randomBytes(16) })).toThrow('32 bytes')
})
