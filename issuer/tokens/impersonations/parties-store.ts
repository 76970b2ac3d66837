import { type Query, statement } from '../../../platform/database/database.ts'
import type { NoticedOwner } from '../../base/owner-notices.ts'

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
