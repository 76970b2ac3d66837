import type { JsonWebKey } from 'node:crypto'
import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { SealedKeyPair } from './key-pair.ts'
import type { SigningAlgorithmName } from './signing-algorithms.ts'

/**
 * Signing keys in the database. `next`: published, signs from `activatedAt` on. `active`: the one that signs.
 * `retiring`: still verifies, until `expiresAt`; it has no private part any more.
 */
export interface StoredKey {
  kid: string
  algorithm: SigningAlgorithmName
  state: 'next' | 'active' | 'retiring'
  publicJwk: JsonWebKey
  /** Sealed. */
  privateJwk: Buffer | null
  createdAt: Date
  activatedAt: Date | null
  expiresAt: Date | null
}

/** NOTIFY channel: the keys changed. */
export const signingKeysChannel = 'surrogate_signing_keys'

const select = statement(
  'signing-keys-published',
  `SELECT kid, algorithm, state, public_jwk AS "publicJwk", private_jwk AS "privateJwk",
     created_at AS "createdAt", activated_at AS "activatedAt", expires_at AS "expiresAt"
   FROM signing_keys WHERE expires_at IS NULL OR expires_at > now()
   ORDER BY created_at, kid`,
)

/** Every key that may sign or verify now, oldest first. */
export const publishedKeys = (query: Query): Promise<StoredKey[]> => query<StoredKey>(select, [])

const lock = statement('signing-keys-lock', `SELECT pg_advisory_xact_lock(7305171)`)

/** Nobody else changes the keys until the transaction ends. */
export const lockKeys = async (query: Query): Promise<void> => {
  await query(lock, [])
}

const tryLock = statement('signing-keys-try-lock', `SELECT pg_try_advisory_xact_lock(7305171) AS mine`)

/** False when somebody else is changing them. */
export const tryLockKeys = async (query: Query): Promise<boolean> =>
  onlyRow(await query<{ mine: boolean }>(tryLock, [])).mine

// Every instance hears of it when the transaction commits.
const notify = statement('signing-keys-notify', `SELECT pg_notify('${signingKeysChannel}', '')`)

export const notifyKeysChanged = async (query: Query): Promise<void> => {
  await query(notify, [])
}

// clock_timestamp, not now(): the transaction may have begun long before it got the lock, and a key counts as published
// from here on.
const insert = statement(
  'signing-keys-insert',
  `INSERT INTO signing_keys (kid, algorithm, state, public_jwk, private_jwk, created_at, activated_at)
   VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + $6 * interval '1 second')`,
)

const insertKey = (
  query: Query,
  state: 'next' | 'active',
  { kid, algorithm, publicJwk, privateJwk }: SealedKeyPair,
  delaySeconds: number,
) => query(insert, [kid, algorithm, state, JSON.stringify(publicJwk), privateJwk, delaySeconds])

export const insertActiveKey = (query: Query, pair: SealedKeyPair) => insertKey(query, 'active', pair, 0)

export const insertNextKey = (query: Query, pair: SealedKeyPair, delaySeconds: number) =>
  insertKey(query, 'next', pair, delaySeconds)

const reschedule = statement(
  'signing-keys-reschedule',
  `UPDATE signing_keys SET activated_at = greatest(created_at + $1 * interval '1 second', clock_timestamp() + $2 * interval '1 second')
   WHERE state = 'next'`,
)

/**
 * The planned time of the next key: `graceSeconds` from now, and not before it has been published for `publishSeconds`.
 */
export const rescheduleNextKey = (query: Query, times: { publishSeconds: number; graceSeconds: number }) =>
  query(reschedule, [times.publishSeconds, times.graceSeconds])

const remove = statement('signing-keys-delete', `DELETE FROM signing_keys WHERE kid = ANY ($1::text[])`)

export const deleteKeys = (query: Query, kids: readonly string[]) => query(remove, [kids])
