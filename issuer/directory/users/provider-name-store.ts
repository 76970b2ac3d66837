import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'

const name = statement(
  'provider-name',
  `SELECT coalesce(look->>'displayName', CASE jsonb_typeof(look->'name') WHEN 'string' THEN look->>'name'
       WHEN 'object' THEN look->'name'->>'en' END, name, target) AS name
   FROM identity_providers WHERE target = $1 OR id = $1`,
)

/** How people know the provider of an identity: by its target, or the id of an enterprise connector. */
export const findProviderName = async (query: Transaction, target: string): Promise<string> =>
  (await queryOf(query)<{ name: string }>(name, [target]))[0]?.name ?? target
