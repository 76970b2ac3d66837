import { randomBytes, randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  authenticationCredential,
  newUserHandle,
  registrationCredential,
  registrationOptions,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../../../../issuer/directory/users/factors/index.ts'
import { type CborValue, decode } from '../../../../../issuer/directory/users/factors/webauthn/cbor.ts'
import { createAuthenticator, encodeCbor, mapOf } from '../../../../../testing/authenticator.ts'
import { vectors } from './w3c-vectors.ts'

const bytes = (text: string) => Buffer.from(text, 'hex')

describe('CBOR', () => {
  // RFC 8949, appendix A, as far as authenticators write such.
  const examples: [hex: string, value: CborValue][] = [
    ['00', 0],
    ['17', 23],
    ['1818', 24],
    ['1903e8', 1000],
    ['1a000f4240', 1_000_000],
    ['1b000000e8d4a51000', 1_000_000_000_000],
    ['20', -1],
    ['3863', -100],
    ['3903e7', -1000],
    ['f4', false],
    ['f5', true],
    ['f6', null],
    ['4401020304', bytes('01020304')],
    ['60', ''],
    ['6449455446', 'IETF'],
    ['62c3bc', 'ü'],
    ['80', []],
    ['8301820203820405', [1, [2, 3], [4, 5]]],
    ['a0', new Map()],
    [
      'a201020304',
      new Map([
        [1, 2],
        [3, 4],
      ]),
    ],
    [
      'a26161016162820203',
      new Map<string, CborValue>([
        ['a', 1],
        ['b', [2, 3]],
      ]),
    ],
  ]
  test.each(examples)('%s', (hex, value) => expect(decode(bytes(hex))).toEqual(value))

  const refused: [what: string, hex: string][] = [
    ['nothing', ''],
    ['a second value', '0000'],
    ['a number that is cut off', '1903'],
    ['a number beyond 2^53', '1bffffffffffffffff'],
    ['text that is cut off', '6449'],
    ['text that is not UTF-8', '61ff'],
    ['a length beyond the end', '5b0000000100000000'],
    ['a list that promises four thousand million items', '9affffffff'],
    ['a map that promises as many', 'baffffffff'],
    ['a map without its last value', 'a101'],
    ['a key twice', 'a201010102'],
    ['a list as key', 'a18000'],
    ['bytes as key', 'a1410000'],
    ['bytes of indefinite length', '5f4101ff'],
    ['text of indefinite length', '7f6161ff'],
    ['a list of indefinite length', '9f01ff'],
    ['a map of indefinite length', 'bf0101ff'],
    ['a tag', 'c001'],
    ['a half float', 'f93c00'],
    ['a float', 'fa47c35000'],
    ['undefined', 'f7'],
    ['a break', 'ff'],
    ['reserved information', '1c'],
    ['a hundred lists in each other', `${'81'.repeat(100)}00`],
    ['a hundred maps in each other', `${'a100'.repeat(100)}00`],
    ['a million lists in each other', `${'81'.repeat(1_000_000)}00`],
  ]
  test.each(refused)('refuses %s', (_, hex) => {
    expect(() => decode(bytes(hex))).toThrow(expect.objectContaining({ refusal: 'malformed' }))
  })
})

describe('whatever browsers send, it is judged and nothing else happens', () => {
  const relyingParty = relyingPartyOf('https://example.org')
  const userHandle = newUserHandle()
  const rounds = 3_000

  /** One to eight changes, each of which leaves most as it was. */
  const mutated = (original: Buffer): Buffer => {
    let changed = Buffer.from(original)
    for (let count = randomInt(1, 9); count > 0; count--) {
      const place = randomInt(changed.length + 1)
      const change = randomInt(4)
      if (change === 0)
        changed = Buffer.concat([changed.subarray(0, place), randomBytes(randomInt(1, 6)), changed.subarray(place)])
      else if (change === 1) changed = changed.subarray(0, place)
      else if (change === 2)
        changed = Buffer.concat([changed.subarray(0, place), changed.subarray(place + randomInt(1, 6))])
      else if (place < changed.length) changed.writeUInt8(randomInt(256), place)
    }
    return changed
  }

  const judged = (outcome: { verified?: unknown; refused?: unknown }) =>
    expect(Object.keys(outcome).filter((name) => outcome[name as keyof typeof outcome] !== undefined)).toHaveLength(1)

  test('T 98: registrations', () => {
    const authenticator = createAuthenticator({ origin: 'https://example.org', algorithm: -8 })
    const owner = { handle: userHandle, name: 'ada', displayName: 'Ada' }
    const fresh = authenticator.create(registrationOptions(relyingParty, 'challenge', owner, []), {
      extensions: encodeCbor(mapOf(['credProtect', 1])),
    })
    const corpus = [
      Buffer.from(fresh.response.attestationObject, 'base64url'),
      ...vectors.map(({ registration }) => bytes(registration.attestationObject)),
    ]
    for (let round = 0; round < rounds; round++) {
      const attestationObject = mutated(corpus[round % corpus.length]!).toString('base64url')
      const answer = registrationCredential.safeParse({ ...fresh, response: { ...fresh.response, attestationObject } })
      if (answer.success) judged(verifyRegistration(answer.data, { challenge: 'challenge', relyingParty }))
    }
  })

  test('T 98: assertions', () => {
    const authenticator = createAuthenticator({ origin: 'https://example.org', algorithm: -8 })
    const owner = { handle: userHandle, name: 'ada', displayName: 'Ada' }
    const made = registrationCredential.parse(authenticator.create(registrationOptions(relyingParty, 'c', owner, [])))
    const stored = { ...verifyRegistration(made, { challenge: 'c', relyingParty }).verified!, userHandle }
    const right = authenticator.get({ challenge: 'challenge', rpId: 'example.org' })
    const expected = { challenge: 'challenge', relyingParty }
    expect(verifyAuthentication(authenticationCredential.parse(right), expected, stored).verified).toBeDefined()
    for (let round = 0; round < rounds; round++) {
      const name = (['clientDataJSON', 'authenticatorData', 'signature', 'userHandle'] as const)[round % 4]!
      const original = Buffer.from(right.response[name]!, 'base64url')
      const changed = mutated(original)
      if (changed.equals(original)) continue
      const value = changed.toString('base64url')
      const answer = authenticationCredential.safeParse({ ...right, response: { ...right.response, [name]: value } })
      if (!answer.success) continue
      const outcome = verifyAuthentication(answer.data, expected, stored)
      judged(outcome)
      expect(outcome.verified).toBeUndefined()
    }
  })
})
