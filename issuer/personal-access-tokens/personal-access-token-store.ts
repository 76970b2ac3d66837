import type { Knex } from 'knex'
import { type Query, statement } from '../../platform/database.ts'
import type { PersonalAccessTokenRow } from './personal-access-token.ts'

const columns = ['user_id', 'name', 'scopes', 'created_at', 'expires_at', 'last_used_at'] as const

export const insertPersonalAccessToken = async (
  trx: Knex,
  token: Pick<PersonalAccessTokenRow, 'user_id' | 'name' | 'scopes' | 'expires_at'> & { digest: Buffer },
): Promise<PersonalAccessTokenRow> => {
  const [row] = await trx('personal_access_tokens').insert(token).returning(columns)
  return row as PersonalAccessTokenRow
}

/** The oldest first. */
export const listPersonalAccessTokens = (knex: Knex, userId: string): Promise<PersonalAccessTokenRow[]> =>
  knex('personal_access_tokens').where({ user_id: userId }).orderBy(['created_at', 'name']).select(columns)

/** Undefined when the user has none of that name. */
export const renamePersonalAccessToken = async (
  trx: Knex,
  userId: string,
  currentName: string,
  name: string,
): Promise<PersonalAccessTokenRow | undefined> => {
  const rows = await trx('personal_access_tokens')
    .where({ user_id: userId, name: currentName })
    .update({ name })
    .returning(columns)
  return rows[0] as PersonalAccessTokenRow | undefined
}

/** How many there were: 1 or 0. */
export const deletePersonalAccessToken = (trx: Knex, userId: string, name: string): Promise<number> =>
  trx('personal_access_tokens').where({ user_id: userId, name }).delete()

const use = statement(
  'personal-access-token-use',
  `UPDATE personal_access_tokens SET last_used_at = now()
   WHERE digest = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`,
)

export const recordUse = async (query: Query, digest: Buffer): Promise<void> => {
  await query(use, [digest])
}

const good = statement(
  'personal-access-token-good',
  `SELECT FROM personal_access_tokens WHERE digest = $1 AND (expires_at IS NULL OR expires_at > now())`,
)

/** Whether it is there and has not expired. */
export const isGood = async (query: Query, digest: Buffer): Promise<boolean> =>
  (await query(good, [digest])).length === 1
