import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import { publishSeconds } from './rotation-times.ts'

/**
 * What time does to signing keys, by the clock of the database: the next one begins to sign, the one before retires and
 * is dropped.
 */

const longestLife = `(SELECT max(access_token_ttl) FROM resources)`

const due = statement(
  'signing-keys-due',
  `SELECT EXISTS (SELECT FROM signing_keys
     WHERE state = 'next' AND activated_at <= now()
       OR state = 'retiring' AND expires_at <= now()
       OR state = 'active' AND token_life < ${longestLife}) AS due`,
)

/** Whether `advanceKeys` would do anything. */
export const isAdvanceDue = async (query: Query): Promise<boolean> =>
  onlyRow(await query<{ due: boolean }>(due, [])).due

const raiseLife = statement(
  'signing-keys-raise-life',
  `UPDATE signing_keys SET token_life = greatest(token_life, ${longestLife}) WHERE state = 'active'`,
)
const hasSuccessor = statement(
  'signing-keys-successor',
  `SELECT FROM signing_keys WHERE state = 'next' AND activated_at <= clock_timestamp()`,
)
// An instance that has not heard of it yet goes on signing for a moment, and verifiers let clocks differ: hence the
// addition.
const retire = statement(
  'signing-keys-retire',
  `UPDATE signing_keys SET state = 'retiring', private_jwk = NULL, retired_at = clock_timestamp(),
     expires_at = clock_timestamp() + (token_life + $1) * interval '1 second'
   WHERE state = 'active' RETURNING kid`,
)
const activate = statement(
  'signing-keys-activate',
  `UPDATE signing_keys SET state = 'active', activated_at = clock_timestamp() WHERE state = 'next' RETURNING kid`,
)
const drop = statement(
  'signing-keys-drop',
  `DELETE FROM signing_keys WHERE state = 'retiring' AND expires_at <= clock_timestamp() RETURNING kid`,
)

export interface Advanced {
  /** `kid`s. */
  activated: string[]
  retired: string[]
  dropped: string[]
}

/** Does what is due. For holders of the lock. */
export const advanceKeys = async (query: Query): Promise<Advanced> => {
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
