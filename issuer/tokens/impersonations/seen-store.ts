import { type Query, statement } from '../../../platform/database/database.ts'

/** An impersonation as the one sees it who was impersonated: who, through what, why and how long. */
export interface SeenImpersonation {
  id: string
  actorId: string | null
  /** Null when nobody was named, or they are gone. */
  actorName: string | null
  clientId: string
  clientName: string | null
  resource: string | null
  scopes: string[]
  reason: string | null
  ticket: string | null
  access: 'read' | null
  approvalId: string | null
  startedAt: Date
  expiresAt: Date
  endedAt: Date | null
  /** It goes on. */
  isActive: boolean
}

const ofPerson = statement(
  'impersonations-of-person',
  `SELECT id, actor_id AS "actorId", client_id AS "clientId", resource, scopes, reason, ticket, access,
     approval_id AS "approvalId", started_at AS "startedAt", expires_at AS "expiresAt", ended_at AS "endedAt",
     ended_at IS NULL AND expires_at > now() AS "isActive",
     (SELECT coalesce(a.name, a.username, a.primary_email) FROM users a WHERE a.id = actor_id) AS "actorName",
     (SELECT c.name FROM applications c WHERE c.id = client_id) AS "clientName"
   FROM impersonation_sessions WHERE subject_id = $1 AND ($2::text IS NULL OR id = $2)
   ORDER BY started_at DESC, id LIMIT 100`,
)

/** Newest first, 100 at most; or the one with this id. */
export const findImpersonationsOf = (
  query: Query,
  userId: string,
  id?: string | undefined,
): Promise<SeenImpersonation[]> => query<SeenImpersonation>(ofPerson, [userId, id ?? null])
