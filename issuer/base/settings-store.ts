import type { z } from 'zod'
import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { onlyRow } from './only-row.ts'

/**
 * What the Management API sets for the whole issuer: one JSON object by name. The schema gives every member its
 * default, so that a setting nobody has made, or made before it had this member, is complete too.
 */
export interface Setting<Schema extends z.ZodType> {
  name: string
  schema: Schema
}

interface Row {
  value: unknown
}

const select = statement('setting-find', 'SELECT value FROM settings WHERE name = $1')
const replace = statement(
  'setting-write',
  `INSERT INTO settings (name, value) VALUES ($1, $2)
   ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now() RETURNING value`,
)
// Two that change different members at once both have their way.
const merge = statement(
  'setting-merge',
  `INSERT INTO settings (name, value) VALUES ($1, $2)
   ON CONFLICT (name) DO UPDATE SET value = settings.value || excluded.value, updated_at = now() RETURNING value`,
)

/** Defaults where nothing is stored. */
export const readSetting = async <Schema extends z.ZodType>(
  query: Query,
  { name, schema }: Setting<Schema>,
): Promise<z.output<Schema>> => {
  const [row] = await query<Row>(select, [name])
  return schema.parse(row?.value ?? {})
}

/** All of it anew. Answers it as it is now. */
export const writeSetting = async <Schema extends z.ZodType>(
  transaction: Transaction,
  { name, schema }: Setting<Schema>,
  value: z.input<Schema>,
): Promise<z.output<Schema>> =>
  schema.parse(onlyRow(await queryOf(transaction)<Row>(replace, [name, JSON.stringify(value)])).value)

/** The members of `patch`; the others stay. Answers it as it is now. */
export const patchSetting = async <Schema extends z.ZodType>(
  transaction: Transaction,
  { name, schema }: Setting<Schema>,
  patch: Partial<z.input<Schema>>,
): Promise<z.output<Schema>> =>
  schema.parse(onlyRow(await queryOf(transaction)<Row>(merge, [name, JSON.stringify(patch)])).value)
