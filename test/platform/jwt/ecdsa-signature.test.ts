import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { derToRaw, rawToDer } from '../../../platform/jwt/ecdsa-signature.ts'

const curves = [
  ['P-256', 'sha256', 32],
  ['P-384', 'sha384', 48],
  ['P-521', 'sha512', 66],
] as const

test.each(curves)(
  'signatures on %s survive both ways, as Node’s own conversion has them',
  (namedCurve, digest, size) => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve })
    // Some 1 in 256 integers begins with a zero byte, half of them need one in front.
    for (let round = 0; round < 600; round++) {
      const data = Buffer.from(`message ${round}`)
      const der = sign(digest, data, privateKey)
      const raw = derToRaw(der, size)
      expect(raw.length).toBe(2 * size)
      expect(rawToDer(raw)).toEqual(der)
      if (round % 20 === 0) expect(verify(digest, data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw)).toBe(true)
    }
  },
)

test('integers at the edges are encoded in DER’s shortest form', () => {
  const raw = (r: string, s: string) => Buffer.from(r.padStart(64, '0') + s.padStart(64, '0'), 'hex')
  expect(rawToDer(raw('00', '01')).toString('hex')).toBe('3006020100020101')
  expect(rawToDer(raw('7f', '80')).toString('hex')).toBe('300702017f02020080')
  expect(rawToDer(raw('ff'.repeat(32), 'ff'.repeat(32))).toString('hex')).toBe(
    `3046${`022100${'ff'.repeat(32)}`.repeat(2)}`,
  )
  for (const edge of [raw('00', '00'), raw('80', '7f'), raw('ff'.repeat(32), '0100')]) {
    expect(derToRaw(rawToDer(edge), 32)).toEqual(edge)
  }
})

test('what is no signature of that size is refused', () => {
  const der = sign('sha384', Buffer.from('x'), generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)
  expect(() => derToRaw(der, 32)).toThrow(TypeError)
  expect(() => derToRaw(Buffer.from('300602010003010100', 'hex'), 32)).toThrow(TypeError)
})
