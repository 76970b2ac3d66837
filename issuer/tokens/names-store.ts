import { type Query, statement } from '../../platform/database/database.ts'

const names = statement(
  'names',
  `SELECT id, coalesce(name, username, primary_email) AS name FROM users WHERE id = ANY ($1::text[])
   UNION ALL SELECT id, name FROM applications WHERE id = ANY ($1::text[])`,
)

/** What people and applications are called, by id; those that were deleted have none. */
export const findNames = async (query: Query, ids: readonly string[]): Promise<Record<string, string>> => {
  const rows = await query<{ id: string; name: string | null }>(names, [ids])
  return Object.fromEntries(rows.flatMap(({ id, name }) => (name === null ? [] : [[id, name]])))
}
