import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Notifier } from '../../../events/notifier.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import type { VerificationKey } from '../../../platform/jwt/keys.ts'
import type { Logger } from '../../../platform/logger.ts'
import { sha256 } from '../../../platform/secret.ts'
import { privateKeyOf } from './key-pair.ts'
import { publishedKeys, type StoredKey } from './key-store.ts'
import { createKeyRotation } from './rotation.ts'
import { maxAgeAfter, pollSeconds } from './rotation-times.ts'
import { isAdvanceDue } from './schedule-store.ts'
import { type SigningAlgorithmName, signingAlgorithms } from './signing-algorithms.ts'

/** The issuer's keys as one instance sees them: what it signs with, what it accepts, what it publishes. */
export interface SigningKeys {
  /** Signs access tokens and all else of ours. */
  active(): Signer
  /** Signs ID tokens for clients that ask for an algorithm; undefined when there is no key for it (yet). */
  idTokenSigner(algorithm: SigningAlgorithmName | undefined): Signer | undefined
  /** A key of ours, for our own tokens. An unknown `kid` looks into the database again, at most once per 10 s. */
  find(kid: string | undefined): Promise<VerificationKey | undefined>
  /** `/oidc/jwks`: the body, its entity tag, and how long it may be kept, in seconds. */
  jwks(): { body: string; etag: string; maxAge: number }
  /** Does what is due (`schedule-store.ts`) and reads all keys again. */
  reload(): Promise<void>
  /** Reads no more; resolves when a read that is under way has ended. */
  close(): Promise<void>
}

/** `typ` by kind: RFC 9068 §2.1, OpenID Connect Back-Channel Logout §2.4. ID tokens have none. */
const types = { access: 'at+jwt', id: undefined, logout: 'logout+jwt' } as const
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

/** Makes the first key when there is none, loads all, and keeps up with time and with other instances. */
export const createSigningKeys = async (options: SigningKeysOptions): Promise<SigningKeys> => {
  const { database, envelope, algorithm, logger, notifier, now = () => performance.now() } = options
  const rotation = createKeyRotation({ envelope })
  const isFirst = await database.transaction((query) => rotation.ensure(query, algorithm))

  const goOn = async () => {
    if (!(await isAdvanceDue(database.query))) return
    const advanced = await database.transaction((query) => rotation.advance(query))
    if (advanced && advanced.activated.length + advanced.dropped.length > 0)
      logger.info({ ...advanced }, 'the signing keys went on')
  }
  // What cannot be done now is left to the others and to the next time; the keys there are can be read all the same.
  const advance = () => goOn().catch((error) => logger.error({ err: error }, 'the signing keys cannot go on'))

  const load = async (known?: Signer) => {
    // Before the question, so that what is published is never taken for newer than it is.
    const readAt = now()
    const stored = await publishedKeys(database.query)
    const active = stored.find(({ state }) => state === 'active')
    if (!active?.privateJwk) throw new Error('There is no active signing key.')
    const { kid, privateJwk } = active
    return {
      readAt,
      signer: known?.kid === kid ? known : signerOf(active, privateKeyOf({ kid, privateJwk }, envelope)),
      verifiers: new Map(stored.map(verifierOf)),
      published: jwksOf(stored),
    }
  }

  await advance()
  let keys = await load()
  if (isFirst) logger.info({ kid: keys.signer.kid, algorithm }, 'made the first signing key')
  if (keys.signer.algorithm !== algorithm) {
    logger.warn(
      { kid: keys.signer.kid, algorithm: keys.signer.algorithm, configured: algorithm },
      'the active signing key has another algorithm than SIGNING_ALGORITHM, which only applies to new keys',
    )
  }

  const read = async () => {
    await advance()
    const next = await load(keys.signer)
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
    idTokenSigner: (asked) => (asked === undefined || asked === keys.signer.algorithm ? keys.signer : undefined),
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
