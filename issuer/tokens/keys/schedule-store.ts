import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { KeyChain } from './key-chain.ts'
import { publishSeconds } from './rotation-times.ts'

/**
 * What time does to signing keys, by the clock of the database: the next one begins to sign, the one before retires and
 * is dropped.
 */

// Each null where there are none.
const accessTokenLife = `(SELECT max(access_token_ttl) FROM resources)`
const idTokenLife = `(SELECT max((custom_client_metadata->>'idTokenTtl')::integer) FROM applications)`

/** `longestLife`: of the tokens that a chain signs, in seconds. */
const statementsOf = (table: string, prefix: string, longestLife: string) => ({
  due: statement(
    `${prefix}-due`,
    `SELECT EXISTS (SELECT FROM ${table}
       WHERE state = 'next' AND activated_at <= now()
         OR state = 'retiring' AND expires_at <= now()
         OR state = 'active' AND token_life < ${longestLife}) AS due`,
  ),
  raiseLife: statement(
    `${prefix}-raise-life`,
    `UPDATE ${table} SET token_life = greatest(token_life, ${longestLife}) WHERE state = 'active'`,
  ),
  hasSuccessor: statement(
    `${prefix}-successor`,
    `SELECT FROM ${table} WHERE state = 'next' AND activated_at <= clock_timestamp()`,
  ),
  // An instance that has not heard of it yet goes on signing for a moment, and verifiers let clocks differ: hence the
  // addition.
  retire: statement(
    `${prefix}-retire`,
    `UPDATE ${table} SET state = 'retiring', private_jwk = NULL, retired_at = clock_timestamp(),
       expires_at = clock_timestamp() + (token_life + $1) * interval '1 second'
     WHERE state = 'active' RETURNING kid`,
  ),
  activate: statement(
    `${prefix}-activate`,
    `UPDATE ${table} SET state = 'active', activated_at = clock_timestamp() WHERE state = 'next' RETURNING kid`,
  ),
  drop: statement(
    `${prefix}-drop`,
    `DELETE FROM ${table} WHERE state = 'retiring' AND expires_at <= clock_timestamp() RETURNING kid`,
  ),
})

const statements = {
  signing: statementsOf('signing_keys', 'signing-keys', `greatest(${accessTokenLife}, ${idTokenLife})`),
  idToken: statementsOf('id_token_keys', 'id-token-keys', idTokenLife),
} satisfies Record<KeyChain, unknown>

/** Whether `advanceKeys` would do anything. */
export const isAdvanceDue = async (query: Query, chain: KeyChain): Promise<boolean> =>
  onlyRow(await query<{ due: boolean }>(statements[chain].due, [])).due

export interface Advanced {
  /** `kid`s. */
  activated: string[]
  retired: string[]
  dropped: string[]
}

/** Does what is due. For holders of the lock. */
export const advanceKeys = async (query: Query, chain: KeyChain): Promise<Advanced> => {
  const { raiseLife, hasSuccessor, retire, activate, drop } = statements[chain]
  const kids = async (rows: Promise<{ kid: string }[]>) => (await rows).map(({ kid }) => kid)
  await query(raiseLife, [])
  const isSucceeded = (await query(hasSuccessor, [])).length > 0
  return {
    // In this order: there is one active key at most.
    retired: isSucceeded ? await kids(query(retire, [publishSeconds])) : [],
    activated: isSucceeded ? await kids(query(activate, [])) : [],
    dropped: await kids(query(drop, [])),
  }
}
