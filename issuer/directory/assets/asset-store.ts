import { type Query, statement } from '../../../platform/database/database.ts'

/** `<digest>.<extension>` */
export interface StoredAsset {
  id: string
  type: string
  content: Buffer
}

const insert = statement(
  'asset-insert',
  'INSERT INTO assets (id, type, content) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING',
)
const select = statement('asset-find', 'SELECT id, type, content FROM assets WHERE id = $1')
const missing = statement(
  'asset-missing',
  `SELECT path FROM unnest($1::text[]) AS path
   WHERE NOT EXISTS (SELECT FROM assets WHERE '/assets/' || id = path)`,
)

/** The same content twice is one row. */
export const insertAsset = async (query: Query, { id, type, content }: StoredAsset): Promise<void> => {
  await query(insert, [id, type, content])
}

export const findStoredAsset = async (query: Query, id: string): Promise<StoredAsset | undefined> =>
  (await query<StoredAsset>(select, [id]))[0]

/** Of these paths, those that nothing was uploaded for. */
export const missingAssets = async (query: Query, paths: readonly string[]): Promise<string[]> =>
  paths.length === 0 ? [] : (await query<{ path: string }>(missing, [[...paths]])).map(({ path }) => path)
