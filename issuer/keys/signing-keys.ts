import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Database } from '../../platform/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { VerificationKey } from '../../platform/jwt/keys.ts'
import type { Logger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import { ensureActiveKey, publishedKeys, type StoredKey } from './key-store.ts'
import { type SigningAlgorithmName, signingAlgorithms } from './signing-algorithms.ts'

/** The issuer's keys as one instance sees them: what it signs with, what it accepts, what it publishes. */
export interface SigningKeys {
  /** Signs a JWS signing input; `header` is its first part, ready-made. */
  active(): { kid: string; algorithm: SigningAlgorithmName; header: string; sign(input: string): Buffer }
  /** A key of ours, for our own tokens. An unknown `kid` looks into the database again, at most once per 10 s. */
  find(kid: string | undefined): Promise<VerificationKey | undefined>
  /** `/oidc/jwks`: the body and its entity tag. */
  jwks(): { body: string; etag: string }
  reload(): Promise<void>
  close(): void
}

const reloadEveryMs = 30_000
const unknownKeyCooldownMs = 10_000

const sealContext = (kid: string) => `signing-key:${kid}`

/** A new key pair with its RFC 7638 thumbprint as `kid`, the private part sealed. */
const newKey = (algorithm: SigningAlgorithmName, envelope: Envelope): Omit<StoredKey, 'state'> => {
  const { generate, thumbprintMembers } = signingAlgorithms[algorithm]
  const { publicKey, privateKey } = generate()
  const publicJwk = publicKey.export({ format: 'jwk' })
  const kid = sha256(JSON.stringify(publicJwk, thumbprintMembers as unknown as string[])).toString('base64url')
  const privateJwk = envelope.seal(JSON.stringify(privateKey.export({ format: 'jwk' })), sealContext(kid))
  return { kid, algorithm, publicJwk: { ...publicJwk, kid, alg: algorithm, use: 'sig' }, privateJwk }
}

const privateKeyOf = ({ kid, privateJwk }: StoredKey, envelope: Envelope): KeyObject =>
  createPrivateKey({ key: JSON.parse(envelope.open(privateJwk, sealContext(kid)).toString()), format: 'jwk' })

const signerOf = ({ kid, algorithm }: StoredKey, key: KeyObject) => ({
  kid,
  algorithm,
  header: Buffer.from(JSON.stringify({ alg: algorithm, typ: 'at+jwt', kid })).toString('base64url'),
  sign: (input: string) => signingAlgorithms[algorithm].sign(input, key),
})

/** Makes the first key when there is none, loads all, and follows changes of other instances every 30 s. */
export const createSigningKeys = async (options: {
  database: Database
  envelope: Envelope
  /** Of the first key. */
  algorithm: SigningAlgorithmName
  logger: Logger
  now?: () => number
}): Promise<SigningKeys> => {
  const { database, envelope, algorithm, logger, now = Date.now } = options
  const { created } = await ensureActiveKey(database, () => newKey(algorithm, envelope))

  const load = async () => {
    const stored = await publishedKeys(database.query)
    const active = stored.find(({ state }) => state === 'active')
    if (!active) throw new Error('There is no active signing key.')
    const body = JSON.stringify({ keys: stored.map(({ publicJwk }) => publicJwk) })
    return {
      signer: signerOf(active, privateKeyOf(active, envelope)),
      verifiers: new Map(
        stored.map(({ kid, algorithm: alg, publicJwk }) => [
          kid,
          { kid, alg, key: createPublicKey({ key: publicJwk, format: 'jwk' }) },
        ]),
      ),
      published: { body, etag: `"${sha256(body).toString('base64url').slice(0, 22)}"` },
    }
  }

  let keys = await load()
  let lastLookup = Number.NEGATIVE_INFINITY
  if (created) logger.info({ kid: keys.signer.kid, algorithm }, 'made the first signing key')
  if (keys.signer.algorithm !== algorithm) {
    logger.warn(
      { kid: keys.signer.kid, algorithm: keys.signer.algorithm, configured: algorithm },
      'the active signing key has another algorithm than SIGNING_ALGORITHM, which only applies to new keys',
    )
  }

  const reload = async () => {
    const next = await load()
    if (next.signer.kid !== keys.signer.kid) logger.info({ kid: next.signer.kid }, 'another signing key is active')
    keys = next
  }
  // A failed reload keeps the keys there are; the next one comes.
  const timer = setInterval(
    () => void reload().catch((error) => logger.warn({ err: error }, 'the signing keys could not be reloaded')),
    reloadEveryMs,
  )
  timer.unref()

  return {
    active: () => keys.signer,
    async find(kid) {
      if (kid === undefined) return undefined
      const known = keys.verifiers.get(kid)
      if (known || now() - lastLookup < unknownKeyCooldownMs) return known
      lastLookup = now()
      await reload()
      return keys.verifiers.get(kid)
    },
    jwks: () => keys.published,
    reload,
    close: () => clearInterval(timer),
  }
}
