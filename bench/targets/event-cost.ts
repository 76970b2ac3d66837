import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { insertLog } from '../../issuer/base/audit/log-store.ts'
import { insertUser, updateUser } from '../../issuer/directory/users/user-store.ts'
import { createDatabase, type Database } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import { answerCalls } from '../harness/calls.ts'
import type { Connection } from '../harness/database-store.ts'

/**
 * The transaction of `PATCH /api/users/:id/custom-data`, with its event and without: what recording the event takes.
 */

export type EventCostSettings = { connection: Connection }
export type Transactions = { withEvent: number[]; without: number[] }

let database: Database | undefined

const request: NewEvent['request'] = {
  ip: '127.0.0.1',
  userAgent: 'bench',
  method: 'PATCH',
  path: '/users/a/custom-data',
  matchedRoute: '/users/:userId/custom-data',
  params: { userId: 'a' },
  status: 200,
}

const change = async (knex: Knex, id: string, number: number, isRecorded: boolean): Promise<number> => {
  const started = performance.now()
  await knex.transaction(async (trx) => {
    const user = await updateUser(trx, id, { custom_data: { change: number } })
    if (isRecorded)
      await recordEvent(trx, {
        type: 'User.Data.Updated',
        entity: { kind: 'user', id },
        data: user.custom_data,
        request,
      })
    await insertLog(trx, {
      key: 'Management.updateUserCustomData',
      result: 'Success',
      applicationId: 'bench',
      userId: id,
      payload: { ...request, note: randomBytes(64).toString('hex') },
    })
  })
  return performance.now() - started
}

answerCalls({
  start: ({ connection }: EventCostSettings) => {
    database = createDatabase({ connection, logger: silentLogger, poolSize: 2 })
  },
  /** Milliseconds of each transaction; the two kinds take turns, each on a user of its own. */
  run: async (times: number): Promise<Transactions> => {
    const { knex } = database!
    const [first, second] = [newId(12), newId(12)]
    for (const id of [first, second]) await insertUser(knex, { id })
    const measured: Transactions = { withEvent: [], without: [] }
    for (let number = 0; number < times; number += 1) {
      measured.withEvent.push(await change(knex, first, number, true))
      measured.without.push(await change(knex, second, number, false))
    }
    return measured
  },
  stop: () => database?.close(),
})
