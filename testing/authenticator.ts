import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, type webcrypto } from 'node:crypto'

/**
 * An authenticator and its browser in software: what `navigator.credentials` answers to options as JSON. `faults` make
 * what a right one never would.
 */
export interface Authenticator {
  /** `navigator.credentials.create()`. Throws `InvalidStateError` when it has one of those to leave out. */
  create(options: CreationOptions, faults?: CreationFaults): RegistrationJson
  /** `navigator.credentials.get()`. Throws `NotAllowedError` when it has none that fits. */
  get(options: RequestOptions, faults?: AssertionFaults): AuthenticationJson
  /** What it holds, the newest last. */
  credentials: readonly HeldCredential[]
}

export interface AuthenticatorOptions {
  /** Of the page. */
  origin: string
  /** COSE: -7, -8 or -257. Default: the first that the options ask for and that it knows. */
  algorithm?: number
  /** A passkey that may live on several devices. Default true, as those of phones and browsers. */
  isBackupEligible?: boolean
  /** What the counter says next. Default: it does not count. */
  countsFrom?: number
}

/** `PublicKeyCredentialCreationOptionsJSON`, as far as it is read. */
export interface CreationOptions {
  rp: { id: string }
  user: { id: string }
  challenge: string
  pubKeyCredParams: readonly { alg: number }[]
  excludeCredentials?: readonly { id: string }[]
}

/** `PublicKeyCredentialRequestOptionsJSON`, as far as it is read. */
export interface RequestOptions {
  challenge: string
  rpId: string
  allowCredentials?: readonly { id: string }[]
}

export interface RegistrationJson {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; attestationObject: string; transports: string[] }
  clientExtensionResults: Record<string, unknown>
}

export interface AuthenticationJson {
  id: string
  rawId: string
  type: 'public-key'
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string }
  clientExtensionResults: Record<string, unknown>
}

export interface HeldCredential {
  id: string
  rpId: string
  userHandle: string
  algorithm: number
  privateKey: KeyObject
  /** COSE, as `create` sent it. */
  coseKey: Buffer
}

export interface Flags {
  up?: boolean
  uv?: boolean
  be?: boolean
  bs?: boolean
}

interface Faults {
  /** Members of `clientDataJSON`, in the place of the right ones. */
  clientData?: Record<string, unknown>
  rpId?: string
  flags?: Flags
  signCount?: number
  /** CBOR, behind everything, with its flag. */
  extensions?: Buffer
  authenticatorData?(right: Buffer): Buffer
}

export interface CreationFaults extends Faults {
  /** A COSE key that is sent instead. */
  coseKey?: Buffer
  credentialId?: Buffer
  format?: string
  /** CBOR */
  statement?: Buffer
  attestationObject?(right: Buffer): Buffer
}

export interface AssertionFaults extends Faults {
  /** Of those it holds, the one that answers whatever is asked. */
  credential?: HeldCredential
  /** Null: it says none. */
  userHandle?: Buffer | null
  signature?(right: Buffer): Buffer
}

const sha256 = (value: string | Buffer) => createHash('sha256').update(value).digest()
const named = (name: string) => Object.assign(new Error(name), { name })

/** CBOR of what authenticators write. Integers, text, bytes, lists, maps as entries. */
export type Cbor = number | string | boolean | null | Buffer | readonly Cbor[] | CborEntries
export class CborEntries {
  readonly entries: readonly (readonly [number | string, Cbor])[]
  constructor(entries: readonly (readonly [number | string, Cbor])[]) {
    this.entries = entries
  }
}
export const mapOf = (...entries: (readonly [number | string, Cbor])[]) => new CborEntries(entries)

const head = (major: number, value: number): Buffer => {
  const [information, bytes] = value < 24 ? [value, 0] : value < 256 ? [24, 1] : value < 65_536 ? [25, 2] : [26, 4]
  const buffer = Buffer.alloc(1 + bytes)
  buffer[0] = (major << 5) | information
  if (bytes > 0) buffer.writeUIntBE(value, 1, bytes)
  return buffer
}

export const encodeCbor = (value: Cbor): Buffer => {
  if (typeof value === 'number') return value >= 0 ? head(0, value) : head(1, -1 - value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (value === null || typeof value === 'boolean') return Buffer.of(value === null ? 0xf6 : value ? 0xf5 : 0xf4)
  if (value instanceof CborEntries) {
    const items = value.entries.flatMap(([name, member]) => [encodeCbor(name), encodeCbor(member)])
    return Buffer.concat([head(5, value.entries.length), ...items])
  }
  return Buffer.concat([head(4, value.length), ...value.map(encodeCbor)])
}

interface KeyKind {
  make(): KeyObject
  cose(jwk: webcrypto.JsonWebKey): Cbor
  hash: string | null
}

const bytes = (text: string | undefined) => Buffer.from(text!, 'base64url')

/** By COSE algorithm. The last two are no relying party's wish. */
const kinds: Readonly<Record<number, KeyKind>> = {
  [-7]: {
    make: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    cose: ({ x, y }) => mapOf([1, 2], [3, -7], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]),
    hash: 'sha256',
  },
  [-8]: {
    make: () => generateKeyPairSync('ed25519').privateKey,
    cose: ({ x }) => mapOf([1, 1], [3, -8], [-1, 6], [-2, bytes(x)]),
    hash: null,
  },
  [-257]: {
    make: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey,
    cose: ({ n, e }) => mapOf([1, 3], [3, -257], [-1, bytes(n)], [-2, bytes(e)]),
    hash: 'sha256',
  },
  [-47]: {
    make: () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey,
    cose: ({ x, y }) => mapOf([1, 2], [3, -47], [-1, 8], [-2, bytes(x)], [-3, bytes(y)]),
    hash: 'sha256',
  },
  [-65_535]: {
    make: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey,
    cose: ({ n, e }) => mapOf([1, 3], [3, -65_535], [-1, bytes(n)], [-2, bytes(e)]),
    hash: 'sha1',
  },
}

