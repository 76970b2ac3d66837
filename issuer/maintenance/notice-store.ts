import { oneRow, type Query, statement } from '../../platform/database/database.ts'

const cursor = statement(
  'notice-cursor',
  `SELECT seq, seq < (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM outbox_seq_seq) AS "isBehind"
   FROM notice_cursor`,
)

/** Up to where everything was told. `isBehind`: more was recorded since. */
export const findCursor = (query: Query): Promise<{ seq: number; isBehind: boolean }> =>
  oneRow(query<{ seq: number; isBehind: boolean }>(cursor, []))

const move = statement('notice-cursor-move', 'UPDATE notice_cursor SET seq = $2 WHERE seq = $1 RETURNING seq')

/** Others wait until the transaction ends. False when somebody else has moved it. */
export const moveCursor = async (trx: Query, from: number, to: number): Promise<boolean> =>
  (await trx(move, [from, to])).length > 0
