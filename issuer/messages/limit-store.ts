import { type Query, statement } from '../../platform/database/database.ts'
import { onlyRow } from '../base/only-row.ts'

// A window begins with the first one. Two more than are allowed stand for all that are refused: the first refusal is
// told from the others.
const count = statement(
  'message-count',
  `INSERT INTO message_counts AS c (key, count) VALUES ($1, 1)
   ON CONFLICT (key) DO UPDATE SET
     count = CASE WHEN c.since <= now() - $3 * interval '1 second' THEN 1 ELSE least(c.count + 1, $2::integer + 2) END,
     since = CASE WHEN c.since <= now() - $3 * interval '1 second' THEN now() ELSE c.since END,
     updated_at = now()
   RETURNING count`,
)

const takeBack = statement(
  'message-count-take-back',
  'UPDATE message_counts SET count = greatest(count - 1, 0) WHERE key = $1',
)

/** What was counted was none of those that are counted. */
export const takeBackCount = async (query: Query, key: Buffer): Promise<void> => {
  await query(takeBack, [key])
}

/** Which one it is within the window of so many seconds. */
export const countMessage = async (query: Query, key: Buffer, most: number, seconds: number): Promise<number> =>
  onlyRow(await query<{ count: number }>(count, [key, most, seconds])).count
