import type { JsonWebKey } from 'node:crypto'
import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { KeyChain } from './key-chain.ts'
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
  /** Whether `activatedAt` has come. */
  hasBegun: boolean
}

/** NOTIFY channel: the keys changed. */
export const signingKeysChannel = 'surrogate_signing_keys'

const statementsOf = (table: string, prefix: string) => ({
  select: statement(
    `${prefix}-published`,
    `SELECT kid, algorithm, state, public_jwk AS "publicJwk", private_jwk AS "privateJwk",
       created_at AS "createdAt", activated_at AS "activatedAt", expires_at AS "expiresAt",
       coalesce(activated_at <= now(), true) AS "hasBegun"
     FROM ${table} WHERE expires_at IS NULL OR expires_at > now()
     ORDER BY created_at, kid`,
  ),
  // clock_timestamp, not now(): the transaction may have begun long before it got the lock, and a key counts as
  // published from here on.
  insert: statement(
    `${prefix}-insert`,
    `INSERT INTO ${table} (kid, algorithm, state, public_jwk, private_jwk, created_at, activated_at)
     VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + $6 * interval '1 second')`,
  ),
  reschedule: statement(
    `${prefix}-reschedule`,
    `UPDATE ${table} SET activated_at = greatest(created_at + $1 * interval '1 second', clock_timestamp() + $2 * interval '1 second')
     WHERE state = 'next'`,
  ),
  remove: statement(`${prefix}-delete`, `DELETE FROM ${table} WHERE kid = ANY ($1::text[])`),
})

const statements = {
  signing: statementsOf('signing_keys', 'signing-keys'),
  idToken: statementsOf('id_token_keys', 'id-token-keys'),
} satisfies Record<KeyChain, unknown>

/** Every key of the chain that may sign or verify now, oldest first. */
export const publishedKeys = (query: Query, chain: KeyChain): Promise<StoredKey[]> =>
  query<StoredKey>(statements[chain].select, [])

const lock = statement('signing-keys-lock', `SELECT pg_advisory_xact_lock(7305171)`)

/** Nobody else changes keys of any chain until the transaction ends. */
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

/** It counts from `delaySeconds` on. */
export const insertKey = async (
  query: Query,
  chain: KeyChain,
  state: 'next' | 'active',
  { kid, algorithm, publicJwk, privateJwk }: SealedKeyPair,
  delaySeconds: number,
): Promise<void> => {
  await query(statements[chain].insert, [kid, algorithm, state, JSON.stringify(publicJwk), privateJwk, delaySeconds])
}

/**
 * The planned time of the next key: `graceSeconds` from now, and not before it has been published for `publishSeconds`.
 */
export const rescheduleNextKey = async (
  query: Query,
  chain: KeyChain,
  times: { publishSeconds: number; graceSeconds: number },
): Promise<void> => {
  await query(statements[chain].reschedule, [times.publishSeconds, times.graceSeconds])
}

export const deleteKeys = async (query: Query, chain: KeyChain, kids: readonly string[]): Promise<void> => {
  await query(statements[chain].remove, [kids])
}
