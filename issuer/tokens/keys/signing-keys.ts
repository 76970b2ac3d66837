import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Notifier } from '../../../events/notifier.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { VerificationKey } from '../../../platform/jwt/keys.ts'
import type { Logger } from '../../../platform/logger.ts'
import { sha256 } from '../../../platform/secret.ts'
import { firstAlgorithm, type KeyChain, keyChains } from './key-chain.ts'
import { privateKeyOf } from './key-pair.ts'
import { publishedKeys, type StoredKey } from './key-store.ts'
import { createKeyRotation } from './rotation.ts'
import { maxAgeAfter, pollSeconds, publishSeconds } from './rotation-times.ts'
import { isAdvanceDue } from './schedule-store.ts'
import { type SigningAlgorithmName, signingAlgorithms } from './signing-algorithms.ts'

/** The issuer's keys as one instance sees them: what it signs with, what it accepts, what it publishes. */
export interface SigningKeys {
  /** Signs access tokens and all else of ours. */
  active(): Signer
  /**
   * Signs ID tokens for clients that ask for an algorithm: ours, or RS256, from the moment its key is published.
   * Undefined when there is no key for it.
   */
  idTokenSigner(algorithm: SigningAlgorithmName | undefined): Signer | undefined
  /** What discovery lists: ours, and RS256 once every verifier has had the time to learn of its key. */
  idTokenAlgorithms(): SigningAlgorithmName[]
  /** A key of ours, for our own tokens. An unknown `kid` looks into the database again, at most once per 10 s. */
  find(kid: string | undefined): Promise<VerificationKey | undefined>
  /** `/oidc/jwks`: the body, its entity tag, and how long it may be kept, in seconds. */
  jwks(): { body: string; etag: string; maxAge: number }
  /** Does what is due (`schedule-store.ts`) and reads all keys again. */
  reload(): Promise<void>
  /** Reads no more; resolves when a read that is under way has ended. */
  close(): Promise<void>
}

/**
 * `typ` by kind: RFC 9068 §2.1, OpenID Connect Back-Channel Logout §2.4. ID tokens have none. What signs an export is
 * no token, and nobody takes it for one (RFC 8725 §3.11).
 */
const types = { access: 'at+jwt', id: undefined, logout: 'logout+jwt', export: 'surrogate-export+jws' } as const
export type TokenKind = keyof typeof types

export interface Signer {
  kid: string
  algorithm: SigningAlgorithmName
  /** The first part of a JWS, ready-made. */
  headers: Readonly<Record<TokenKind, string>>
  /** Signs a JWS signing input. */
  sign(input: string): Buffer
}

export interface SigningKeysOptions {
  database: Pick<Database, 'query' | 'transaction'>
  envelope: Envelope
  /** Of the first key. */
  algorithm: SigningAlgorithmName
  logger: Logger
  /**
   * On `signingKeysChannel`: changes of other instances are heard of at once. Without it they are found within
   * `pollSeconds`.
   */
  notifier?: Pick<Notifier, 'onNotify'> | undefined
  /** Milliseconds that only go forward. */
  now?: () => number
}

const unknownKeyCooldownMs = 10_000

const headerOf = (alg: string, kid: string, typ: string | undefined) =>
  Buffer.from(JSON.stringify({ alg, typ, kid })).toString('base64url')

const signerOf = ({ kid, algorithm }: StoredKey, key: KeyObject): Signer => ({
  kid,
  algorithm,
  headers: {
    access: headerOf(algorithm, kid, types.access),
    id: headerOf(algorithm, kid, types.id),
    logout: headerOf(algorithm, kid, types.logout),
    export: headerOf(algorithm, kid, types.export),
  },
  sign: (input) => signingAlgorithms[algorithm].sign(input, key),
})

const verifierOf = ({ kid, algorithm, publicJwk }: StoredKey): [string, VerificationKey] => [
  kid,
  { kid, alg: algorithm, key: createPublicKey({ key: publicJwk, format: 'jwk' }) },
]

const jwksOf = (stored: readonly StoredKey[]) => {
  const body = JSON.stringify({ keys: stored.map(({ publicJwk }) => publicJwk) })
  return { body, etag: `"${sha256(body).toString('base64url').slice(0, 22)}"` }
}

const idTokenAlgorithm = firstAlgorithm.idToken

/**
 * Whether ID tokens need a key of their own: there is none, and the keys that sign now or next have another algorithm.
 */
const lacksIdTokenKey = ({ signing, idToken }: Record<KeyChain, readonly StoredKey[]>) =>
  idToken.length === 0 && signing.some(({ state, algorithm }) => state !== 'retiring' && algorithm !== idTokenAlgorithm)

