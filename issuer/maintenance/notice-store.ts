import { oneRow, type Query, statement } from '../../platform/database/database.ts'
import type { NoticedOwner } from '../base/owner-notices.ts'

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

// Of a person by name; else the application that acts.
const parties = statement(
  'notice-parties',
  `SELECT u.id, u.primary_email, u.primary_phone, u.profile,
     coalesce((SELECT coalesce(a.name, a.username, a.primary_email) FROM users a WHERE a.id = $2),
       (SELECT c.name FROM applications c WHERE c.id = $3), '') AS actor
   FROM users u WHERE u.id = $1`,
)

/** Who is impersonated, and what they call who acts. Undefined when the person was deleted. */
export const findParties = async (
  query: Query,
  { subjectId, actorId, clientId }: { subjectId: string; actorId: string | null; clientId: string },
): Promise<(NoticedOwner & { actor: string }) | undefined> =>
  (await query<NoticedOwner & { actor: string }>(parties, [subjectId, actorId, clientId]))[0]
