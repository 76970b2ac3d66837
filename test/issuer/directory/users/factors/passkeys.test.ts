import { randomBytes } from 'node:crypto'
import {
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { describe, expect, test } from 'vitest'
import {
  authenticationCredential,
  authenticationOptions,
  type Judgement,
  newUserHandle,
  type PasskeyRefusal,
  registrationCredential,
  registrationOptions,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../../../../issuer/directory/users/factors/index.ts'
import { randomToken } from '../../../../../platform/ids.ts'
import {
  type AssertionFaults,
  type AuthenticationJson,
  type AuthenticatorOptions,
  type CreationFaults,
  createAuthenticator,
  encodeCbor,
  mapOf,
  type RegistrationJson,
} from '../../../../../testing/authenticator.ts'

/**
 * Both ceremonies, and every way in which they must be refused. `@simplewebauthn/server` judges each case too; where it
 * accepts what is refused here, or the other way round, the case says why.
 */

const origin = 'https://login.example.test'
const relyingParty = relyingPartyOf(origin)
const algorithms = { ES256: -7, EdDSA: -8, RS256: -257 }

const malformed: Judgement<never> = { refused: 'malformed' }

const attempt = async (work: Promise<{ verified: boolean }>): Promise<boolean> => {
  try {
    return (await work).verified
  } catch {
    return false
  }
}

const expectedBySecond = { expectedOrigin: origin, expectedRPID: relyingParty.id, requireUserVerification: true }

const judgeRegistration = async (answer: RegistrationJson, challenge: string) => {
  const parsed = registrationCredential.safeParse(answer)
  const ours = parsed.success ? verifyRegistration(parsed.data, { challenge, relyingParty }) : malformed
  const second = await attempt(
    verifyRegistrationResponse({
      ...expectedBySecond,
      response: answer as RegistrationResponseJSON,
      expectedChallenge: challenge,
      supportedAlgorithmIDs: Object.values(algorithms),
    }),
  )
  return { ours, second }
}

const register = (options: Partial<AuthenticatorOptions> = {}, faults: CreationFaults = {}) => {
  const authenticator = createAuthenticator({ origin, ...options })
  const challenge = randomToken()
  const owner = { handle: newUserHandle(), name: 'ada', displayName: 'Ada' }
  const answer = authenticator.create(registrationOptions(relyingParty, challenge, owner, []), faults)
  return { authenticator, challenge, owner, answer }
}

/** A passkey of somebody, as it would be stored. */
const registered = (options?: Partial<AuthenticatorOptions>) => {
  const { authenticator, challenge, owner, answer } = register(options)
  const { verified } = verifyRegistration(registrationCredential.parse(answer), { challenge, relyingParty })
  expect(verified).toBeDefined()
  return { authenticator, stored: { ...verified!, userHandle: owner.handle } }
}

type Registered = ReturnType<typeof registered>

const judgeAssertion = async (
  { authenticator, stored }: Pick<Registered, 'authenticator' | 'stored'>,
  answer: AuthenticationJson,
  challenge: string,
  identified?: Buffer,
) => {
  const parsed = authenticationCredential.safeParse(answer)
  const ours = parsed.success
    ? verifyAuthentication(parsed.data, { challenge, relyingParty }, stored, identified)
    : malformed
  const second = await attempt(
    verifyAuthenticationResponse({
      ...expectedBySecond,
      response: answer as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      credential: {
        id: stored.credentialId.toString('base64url'),
        publicKey: new Uint8Array(authenticator.credentials[0]!.coseKey),
        counter: stored.signCount,
      },
    }),
  )
  return { ours, second }
}

const assert = (
  passkey: Pick<Registered, 'authenticator' | 'stored'>,
  faults: AssertionFaults = {},
  identified: Buffer | undefined = passkey.stored.userHandle,
) => {
  const challenge = randomToken()
  const answer = passkey.authenticator.get(authenticationOptions(relyingParty, challenge), faults)
  return judgeAssertion(passkey, answer, challenge, identified)
}

describe('a passkey', () => {
  test.each(Object.entries(algorithms))('with %s is registered and signs in', async (_, algorithm) => {
    const { authenticator, challenge, owner, answer } = register({ algorithm })
    const { ours, second } = await judgeRegistration(answer, challenge)
    expect(ours.verified).toEqual({
      credentialId: Buffer.from(answer.id, 'base64url'),
      publicKey: expect.any(Buffer),
      algorithm,
      signCount: 0,
      transports: ['hybrid', 'internal'],
      isBackupEligible: true,
      isBackedUp: true,
    })
    expect(second).toBe(true)
    const stored = { ...ours.verified!, userHandle: owner.handle }
    const accepted = { verified: { signCount: 0, isBackedUp: true, isCounterBehind: false } }
    expect(await assert({ authenticator, stored })).toEqual({ ours: accepted, second: true })
    const challengeOfOther = randomToken()
    const discoverable = authenticator.get(authenticationOptions(relyingParty, challengeOfOther))
    expect(
      verifyAuthentication(
        authenticationCredential.parse(discoverable),
        { challenge: challengeOfOther, relyingParty },
        stored,
      ),
    ).toEqual(accepted)
  })

  test('is asked for as browsers read it, and not made twice on one device', () => {
    const { authenticator, answer } = register()
    const owner = { handle: newUserHandle(), name: 'ada@example.test', displayName: 'Ada' }
    const existing = [{ credentialId: Buffer.from(answer.id, 'base64url'), transports: ['internal'] }]
    const options = registrationOptions(relyingParty, 'challenge', owner, existing)
    expect(JSON.parse(JSON.stringify(options))).toEqual({
      rp: { id: 'login.example.test', name: 'login.example.test' },
      user: { id: owner.handle.toString('base64url'), name: 'ada@example.test', displayName: 'Ada' },
      challenge: 'challenge',
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: 'public-key', alg })),
      timeout: 300_000,
      excludeCredentials: [{ id: answer.id, type: 'public-key', transports: ['internal'] }],
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      attestation: 'none',
    })
    expect(() => authenticator.create(options)).toThrow('InvalidStateError')
    expect(authenticationOptions(relyingParty, 'challenge', existing)).toEqual({
      challenge: 'challenge',
      rpId: 'login.example.test',
      timeout: 300_000,
      allowCredentials: [{ id: answer.id, type: 'public-key', transports: ['internal'] }],
      userVerification: 'required',
    })
  })

  test('works on further origins only where they are named', () => {
    const challenge = randomToken()
    const app = createAuthenticator({ origin: 'https://app.example.test' })
    const named = relyingPartyOf('https://example.test/', ['https://app.example.test'])
    expect(named.origins).toEqual(['https://example.test', 'https://app.example.test'])
    const owner = { handle: newUserHandle(), name: 'ada', displayName: 'Ada' }
    const answer = registrationCredential.parse(app.create(registrationOptions(named, challenge, owner, [])))
    expect(verifyRegistration(answer, { challenge, relyingParty: named }).verified).toBeDefined()
    const relyingPartyAlone = relyingPartyOf('https://example.test')
    expect(verifyRegistration(answer, { challenge, relyingParty: relyingPartyAlone })).toEqual({
      refused: 'wrong_origin',
    })
  })

  test.each<[CreationFaults, string | undefined]>([
    [{ flags: { up: false, uv: false } }, undefined],
    [{ flags: { up: false, uv: false, be: false, bs: true } }, 'backup_flags_contradict'],
    [{ flags: { up: false, uv: false }, rpId: 'evil.test' }, 'wrong_relying_party'],
  ])('made by a password manager by itself, nobody has to be seen, and all else holds: %j', (faults, refused) => {
    const { challenge, answer } = register({}, faults)
    const expected = { challenge, relyingParty, isConditional: true }
    expect(verifyRegistration(registrationCredential.parse(answer), expected).refused).toBe(refused)
  })
})

