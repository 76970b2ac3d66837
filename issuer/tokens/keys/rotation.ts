import type { Query } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import { problem } from '../../base/errors/problems.ts'
import { newKeyPair, privateKeyOf } from './key-pair.ts'
import {
  deleteKeys,
  insertActiveKey,
  insertNextKey,
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
 * Changes of the signing keys, each part of its caller's transaction. They wait for one another, and every instance
 * hears of them at the commit. Those that are asked for answer with the keys there are then, oldest first.
 */
export interface KeyRotation {
  /** Makes the first key when there is none; whether it did. */
  ensure(query: Query, algorithm: SigningAlgorithmName): Promise<boolean>
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
   * afterwards.
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

export const createKeyRotation = ({ envelope }: { envelope: Envelope }): KeyRotation => {
  const recorded = async (query: Query, what: string, by: ChangedBy, payload: Record<string, unknown>) => {
    await insertLog(query, { key: `SigningKeys.${what}`, result: 'Success', payload: { by, ...payload } })
    await notifyKeysChanged(query)
  }
  const activeOf = (keys: readonly StoredKey[]) => keys.find(({ state }) => state === 'active')

  const makeActive = async (query: Query, algorithm: SigningAlgorithmName) => {
    const pair = await newKeyPair(algorithm, envelope)
    await insertActiveKey(query, pair)
    return { kid: pair.kid, algorithm }
  }
  const makeNext = async (query: Query, algorithm: SigningAlgorithmName, delaySeconds: number) => {
    const pair = await newKeyPair(algorithm, envelope)
    await insertNextKey(query, pair, delaySeconds)
    return pair.kid
  }

  // Whoever has another key-encryption key than the issuers would make them a key that they cannot open, in place of
  // one that they can.
  const requireReadable = (keys: readonly StoredKey[]) => {
    for (const { kid, privateJwk } of keys) if (privateJwk) privateKeyOf({ kid, privateJwk }, envelope)
  }
  const lockedKeys = async (query: Query) => {
    await lockKeys(query)
    const keys = await publishedKeys(query)
    requireReadable(keys)
    return keys
  }

  return {
    async ensure(query, algorithm) {
      await lockKeys(query)
      if (activeOf(await publishedKeys(query))) return false
      await makeActive(query, algorithm)
      await notifyKeysChanged(query)
      return true
    },

    async rotate(query, { algorithm: wanted, graceSeconds = 0, by }) {
      await lockedKeys(query)
      // A next key whose time has come is the present one from now on, and another one is wanted.
      await advanceKeys(query)
      const keys = await publishedKeys(query)
      const active = activeOf(keys)
      if (!active) {
        await recorded(query, 'Rotate', by, await makeActive(query, wanted ?? 'ES256'))
        return publishedKeys(query)
      }
      const algorithm = wanted ?? active.algorithm
      const waiting = keys.find(({ state }) => state === 'next')
      const kept = waiting?.algorithm === algorithm ? waiting : undefined
      if (kept) await rescheduleNextKey(query, { publishSeconds, graceSeconds })
      // It never signed anything.
      else if (waiting) await deleteKeys(query, [waiting.kid])
      const kid = kept?.kid ?? (await makeNext(query, algorithm, Math.max(publishSeconds, graceSeconds)))
      await recorded(query, 'Rotate', by, { kid, algorithm, graceSeconds })
      return publishedKeys(query)
    },

    async replace(query, { algorithm, by }) {
      const keys = await lockedKeys(query)
      const replaced = keys.map(({ kid }) => kid)
      await deleteKeys(query, replaced)
      const made = await makeActive(query, algorithm ?? activeOf(keys)?.algorithm ?? 'ES256')
      await recorded(query, 'Replace', by, { ...made, replaced })
      return publishedKeys(query)
    },

    async remove(query, kid, { by }) {
      await lockKeys(query)
      const keys = await publishedKeys(query)
      const key = keys.find((one) => one.kid === kid)
      if (!key) throw problem('oidc.key_not_found', { data: { id: kid } })
      if (keys.length === 1) throw problem('oidc.key_required')
      if (key.state !== 'retiring') throw problem('oidc.only_previous_key_can_be_deleted')
      await deleteKeys(query, [kid])
      await recorded(query, 'Delete', by, { kid })
      return publishedKeys(query)
    },

    async advance(query) {
      if (!(await tryLockKeys(query))) return undefined
      requireReadable(await publishedKeys(query))
      const advanced = await advanceKeys(query)
      const { activated, retired, dropped } = advanced
      if (activated.length + dropped.length > 0)
        await recorded(query, 'Advance', 'schedule', { activated, retired, dropped })
      return advanced
    },
  }
}
