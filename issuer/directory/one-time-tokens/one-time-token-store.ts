import type { Knex } from 'knex'
import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { OneTimeTokenContext, OneTimeTokenRow, OneTimeTokenStatus } from './one-time-token.ts'

const statusSql = `CASE WHEN consumed_at IS NOT NULL THEN 'consumed' WHEN revoked_at IS NOT NULL THEN 'revoked'
  WHEN ended_at IS NOT NULL OR expires_at <= now() THEN 'expired' ELSE 'active' END`
const columns = `id, email, context, created_at, expires_at, ${statusSql} AS status`
const isActive = 'consumed_at IS NULL AND revoked_at IS NULL AND ended_at IS NULL AND expires_at > now()'

export const listOneTimeTokens = (
  knex: Knex,
  { email, status }: { email?: string | undefined; status?: OneTimeTokenStatus | undefined },
  page: Page | undefined,
): Promise<Listed<OneTimeTokenRow>> => {
  const query = knex('one_time_tokens')
    .select(knex.raw(columns))
    .orderBy([{ column: 'created_at', order: 'desc' }, 'id'])
  if (email !== undefined) query.whereRaw('lower(email) = lower(?)', [email])
  if (status !== undefined) query.whereRaw(`${statusSql} = ?`, [status])
  return listed(query, page)
}

const find = statement('one-time-token-find', `SELECT ${columns} FROM one_time_tokens WHERE id = $1`)

export const findOneTimeToken = async (query: Query, id: string): Promise<OneTimeTokenRow | undefined> =>
  (await query<OneTimeTokenRow>(find, [id]))[0]

const insert = statement(
  'one-time-token-insert',
  `INSERT INTO one_time_tokens (id, digest, email, context, expires_at)
   VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second') RETURNING ${columns}`,
)

export const insertOneTimeToken = async (
  trx: Transaction,
  token: { id: string; digest: Buffer; email: string; context: OneTimeTokenContext; expiresIn: number },
): Promise<OneTimeTokenRow> => {
  const { id, digest, email, context, expiresIn } = token
  return onlyRow(await queryOf(trx)<OneTimeTokenRow>(insert, [id, digest, email, JSON.stringify(context), expiresIn]))
}

const ends = { consumed: 'consumed_at', revoked: 'revoked_at', expired: 'ended_at' } as const
const endings = Object.fromEntries(
  Object.entries(ends).map(([status, column]) => [
    status,
    statement(
      `one-time-token-${status}`,
      `UPDATE one_time_tokens SET ${column} = now() WHERE id = $1 AND ${isActive} RETURNING ${columns}`,
    ),
  ]),
) as Record<keyof typeof ends, ReturnType<typeof statement>>

/** Undefined when it is not active. */
export const endOneTimeToken = async (
  trx: Transaction,
  id: string,
  status: keyof typeof ends,
): Promise<OneTimeTokenRow | undefined> => (await queryOf(trx)<OneTimeTokenRow>(endings[status], [id]))[0]

const remove = statement('one-time-token-delete', 'DELETE FROM one_time_tokens WHERE id = $1 RETURNING id')

/** False when there is none. */
export const deleteOneTimeToken = async (trx: Transaction, id: string): Promise<boolean> =>
  (await queryOf(trx)(remove, [id])).length > 0

const byDigest = statement(
  'one-time-token-by-digest',
  `SELECT ${columns}, lower(email) = lower($2) AS "isOf" FROM one_time_tokens WHERE digest = $1`,
)

/** Whatever its status; `isOf` says whether it is for the address. */
export const findOneTimeTokenByDigest = async (
  query: Query,
  digest: Buffer,
  email: string,
): Promise<(OneTimeTokenRow & { isOf: boolean }) | undefined> =>
  (await query<OneTimeTokenRow & { isOf: boolean }>(byDigest, [digest, email]))[0]
