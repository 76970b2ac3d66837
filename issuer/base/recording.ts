import type { EventContent } from '../../events/catalogue.ts'
import type { Transaction } from '../../platform/database/database.ts'

/**
 * Where a change is made that is part of a bigger one: the transaction, and how it records its events. Every `Mutation`
 * is one; outside the Management API `record` is `recordEvent` with the request at hand.
 */
export interface Recording {
  trx: Transaction
  record(event: EventContent): Promise<unknown>
}