const secp256k1 = () => createAuthenticator({ origin, algorithm: -47 })
const otherKey = (entries: Parameters<typeof mapOf>) => encodeCbor(mapOf(...entries))
const x = randomBytes(32)

/** Why the second judge accepts what is refused here. */
type Lenient = string | undefined

/** Of what it accepts or not as chance would have it. */
const sometimes = 'sometimes: '

const secondJudges = (lenient: Lenient) =>
  lenient?.startsWith(sometimes) ? expect.any(Boolean) : lenient !== undefined

describe('a registration is refused', () => {
  const cases: [name: string, faults: CreationFaults, refusal: PasskeyRefusal, lenient?: Lenient][] = [
    ['T 90: on another origin', { clientData: { origin: 'https://evil.test' } }, 'wrong_origin'],
    ['T 90: on an origin below', { clientData: { origin: 'https://a.login.example.test' } }, 'wrong_origin'],
    ['T 90: on the origin without TLS', { clientData: { origin: 'http://login.example.test' } }, 'wrong_origin'],
    ['T 90: on another port', { clientData: { origin: `${origin}:8443` } }, 'wrong_origin'],
    [
      'T 90: in a frame',
      { clientData: { crossOrigin: true } },
      'cross_origin',
      'Safari says no topOrigin, and it looks at that alone',
    ],
    [
      'T 90: in a frame on a named page',
      { clientData: { crossOrigin: true, topOrigin: 'https://evil.test' } },
      'cross_origin',
      'it looks at frames in assertions alone',
    ],
    ['T 91: for another relying party', { rpId: 'evil.test' }, 'wrong_relying_party'],
    ['T 92: with an assertion’s type', { clientData: { type: 'webauthn.get' } }, 'wrong_type'],
    ['T 92: to another challenge', { clientData: { challenge: randomToken() } }, 'wrong_challenge'],
    ['T 92: without a challenge', { clientData: { challenge: '' } }, 'wrong_challenge'],
    ['T 93: without presence', { flags: { up: false } }, 'user_not_present'],
    ['T 93: without verification', { flags: { uv: false } }, 'user_not_verified'],
    ['T 93: backed up but not eligible', { flags: { be: false, bs: true } }, 'backup_flags_contradict'],
    [
      'T 94: a key of RSASSA with SHA-1',
      {
        coseKey: otherKey([
          [1, 3],
          [3, -65_535],
          [-1, randomBytes(256)],
          [-2, Buffer.of(1, 0, 1)],
        ]),
      },
      'unsupported_algorithm',
    ],
    [
      'T 94: a key without an algorithm',
      {
        coseKey: otherKey([
          [1, 2],
          [-1, 1],
          [-2, x],
          [-3, x],
        ]),
      },
      'unsupported_algorithm',
    ],
    [
      'T 94: a point that is not on the curve',
      {
        coseKey: otherKey([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, x],
          [-3, x],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 94: a compressed point',
      {
        coseKey: otherKey([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, x],
          [-3, true],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 94: another curve than the algorithm’s',
      {
        coseKey: otherKey([
          [1, 2],
          [3, -7],
          [-1, 8],
          [-2, x],
          [-3, x],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 94: another type of key than the algorithm’s',
      {
        coseKey: otherKey([
          [1, 1],
          [3, -7],
          [-1, 1],
          [-2, x],
          [-3, x],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 94: an RSA key of 1024 bits',
      {
        coseKey: otherKey([
          [1, 3],
          [3, -257],
          [-1, Buffer.concat([Buffer.of(0xc1), randomBytes(126), Buffer.of(1)])],
          [-2, Buffer.of(1, 0, 1)],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 94: an RSA key whose exponent is 1',
      {
        coseKey: otherKey([
          [1, 3],
          [3, -257],
          [-1, Buffer.concat([Buffer.of(0xc1), randomBytes(254), Buffer.of(1)])],
          [-2, Buffer.of(1)],
        ]),
      },
      'unsupported_key',
      'it looks at the key when it is used',
    ],
    [
      'T 98: with bytes behind the attestation',
      { attestationObject: (right) => Buffer.concat([right, Buffer.of(0)]) },
      'malformed',
      'it reads the first value alone',
    ],
    [
      'T 98: with bytes behind the key',
      { authenticatorData: (right) => Buffer.concat([right, Buffer.of(0)]) },
      'malformed',
    ],
    [
      'T 98: of an indefinite length',
      { attestationObject: (right) => Buffer.concat([Buffer.of(0xbf), right.subarray(1), Buffer.of(0xff)]) },
      'malformed',
    ],
    [
      'T 98: nested a hundred deep',
      { statement: Buffer.concat([Buffer.alloc(100, 0x81), Buffer.of(0)]) },
      'malformed',
      'it has no bound',
    ],
    [
      'T 98: with a key that comes twice',
      { statement: Buffer.concat([Buffer.of(0xa2), encodeCbor('a'), encodeCbor(1), encodeCbor('a'), encodeCbor(2)]) },
      'malformed',
    ],
    [
      'T 98: that promises more than there is',
      { statement: Buffer.of(0x5b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff) },
      'malformed',
    ],
    [
      'T 98: of a megabyte',
      { statement: encodeCbor(randomBytes(1_000_000)) },
      'malformed',
      'it leaves that to whoever reads the request',
    ],
    [
      'without a credential',
      { authenticatorData: (right) => Buffer.concat([right.subarray(0, 32), Buffer.of(0x05), right.subarray(33, 37)]) },
      'malformed',
    ],
    ['cut off within the credential', { authenticatorData: (right) => right.subarray(0, 60) }, 'malformed'],
    ['cut off within the flags', { authenticatorData: (right) => right.subarray(0, 36) }, 'malformed'],
    ['with an id of nothing', { credentialId: Buffer.alloc(0) }, 'malformed'],
    ['with an id of 1024 bytes', { credentialId: randomBytes(1_024) }, 'malformed', 'it has no bound'],
  ]
  test.each(cases)('%s', async (_, faults, refusal, lenient) => {
    const { challenge, answer } = register({}, faults)
    expect(await judgeRegistration(answer, challenge)).toEqual({
      ours: { refused: refusal },
      second: secondJudges(lenient),
    })
  })

  test('T 94: with a key for ES256K', async () => {
    const challenge = randomToken()
    const owner = { handle: newUserHandle(), name: 'ada', displayName: 'Ada' }
    const answer = secp256k1().create(registrationOptions(relyingParty, challenge, owner, []))
    expect(await judgeRegistration(answer, challenge)).toEqual({
      ours: { refused: 'unsupported_algorithm' },
      second: false,
    })
  })

  test('when the id of the answer is not the one that the authenticator says', async () => {
    const { challenge, answer } = register()
    const other = randomBytes(32).toString('base64url')
    const forged = await judgeRegistration({ ...answer, id: other, rawId: other }, challenge)
    // It answers the authenticator's.
    expect(forged).toEqual({ ours: { refused: 'wrong_credential' }, second: true })
    expect((await judgeRegistration({ ...answer, id: other }, challenge)).ours).toEqual({ refused: 'malformed' })
  })
})

test('T 99: whatever the attestation statement is, it is not looked at', async () => {
  const garbage = encodeCbor(mapOf(['alg', -7], ['sig', randomBytes(70)], ['x5c', [randomBytes(500), randomBytes(3)]]))
  for (const [format, statement] of [
    ['none', garbage],
    ['packed', garbage],
    ['fido-u2f', encodeCbor('no map')],
    ['of tomorrow', encodeCbor([1, null])],
  ] as const) {
    const { challenge, answer } = register({}, { format, statement })
    expect((await judgeRegistration(answer, challenge)).ours.verified, format).toBeDefined()
  }
})

test('extensions of authenticators are read over', async () => {
  const extensions = encodeCbor(mapOf(['credProtect', 2], ['hmac-secret', true]))
  const { challenge, answer } = register({}, { extensions })
  const { ours, second } = await judgeRegistration(answer, challenge)
  expect([ours.verified !== undefined, second]).toEqual([true, true])
  const passkey = registered()
  expect((await assert(passkey, { extensions })).ours.verified).toBeDefined()
  expect((await assert(passkey, { extensions: encodeCbor(1) })).ours).toEqual({ refused: 'malformed' })
})

/** The DER of a signature with other bytes for the same two numbers. */
const paddedDer = (right: Buffer) => {
  const length = right[3]!
  const r = Buffer.concat([Buffer.of(2, length + 1, 0), right.subarray(4, 4 + length)])
  return Buffer.concat([Buffer.of(0x30, right[1]! + 1), r, right.subarray(4 + length)])
}
const longDer = (right: Buffer) => Buffer.concat([Buffer.of(0x30, 0x81, right[1]!), right.subarray(2)])

describe('an assertion is refused', () => {
  const cases: [name: string, faults: AssertionFaults, refusal: PasskeyRefusal, lenient?: Lenient][] = [
    ['T 90: on another origin', { clientData: { origin: 'https://evil.test' } }, 'wrong_origin'],
    ['T 90: on an origin below', { clientData: { origin: 'https://a.login.example.test' } }, 'wrong_origin'],
    ['T 90: on the origin without TLS', { clientData: { origin: 'http://login.example.test' } }, 'wrong_origin'],
    [
      'T 90: in a frame',
      { clientData: { crossOrigin: true } },
      'cross_origin',
      'Safari says no topOrigin, and it looks at that alone',
    ],
    ['T 91: for another relying party', { rpId: 'evil.test' }, 'wrong_relying_party'],
    ['T 92: with a registration’s type', { clientData: { type: 'webauthn.create' } }, 'wrong_type'],
    ['T 92: to another challenge', { clientData: { challenge: randomToken() } }, 'wrong_challenge'],
    ['T 93: without presence', { flags: { up: false } }, 'user_not_present'],
    ['T 93: without verification', { flags: { uv: false } }, 'user_not_verified'],
    [
      'T 93: no longer eligible for backup',
      { flags: { be: false, bs: false } },
      'backup_eligibility_changed',
      'it does not know what the credential was',
    ],
    ['T 93: backed up but not eligible', { flags: { be: false, bs: true } }, 'backup_flags_contradict'],
    [
      'T 94: with a bit of the signature changed',
      { signature: (right) => Buffer.concat([right.subarray(0, -1), Buffer.of(right.at(-1)! ^ 1)]) },
      'wrong_signature',
    ],
    [
      'T 94: with a number written longer',
      { signature: paddedDer },
      'wrong_signature',
      `${sometimes}it takes one zero too many`,
    ],
    [
      'T 94: with a length written longer',
      { signature: longDer },
      'wrong_signature',
      'it takes the numbers out of any BER',
    ],
    [
      'T 94: with bytes behind the signature',
      { signature: (right) => Buffer.concat([right, Buffer.of(0)]) },
      'wrong_signature',
      'it takes the numbers out of any BER',
    ],
    [
      'T 94: with a signature of nothing but zeros',
      { signature: () => Buffer.from('3006020100020100', 'hex') },
      'wrong_signature',
    ],
    ['T 95: naming another user', { userHandle: randomBytes(32) }, 'wrong_user', 'it leaves that to its caller'],
    [
      'T 98: with bytes behind what is signed',
      { authenticatorData: (right) => Buffer.concat([right, Buffer.of(0)]) },
      'malformed',
    ],
  ]
  test.each(cases)('%s', async (_, faults, refusal, lenient) => {
    expect(await assert(registered(), faults)).toEqual({
      ours: { refused: refusal },
      second: secondJudges(lenient),
    })
  })

  test('T 92: when its challenge is that of another answer', async () => {
    const passkey = registered()
    const challenge = randomToken()
    const answer = passkey.authenticator.get(authenticationOptions(relyingParty, challenge))
    expect((await judgeAssertion(passkey, answer, challenge)).ours.verified).toBeDefined()
    expect(await judgeAssertion(passkey, answer, randomToken())).toEqual({
      ours: { refused: 'wrong_challenge' },
      second: false,
    })
  })

  test('T 94: when another key made the signature', async () => {
    const [passkey, other] = [registered(), registered()]
    const challenge = randomToken()
    const forged = other.authenticator.get(authenticationOptions(relyingParty, challenge), {
      userHandle: passkey.stored.userHandle,
    })
    const id = passkey.stored.credentialId.toString('base64url')
    expect(await judgeAssertion(passkey, { ...forged, id, rawId: id }, challenge)).toEqual({
      ours: { refused: 'wrong_signature' },
      second: false,
    })
  })

  test.each([
    ['EdDSA', -8],
    ['RS256', -257],
    ['none that there is', -65_535],
  ])('T 94: when the key is stored for %s', async (_, algorithm) => {
    const passkey = registered()
    const { ours } = await assert({ ...passkey, stored: { ...passkey.stored, algorithm } })
    expect(ours).toEqual({ refused: 'wrong_signature' })
  })

  test('T 95: without a user where nobody was identified', async () => {
    const passkey = registered()
    const challenge = randomToken()
    const answer = passkey.authenticator.get(authenticationOptions(relyingParty, challenge), { userHandle: null })
    expect((await judgeAssertion(passkey, answer, challenge)).ours).toEqual({ refused: 'wrong_user' })
    // Who was identified need not be said again.
    expect((await assert(passkey, { userHandle: null })).ours.verified).toBeDefined()
  })

  test('T 95: with the passkey of somebody else than who was identified', async () => {
    const passkey = registered()
    expect((await assert(passkey, {}, newUserHandle())).ours).toEqual({ refused: 'wrong_user' })
  })

  test('T 95: by another credential than the one that was looked up', async () => {
    const [passkey, other] = [registered(), registered()]
    const challenge = randomToken()
    const answer = other.authenticator.get(authenticationOptions(relyingParty, challenge))
    expect((await judgeAssertion(passkey, answer, challenge)).ours).toEqual({ refused: 'wrong_credential' })
  })
})

describe('T 97: the signature counter', () => {
  const cases: [before: number, now: number, alone: 'ok' | 'refused', synced: 'ok' | 'behind'][] = [
    [0, 0, 'ok', 'ok'],
    [0, 1, 'ok', 'ok'],
    [5, 6, 'ok', 'ok'],
    [5, 5, 'refused', 'behind'],
    [5, 4, 'refused', 'behind'],
    [5, 0, 'refused', 'behind'],
  ]
  test.each(cases)('from %i to %i', async (before, now, alone, synced) => {
    for (const isBackupEligible of [false, true]) {
      const passkey = registered({ isBackupEligible })
      const stored = { ...passkey.stored, signCount: before }
      const { ours, second } = await assert({ ...passkey, stored }, { signCount: now })
      const outcome = isBackupEligible ? synced : alone
      if (outcome === 'refused') expect(ours).toEqual({ refused: 'counter_not_increased' })
      else
        expect(ours.verified).toEqual({
          signCount: now,
          isBackedUp: isBackupEligible,
          isCounterBehind: outcome === 'behind',
        })
      // It refuses a synced passkey too whose devices count each for themselves.
      expect(second).toBe(outcome === 'ok')
    }
  })

  test('what is kept of a backup is what it is now', async () => {
    const { ours } = await assert(registered(), { flags: { bs: false } })
    expect(ours.verified).toMatchObject({ isBackedUp: false })
  })
})