/** Makes the first keys when there are none, loads all, and keeps up with time and with other instances. */
export const createSigningKeys = async (options: SigningKeysOptions): Promise<SigningKeys> => {
  const { database, envelope, algorithm, logger, notifier, now = () => performance.now() } = options
  const rotations = {
    signing: createKeyRotation({ envelope }),
    idToken: createKeyRotation({ envelope, chain: 'idToken' }),
  } satisfies Record<KeyChain, unknown>
  const isFirst = await database.transaction((query) => rotations.signing.ensure(query, algorithm))

  const goOn = async (chain: KeyChain) => {
    if (!(await isAdvanceDue(database.query, chain))) return
    const advanced = await database.transaction((query) => rotations[chain].advance(query))
    if (advanced && advanced.activated.length + advanced.dropped.length > 0)
      logger.info({ chain, ...advanced }, 'the signing keys went on')
  }
  // What cannot be done now is left to the others and to the next time; the keys there are can be read all the same.
  const advance = async () => {
    for (const chain of keyChains)
      await goOn(chain).catch((error) => logger.error({ err: error, chain }, 'the signing keys cannot go on'))
  }

  /** Clients that look into discovery use it only when every copy of the JWKS has it; the others may at once. */
  const makeIdTokenKey = async () => {
    const isMade = await database.transaction((query) =>
      rotations.idToken.ensure(query, idTokenAlgorithm, publishSeconds),
    )
    if (isMade) logger.info({ algorithm: idTokenAlgorithm }, 'made the first signing key for ID tokens')
  }

  const signerAmong = (stored: readonly StoredKey[], known: Signer | undefined): Signer | undefined => {
    const active = stored.find(({ state }) => state === 'active')
    if (!active?.privateJwk) return undefined
    const { kid, privateJwk } = active
    return known?.kid === kid ? known : signerOf(active, privateKeyOf({ kid, privateJwk }, envelope))
  }

  const load = async (known?: { signer: Signer; idTokenSigner: Signer | undefined }) => {
    // Before the question, so that what is published is never taken for newer than it is.
    const readAt = now()
    const signing = await publishedKeys(database.query, 'signing')
    const idToken = await publishedKeys(database.query, 'idToken')
    const signer = signerAmong(signing, known?.signer)
    if (!signer) throw new Error('There is no active signing key.')
    const all = [...signing, ...idToken]
    const isListed = idToken.some(({ state, hasBegun }) => state === 'active' && hasBegun)
    return {
      readAt,
      signer,
      idTokenSigner: signerAmong(idToken, known?.idTokenSigner),
      idTokenAlgorithms: [...new Set([signer.algorithm, ...(isListed ? [idTokenAlgorithm] : [])])],
      verifiers: new Map(all.map(verifierOf)),
      published: jwksOf(all),
      isComplete: !lacksIdTokenKey({ signing, idToken }),
    }
  }
  const loadComplete = async (known?: Awaited<ReturnType<typeof load>>) => {
    const loaded = await load(known)
    if (loaded.isComplete) return loaded
    // Only now: the key-encryption key has opened the keys there are.
    try {
      await makeIdTokenKey()
      return await load(loaded)
    } catch (error) {
      logger.error({ err: error }, 'the signing key for ID tokens cannot be made')
      return loaded
    }
  }

  await advance()
  let keys = await loadComplete()
  if (isFirst) logger.info({ kid: keys.signer.kid, algorithm }, 'made the first signing key')
  if (keys.signer.algorithm !== algorithm) {
    logger.warn(
      { kid: keys.signer.kid, algorithm: keys.signer.algorithm, configured: algorithm },
      'the active signing key has another algorithm than SIGNING_ALGORITHM, which only applies to new keys',
    )
  }

  const read = async () => {
    await advance()
    const next = await loadComplete(keys)
    if (next.signer.kid !== keys.signer.kid) logger.info({ kid: next.signer.kid }, 'another signing key is active')
    keys = next
  }
  // One after the other: what was read earlier never takes the place of what was read later.
  let last = Promise.resolve()
  const reload = () => {
    last = last.catch(() => {}).then(read)
    return last
  }
  // A failed reload keeps the keys there are; the next one comes.
  const keepUp = () =>
    void reload().catch((error) => logger.warn({ err: error }, 'the signing keys could not be reloaded'))

  const stopListening = notifier?.onNotify(keepUp)
  const timer = setInterval(keepUp, pollSeconds * 1000)
  timer.unref()

  let lastLookup = Number.NEGATIVE_INFINITY
  return {
    active: () => keys.signer,
    idTokenSigner: (asked) =>
      [keys.signer, keys.idTokenSigner].find((signer) => asked === undefined || signer?.algorithm === asked),
    idTokenAlgorithms: () => keys.idTokenAlgorithms,
    async find(kid) {
      if (kid === undefined) return undefined
      const known = keys.verifiers.get(kid)
      if (known || now() - lastLookup < unknownKeyCooldownMs) return known
      lastLookup = now()
      await reload()
      return keys.verifiers.get(kid)
    },
    jwks: () => ({ ...keys.published, maxAge: maxAgeAfter((now() - keys.readAt) / 1000) }),
    reload,
    async close() {
      clearInterval(timer)
      stopListening?.()
      await last.catch(() => {})
    },
  }
}
