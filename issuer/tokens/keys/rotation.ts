import type { Query } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import { problem } from '../../base/errors/problems.ts'
import { firstAlgorithm, type KeyChain } from './key-chain.ts'
import { newKeyPair, privateKeyOf } from './key-pair.ts'
import {
  deleteKeys,
  insertKey,
  lockKeys,
  notifyKeysChanged,
  publishedKeys,
  rescheduleNextKey,
  type StoredKey,
  tryLockKeys,
} from './key-store.ts'
import { publishSeconds } from './rotation-times.ts'
import { type Advanced, advanceKeys } from './schedule-store.ts'
import type { SigningAlgorithmName } from './signing-algorithms.ts'

/** Who changes the keys, for the audit trail. */
export type ChangedBy = 'api' | 'command' | 'schedule'

/**
 * Changes of the keys of one chain, each part of its caller's transaction. They wait for one another, and every
 * instance hears of them at the commit. Those that are asked for answer with the keys there are then, oldest first.
 */
export interface KeyRotation {
  /** Makes the first key when there is none, which counts from `delaySeconds` on; whether it did. */
  ensure(query: Query, algorithm: SigningAlgorithmName, delaySeconds?: number): Promise<boolean>
  /**
   * Publishes the next key. It signs after `publishSeconds`, or after `graceSeconds` when that is more, and the present
   * one retires then. A next key of the same algorithm that waits already is kept; one of another algorithm is
   * replaced. `algorithm` defaults to the present one's.
   */
  rotate(
    query: Query,
    options: { algorithm?: SigningAlgorithmName | undefined; graceSeconds?: number | undefined; by: ChangedBy },
  ): Promise<StoredKey[]>
  /**
   * For keys that have leaked: a fresh key takes the place of all others at once. No token signed so far is good
   * afterwards. Who could read the signing keys could read those for ID tokens: they are replaced together.
   */
  replace(query: Query, options: { algorithm?: SigningAlgorithmName | undefined; by: ChangedBy }): Promise<StoredKey[]>
  /**
   * Drops a retiring key before its time. Throws `oidc.key_not_found`, `oidc.key_required`,
   * `oidc.only_previous_key_can_be_deleted`.
   */
  remove(query: Query, kid: string, options: { by: ChangedBy }): Promise<StoredKey[]>
  /**
   * Does what is due, unless somebody else is changing the keys: then undefined. Throws rather than change to a key
   * that cannot be opened.
   */
  advance(query: Query): Promise<Advanced | undefined>
}

export interface KeyRotationOptions {
  envelope: Envelope
  /** Default `signing`. */
  chain?: KeyChain
}

/** The first part of `key` in the audit trail. */
const recordedAs = { signing: 'SigningKeys', idToken: 'IdTokenKeys' } as const satisfies Record<KeyChain, string>

export const createKeyRotation = ({ envelope, chain = 'signing' }: KeyRotationOptions): KeyRotation => {
  const recorded = async (query: Query, what: string, by: ChangedBy, payload: Record<string, unknown>) => {
    await insertLog(query, { key: `${recordedAs[chain]}.${what}`, result: 'Success', payload: { by, ...payload } })
    await notifyKeysChanged(query)
  }
  const activeOf = (keys: readonly StoredKey[]) => keys.find(({ state }) => state === 'active')

  const makeActive = async (query: Query, algorithm: SigningAlgorithmName, delaySeconds = 0) => {
    const pair = await newKeyPair(algorithm, envelope)
    await insertKey(query, chain, 'active', pair, delaySeconds)
    return { kid: pair.kid, algorithm }
  }
  const makeNext = async (query: Query, algorithm: SigningAlgorithmName, delaySeconds: number) => {
    const pair = await newKeyPair(algorithm, envelope)
    await insertKey(query, chain, 'next', pair, delaySeconds)
    return pair.kid
  }

  // Whoever has another key-encryption key than the issuers would make them a key that they cannot open, in place of
  // one that they can.
  const requireReadable = (keys: readonly StoredKey[]) => {
    for (const { kid, privateJwk } of keys) if (privateJwk) privateKeyOf({ kid, privateJwk }, envelope)
  }
  const lockedKeys = async (query: Query) => {
    await lockKeys(query)
    const keys = await publishedKeys(query, chain)
    requireReadable(keys)
    return keys
  }

  return {
    async ensure(query, algorithm, delaySeconds) {
      await lockKeys(query)
      if (activeOf(await publishedKeys(query, chain))) return false
      await makeActive(query, algorithm, delaySeconds)
      await notifyKeysChanged(query)
      return true
    },

    async rotate(query, { algorithm: wanted, graceSeconds = 0, by }) {
      await lockedKeys(query)
      // A next key whose time has come is the present one from now on, and another one is wanted.
      await advanceKeys(query, chain)
      const keys = await publishedKeys(query, chain)
      const active = activeOf(keys)
      if (!active) {
        await recorded(query, 'Rotate', by, await makeActive(query, wanted ?? firstAlgorithm[chain]))
        return publishedKeys(query, chain)
      }
      const algorithm = wanted ?? active.algorithm
      const waiting = keys.find(({ state }) => state === 'next')
      const kept = waiting?.algorithm === algorithm ? waiting : undefined
      if (kept) await rescheduleNextKey(query, chain, { publishSeconds, graceSeconds })
      // It never signed anything.
      else if (waiting) await deleteKeys(query, chain, [waiting.kid])
      const kid = kept?.kid ?? (await makeNext(query, algorithm, Math.max(publishSeconds, graceSeconds)))
      await recorded(query, 'Rotate', by, { kid, algorithm, graceSeconds })
      return publishedKeys(query, chain)
    },

    async replace(query, { algorithm, by }) {
      const keys = await lockedKeys(query)
      const replaced = keys.map(({ kid }) => kid)
      await deleteKeys(query, chain, replaced)
      const made = await makeActive(query, algorithm ?? activeOf(keys)?.algorithm ?? firstAlgorithm[chain])
      await recorded(query, 'Replace', by, { ...made, replaced })
      if (chain === 'signing' && (await publishedKeys(query, 'idToken')).length > 0)
        await createKeyRotation({ envelope, chain: 'idToken' }).replace(query, { by })
      return publishedKeys(query, chain)
    },

    async remove(query, kid, { by }) {
      await lockKeys(query)
      const keys = await publishedKeys(query, chain)
      const key = keys.find((one) => one.kid === kid)
      if (!key) throw problem('oidc.key_not_found', { data: { id: kid } })
      if (keys.length === 1) throw problem('oidc.key_required')
      if (key.state !== 'retiring') throw problem('oidc.only_previous_key_can_be_deleted')
      await deleteKeys(query, chain, [kid])
      await recorded(query, 'Delete', by, { kid })
      return publishedKeys(query, chain)
    },

    async advance(query) {
      if (!(await tryLockKeys(query))) return undefined
      requireReadable(await publishedKeys(query, chain))
      const advanced = await advanceKeys(query, chain)
      const { activated, retired, dropped } = advanced
      if (activated.length + dropped.length > 0)
        await recorded(query, 'Advance', 'schedule', { activated, retired, dropped })
      return advanced
    },
  }
}
