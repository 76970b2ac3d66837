import { type Query, statement } from '../../../platform/database/database.ts'

// Clocks may differ: a token of a session that has just expired may still be good somewhere.
const isOngoing = `ended_at IS NULL AND expires_at > now() - interval '120 seconds'`

const held = statement(
  'session-resource-held',
  `SELECT FROM scopes JOIN resources ON resources.id = scopes.resource_id
   WHERE resources.indicator = ANY (ARRAY(
       SELECT resource FROM impersonation_sessions WHERE id = $1 AND ${isOngoing}
       UNION ALL SELECT unnest(resources) FROM authorizations WHERE id = $1 AND ${isOngoing}))
     AND scopes.id IN (
       SELECT scope_id FROM role_scopes JOIN application_roles USING (role_id) WHERE application_id = $2
       UNION ALL SELECT scope_id FROM organization_role_resource_scopes
         JOIN organization_application_roles USING (organization_role_id) WHERE application_id = $2)
   LIMIT 1`,
)

/**
 * Whether the session goes on and is for a resource of which the client holds a permission: an API that got a token
 * with this `sid` is one that the client speaks for.
 */
export const holdsResourceOfSession = async (query: Query, sid: string, clientId: string): Promise<boolean> =>
  (await query(held, [sid, clientId])).length > 0
