import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { type SealedColumn, sealedColumns } from './sealed-column-store.ts'

export interface Reencryption {
  /** Sealed values there are. */
  total: number
  /** Of these, how many were under another key and no longer are. */
  reencrypted: number
  /** Those under a key that is neither the current nor the previous one, as `table.column row`. */
  unreadable: string[]
  /** Those that changed whenever they were about to be replaced. */
  missed: number
}

/** A value that changes between reading and writing is looked at again, this often. */
const rounds = 3

/**
 * Brings everything that is sealed under the current key-encryption key. One value at a time and only if it is still
 * the one that was read, so that it may run beside issuers and relays that know both keys, may be interrupted, and goes
 * on where it was.
 */
export const reencrypt = async (options: {
  database: Pick<Database, 'query'>
  envelope: Envelope
  /** Values read at a time. Default 500. */
  batch?: number
}): Promise<Reencryption> => {
  const result: Reencryption = { total: 0, reencrypted: 0, unreadable: [], missed: 0 }
  for (const column of sealedColumns) {
    let pass = await walk(column, options)
    result.reencrypted += pass.reencrypted
    for (let round = 1; round < rounds && pass.missed > 0; round++) {
      pass = await walk(column, options)
      result.reencrypted += pass.reencrypted
    }
    result.total += pass.total
    result.missed += pass.missed
    result.unreadable.push(...pass.unreadable)
  }
  return result
}

const walk = async (
  column: SealedColumn,
  { database: { query }, envelope, batch = 500 }: Parameters<typeof reencrypt>[0],
): Promise<Reencryption> => {
  const pass: Reencryption = { total: 0, reencrypted: 0, unreadable: [], missed: 0 }
  for (let after = ''; ; ) {
    const values = await column.read(query, after, batch)
    pass.total += values.length
    for (const value of values.filter(({ sealed }) => envelope.isStale(sealed))) {
      const opened = open(envelope, value.sealed, column.context(value))
      if (opened === undefined) pass.unreadable.push(`${column.name} ${value.id}`)
      else if (await column.replace(query, value, envelope.seal(opened, column.context(value)))) pass.reencrypted++
      else pass.missed++
    }
    if (values.length < batch) return pass
    after = values.at(-1)!.id
  }
}

const open = (envelope: Envelope, sealed: Buffer, context: string): Buffer | undefined => {
  try {
    return envelope.open(sealed, context)
  } catch {
    return undefined
  }
}
