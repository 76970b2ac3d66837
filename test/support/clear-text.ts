import { createHash } from 'node:crypto'

/** What must stand nowhere. */
export interface Secret {
  /** What it is, for the finding. */
  name: string
  value: string
  /** Its bytes, where the value is only how they are written. */
  bytes?: Uint8Array | undefined
  /** Only these tables are searched: in others it may stand. */
  tables?: readonly string[]
}

type Sql = <Row extends object>(text: string) => Promise<Row[]>

/** A digest of fewer bits than these can be tried out: then the plain digest is as good as the secret. */
const guessable = 64

const forms = ({ value, bytes = Buffer.from(value) }: Secret): string[] => {
  const raw = Buffer.from(bytes)
  const digests = value.length * 5 < guessable ? [createHash('sha256').update(value).digest()] : []
  return [
    ...[value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)],
    ...[raw, ...digests].flatMap((one) => [
      one.toString('hex'),
      one.toString('base64').replace(/=+$/, ''),
      one.toString('base64url'),
      one.toString('latin1'),
    ]),
  ]
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Six digits stand in many a number: they are found only where they stand by themselves. */
const patternsOf = (secret: Secret): RegExp[] =>
  [...new Set(forms(secret))].map((form) =>
    /^\d{1,8}$/.test(form) ? new RegExp(`(?<![\\w.+/=:-])${form}(?![\\w.+/=:-])`) : new RegExp(escaped(form)),
  )

/**
 * Where secrets stand in clear: in any column of any table, as text or as bytes, and in `texts` (logs, answers, errors)
 * by name. Empty when nowhere.
 */
export const findInClear = async (
  sql: Sql,
  secrets: readonly Secret[],
  texts: Readonly<Record<string, string>> = {},
): Promise<string[]> => {
  for (const { name, value } of secrets)
    if (value.length < 4) throw new Error(`${name} is too short to be searched for`)
  const sought = secrets.map((secret) => ({ ...secret, patterns: patternsOf(secret) }))
  const found: string[] = []
  const search = (place: string, text: string, table?: string) => {
    for (const { name, patterns, tables } of sought) {
      if (tables && (table === undefined || !tables.includes(table))) continue
      if (patterns.some((pattern) => pattern.test(text))) found.push(`${name} in ${place}`)
    }
  }
  const columns = await sql<{ table: string; name: string; type: string }>(
    `SELECT c.table_name AS "table", c.column_name AS name, c.udt_name AS type
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' ORDER BY 1, 2`,
  )
  for (const { table, name, type } of columns) {
    const rows = await sql<{ text: string | null; bytes: Buffer | null }>(
      type === 'bytea'
        ? `SELECT encode("${name}", 'hex') AS text, "${name}" AS bytes FROM "${table}" WHERE "${name}" IS NOT NULL`
        : `SELECT "${name}"::text AS text, NULL AS bytes FROM "${table}" WHERE "${name}" IS NOT NULL`,
    )
    for (const { text, bytes } of rows) {
      search(`${table}.${name}`, text ?? '', table)
      if (bytes) search(`${table}.${name}`, bytes.toString('latin1'), table)
    }
  }
  for (const [name, text] of Object.entries(texts)) search(name, text)
  return [...new Set(found)]
}
