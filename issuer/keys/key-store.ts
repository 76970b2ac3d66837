import type { JsonWebKey } from 'node:crypto'
import { type Database, type Query, statement } from '../../platform/database.ts'
import type { SigningAlgorithmName } from './signing-algorithms.ts'

export interface StoredKey {
  kid: string
  algorithm: SigningAlgorithmName
  state: 'next' | 'active' | 'retiring'
  publicJwk: JsonWebKey
  /** Sealed. */
  privateJwk: Buffer
}

const select = statement(
  'signing-keys-published',
  `SELECT kid, algorithm, state, public_jwk AS "publicJwk", private_jwk AS "privateJwk"
   FROM signing_keys WHERE expires_at IS NULL OR expires_at > now()
   ORDER BY created_at, kid`,
)

/** Every key that may sign or verify now, oldest first. */
export const publishedKeys = (query: Query): Promise<StoredKey[]> => query<StoredKey>(select, [])

const lock = statement('signing-keys-lock', `SELECT pg_advisory_xact_lock(7305171)`)
const insertActive = statement(
  'signing-keys-insert-active',
  `INSERT INTO signing_keys (kid, algorithm, state, public_jwk, private_jwk, activated_at) VALUES ($1, $2, 'active', $3, $4, now())`,
)

/** Makes the first key. Of several instances that start at once one does; the others wait for it and find its key. */
export const ensureActiveKey = (
  database: Database,
  make: () => Omit<StoredKey, 'state'>,
): Promise<{ created: boolean }> =>
  database.transaction(async (query) => {
    await query(lock, [])
    const keys = await publishedKeys(query)
    if (keys.some(({ state }) => state === 'active')) return { created: false }
    const { kid, algorithm, publicJwk, privateJwk } = make()
    await query(insertActive, [kid, algorithm, JSON.stringify(publicJwk), privateJwk])
    return { created: true }
  })