export const createAuthenticator = ({
  origin,
  algorithm,
  isBackupEligible = true,
  countsFrom,
}: AuthenticatorOptions): Authenticator => {
  const credentials: HeldCredential[] = []
  let count = countsFrom ?? 0
  const nextCount = () => (countsFrom === undefined ? 0 : count++)

  const clientDataOf = (type: string, challenge: string, { clientData }: Faults): Buffer =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false, ...clientData }))

  const authenticatorDataOf = (rpId: string, faults: Faults, attested?: Buffer): Buffer => {
    const { up = true, uv = true, be = isBackupEligible, bs = isBackupEligible } = faults.flags ?? {}
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(faults.signCount ?? nextCount())
    const set = [up, false, uv, be, bs, false, attested !== undefined, faults.extensions !== undefined]
    const flags = set.reduce((sum, isSet, bit) => sum | (isSet ? 1 << bit : 0), 0)
    const parts = [sha256(faults.rpId ?? rpId), Buffer.of(flags), counter, attested, faults.extensions]
    const right = Buffer.concat(parts.filter((part) => part !== undefined))
    return faults.authenticatorData?.(right) ?? right
  }

  return {
    credentials,

    create(options, faults = {}) {
      if (options.excludeCredentials?.some(({ id }) => credentials.some((held) => held.id === id)))
        throw named('InvalidStateError')
      const offered = options.pubKeyCredParams.map(({ alg }) => alg)
      const chosen = algorithm ?? offered.find((alg) => kinds[alg])
      const kind = kinds[chosen!]
      if (chosen === undefined || kind === undefined) throw named('NotSupportedError')
      const privateKey = kind.make()
      const coseKey = faults.coseKey ?? encodeCbor(kind.cose(privateKey.export({ format: 'jwk' })))
      const credentialId = faults.credentialId ?? randomBytes(32)
      const id = credentialId.toString('base64url')
      const length = Buffer.alloc(2)
      length.writeUInt16BE(credentialId.length)
      const attested = Buffer.concat([Buffer.alloc(16), length, credentialId, coseKey])
      const authData = authenticatorDataOf(options.rp.id, faults, attested)
      // The statement stands between the others, as browsers write it.
      const right = Buffer.concat([
        Buffer.of(0xa3),
        encodeCbor('fmt'),
        encodeCbor(faults.format ?? 'none'),
        encodeCbor('attStmt'),
        faults.statement ?? encodeCbor(mapOf()),
        encodeCbor('authData'),
        encodeCbor(authData),
      ])
      const attestationObject = faults.attestationObject?.(right) ?? right
      credentials.push({
        id,
        rpId: options.rp.id,
        userHandle: options.user.id,
        algorithm: chosen,
        privateKey,
        coseKey,
      })
      return {
        id,
        rawId: id,
        type: 'public-key',
        response: {
          clientDataJSON: clientDataOf('webauthn.create', options.challenge, faults).toString('base64url'),
          attestationObject: attestationObject.toString('base64url'),
          transports: isBackupEligible ? ['hybrid', 'internal'] : ['usb', 'nfc'],
        },
        clientExtensionResults: {},
      }
    },

    get(options, faults = {}) {
      const allowed = options.allowCredentials ?? []
      const fits = ({ id, rpId }: HeldCredential) =>
        rpId === options.rpId && (allowed.length === 0 || allowed.some((one) => one.id === id))
      const held = faults.credential ?? credentials.findLast(fits)
      if (held === undefined) throw named('NotAllowedError')
      const clientData = clientDataOf('webauthn.get', options.challenge, faults)
      const authenticatorData = authenticatorDataOf(options.rpId, faults)
      const signed = Buffer.concat([authenticatorData, sha256(clientData)])
      const right = sign(kinds[held.algorithm]!.hash, signed, held.privateKey)
      const signature = faults.signature?.(right) ?? right
      const userHandle = faults.userHandle === undefined ? held.userHandle : faults.userHandle?.toString('base64url')
      return {
        id: held.id,
        rawId: held.id,
        type: 'public-key',
        response: {
          clientDataJSON: clientData.toString('base64url'),
          authenticatorData: authenticatorData.toString('base64url'),
          signature: signature.toString('base64url'),
          ...(userHandle !== undefined && { userHandle }),
        },
        clientExtensionResults: {},
      }
    },
  }
}
