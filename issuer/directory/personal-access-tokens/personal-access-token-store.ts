import type { Knex } from 'knex'
import { type Query, statement } from '../../../platform/database/database.ts'
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

/** A JWT that came from a personal access token. */
export interface PersonalIssueRow {
  token_id: string
  expires_at: Date
}

/**
 * Deletes it, and the opaque tokens that came from it; answers the JWTs, which are left to revoke. Undefined when the
 * user has none of that name. Locked first: an exchange that is under way is then either among those or refused.
 */
export const deletePersonalAccessToken = async (
  trx: Knex,
  userId: string,
  name: string,
): Promise<PersonalIssueRow[] | undefined> => {
  const found = await trx('personal_access_tokens').where({ user_id: userId, name }).forUpdate().first('digest')
  if (found === undefined) return undefined
  const { digest } = found
  const issues: PersonalIssueRow[] = await trx('personal_access_token_issues')
    .where({ digest })
    .where('expires_at', '>', trx.fn.now())
    .select('token_id', 'expires_at')
  await trx('personal_access_tokens').where({ digest }).delete()
  await trx('opaque_tokens')
    .where({ personal_access_token: digest })
    .whereNull('revoked_at')
    .update({ revoked_at: trx.fn.now() })
  return issues
}

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
