import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createProofKeys } from '../../../gateway/caller/dpop/proof-keys.ts'
import { readProofKey } from '../../../platform/dpop/proof-key.ts'

const ecJwk = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const rsaJwk = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })

/** As each proof brings it. */
const ofProof = (jwk: object, alg = 'ES256') => readProofKey(jwk, alg)!

test('a key is imported once, however many proofs bring it', () => {
  const importKey = createProofKeys()
  const jwk = ecJwk()
  const first = importKey(ofProof(jwk), 'ES256')
  expect(first).toMatchObject({ alg: 'ES256' })
  expect(importKey(ofProof(jwk), 'ES256')).toBe(first)
  expect(importKey(ofProof(ecJwk()), 'ES256')).not.toBe(first)
})

test('a key is of the algorithm that its proof names, whatever it was used with before', () => {
  const importKey = createProofKeys()
  const jwk = rsaJwk()
  expect(importKey(ofProof(jwk, 'RS256'), 'RS256')).toMatchObject({ alg: 'RS256' })
  expect(importKey(ofProof(jwk, 'PS256'), 'PS256')).toMatchObject({ alg: 'PS256' })
})

test('what is no key on its curve stays none', () => {
  const importKey = createProofKeys()
  const jwk = { ...ecJwk(), x: 'A'.repeat(43) }
  expect(importKey(ofProof(jwk), 'ES256')).toBeUndefined()
  expect(importKey(ofProof(jwk), 'ES256')).toBeUndefined()
})

test('the oldest goes first', () => {
  const importKey = createProofKeys({ most: 2 })
  const jwks = [ecJwk(), ecJwk(), ecJwk()] as const
  const [oldest, , newest] = jwks.map((jwk) => importKey(ofProof(jwk), 'ES256'))
  expect(importKey(ofProof(jwks[2]), 'ES256')).toBe(newest)
  expect(importKey(ofProof(jwks[0]), 'ES256')).not.toBe(oldest)
})
