import { queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'

const find = statement(
  'lockout-users',
  `SELECT id FROM users WHERE lower(username) = ANY (ARRAY(SELECT lower(text) FROM unnest($1::text[]) AS text))
   UNION SELECT id FROM users WHERE lower(primary_email) = ANY (ARRAY(SELECT lower(text) FROM unnest($1::text[]) AS text))
   UNION SELECT id FROM users WHERE primary_phone = ANY ($1::text[])
   UNION SELECT id FROM users WHERE id = ANY ($1::text[])`,
)

/** Everybody whom one of these texts could name: by name or address in any case, by number, by id. */
export const usersNamed = async (trx: Transaction, texts: readonly string[]): Promise<string[]> =>
  (await queryOf(trx)<{ id: string }>(find, [texts])).map(({ id }) => id)

const devices = statement(
  'lockout-devices',
  'SELECT user_id AS "userId", digest FROM known_devices WHERE user_id = ANY ($1::text[])',
)

export const knownDevicesOf = (trx: Transaction, userIds: readonly string[]) =>
  queryOf(trx)<{ userId: string; digest: Buffer }>(devices, [userIds])

const holders = statement(
  'lockout-holders',
  `SELECT user_id AS "userId", id FROM sessions WHERE user_id = ANY ($1::text[]) AND ended_at IS NULL
   UNION SELECT user_id, session_id FROM authorizations WHERE user_id = ANY ($1::text[]) AND ended_at IS NULL`,
)

/** The sessions that have not ended, or of which authorizations have not. */
export const holdersOf = (trx: Transaction, userIds: readonly string[]) =>
  queryOf(trx)<{ userId: string; id: string }>(holders, [userIds])

const clear = statement(
  'lockout-clear',
  `DELETE FROM sign_in_failures WHERE key = ANY (ARRAY(
     SELECT key FROM sign_in_failures WHERE key = ANY ($1::bytea[]) ORDER BY key FOR UPDATE))`,
)

export const clearFailures = async (trx: Transaction, keys: readonly Buffer[]): Promise<void> => {
  await queryOf(trx)(clear, [keys])
}
