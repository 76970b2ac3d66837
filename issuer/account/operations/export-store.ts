import { type Query, statement } from '../../../platform/database/database.ts'

/** How much of the history a file holds: the newest. */
export const maxHistory = 5_000

// What others did to the account is told without where they were.
const select = statement(
  'account-export',
  `SELECT
     (SELECT coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'roles', ARRAY(
        SELECT r.name FROM organization_user_roles m JOIN organization_roles r ON r.id = m.organization_role_id
        WHERE m.user_id = $1 AND m.organization_id = o.id ORDER BY r.name)) ORDER BY o.name, o.id), '[]')
      FROM organization_users u JOIN organizations o ON o.id = u.organization_id WHERE u.user_id = $1) AS organizations,
     (SELECT coalesce(json_agg(r.name ORDER BY r.name), '[]')
      FROM user_roles u JOIN roles r ON r.id = u.role_id WHERE u.user_id = $1) AS roles,
     (SELECT coalesce(json_agg(json_build_object('name', t.name, 'scopes', t.scopes, 'createdAt', t.created_at,
        'expiresAt', t.expires_at, 'lastUsedAt', t.last_used_at) ORDER BY t.name), '[]')
      FROM personal_access_tokens t WHERE t.user_id = $1) AS "personalAccessTokens",
     (SELECT coalesce(json_agg(json_build_object('clientId', k.client_id, 'scopes', k.scopes, 'resources', k.resources,
        'organizations', k.organizations, 'grantedAt', k.granted_at, 'expiresAt', k.expires_at,
        'revokedAt', k.revoked_at) ORDER BY k.granted_at), '[]')
      FROM consents k WHERE k.user_id = $1) AS consents,
     (SELECT coalesce(json_agg(json_build_object('startedAt', i.started_at, 'endedAt', i.ended_at, 'reason', i.reason,
        'resource', i.resource, 'scopes', i.scopes) ORDER BY i.started_at DESC), '[]')
      FROM impersonation_sessions i WHERE i.subject_id = $1) AS impersonations,
     (SELECT coalesce(json_agg(json_build_object('at', l.created_at, 'what', l.key, 'result', l.result,
        'applicationId', l.application_id, 'ip', l.ip, 'userAgent', l.user_agent) ORDER BY l.created_at DESC), '[]')
      FROM (
        SELECT created_at, key, result, application_id,
          CASE WHEN is_own THEN payload->>'ip' END AS ip, CASE WHEN is_own THEN payload->>'userAgent' END AS user_agent
        FROM (
          SELECT *, coalesce(payload->>'subject' = $1, key LIKE 'Interaction.%' OR key LIKE 'Session.%') AS is_own
          FROM logs WHERE user_id = $1 ORDER BY created_at DESC LIMIT ${maxHistory}) AS newest) AS l) AS history`,
)

/** What is kept about a person beside the user itself, factors and sessions. */
export type ExportedParts = Record<
  'organizations' | 'roles' | 'personalAccessTokens' | 'consents' | 'impersonations' | 'history',
  readonly unknown[]
>

export const readExportedParts = async (query: Query, userId: string): Promise<ExportedParts> => {
  const [row] = await query<ExportedParts>(select, [userId])
  return row!
}
