import type { Knex } from 'knex'

/** What every record with an `id` needs of its table. */
export interface Rows<Row, Columns extends object> {
  insert(trx: Knex, row: Columns & { id: string }): Promise<Row>
  find(knex: Knex, id: string): Promise<Row | undefined>
  /** The row, which stays as it is until the transaction ends. */
  lock(trx: Knex, id: string): Promise<Row | undefined>
  /** Those of `ids` that exist, in the order of their ids; they cannot be deleted before the transaction ends. */
  keyShare(trx: Knex, ids: readonly string[]): Promise<Row[]>
  update(trx: Knex, id: string, columns: Partial<Columns>): Promise<Row>
  /** Answers the row that was there. */
  delete(trx: Knex, id: string): Promise<Row | undefined>
}

/** `json`: columns of type `jsonb`. The driver would send an array as one of PostgreSQL's own. */
export const rowsOf = <Row extends { id: string }, Columns extends object>(
  table: string,
  { json = [] }: { json?: readonly (keyof Columns & string)[] } = {},
): Rows<Row, Columns> => {
  const encoded = (columns: object) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, value]) => [
        name,
        (json as readonly string[]).includes(name) ? JSON.stringify(value) : value,
      ]),
    )
  return {
    insert: async (trx, row) => (await trx(table).insert(encoded(row)).returning('*'))[0],
    find: (knex, id) => knex(table).where({ id }).first(),
    lock: (trx, id) => trx(table).where({ id }).forNoKeyUpdate().first(),
    keyShare: (trx, ids) => trx(table).whereIn('id', ids).orderBy('id').forKeyShare(),
    update: async (trx, id, columns) => (await trx(table).where({ id }).update(encoded(columns)).returning('*'))[0],
    delete: async (trx, id) => (await trx(table).where({ id }).delete().returning('*'))[0],
  }
}
