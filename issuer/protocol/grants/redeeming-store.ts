import { type Database, statement } from '../../../platform/database/database.ts'
import type { SharedStatement } from '../../../platform/database/shared-statement.ts'

/** What the redeeming statements of grants have in common: many requests share one, and lock the rows that decide. */

export type Redeemer = Pick<Database, 'query' | 'transaction'>

/**
 * Requests that share a statement must not wait for one locked row. Those skipped are repeated alone, and then wait.
 */
export type Locking = 'SKIP LOCKED' | ''

export interface Redeeming {
  batched: SharedStatement
  waiting: SharedStatement
}

export const redeeming = (make: (locking: Locking, suffix: string) => SharedStatement): Redeeming => ({
  batched: make('SKIP LOCKED', ''),
  waiting: make('', '-waiting'),
})

const lockTimeout = statement('redeem-lock-timeout', `SET LOCAL lock_timeout = '5s'`)

export const redeemBatched = async ({ query }: Pick<Redeemer, 'query'>, { batched }: Redeeming, row: object) =>
  (await query(batched, [row])).length > 0

export const redeemWaiting = (database: Redeemer, { waiting }: Redeeming, row: object): Promise<boolean> =>
  database.transaction(async (query) => {
    await query(lockTimeout, [])
    return (await query(waiting, [row])).length > 0
  })

/** False when the statement answers no row, even after having waited for whoever is at it. */
export const redeem = async (database: Redeemer, statements: Redeeming, row: object): Promise<boolean> =>
  (await redeemBatched(database, statements, row)) || redeemWaiting(database, statements, row)
