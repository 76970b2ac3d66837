import { type Query, statement } from '../../../platform/database/database.ts'
import { lookUp } from '../../../platform/database/shared-statement.ts'
import type { SignInRecord } from '../../tokens/sessions/session.ts'
import { type AuthorizationFacts, authorizationFactsSql } from '../grants/authorization/authorization-facts-store.ts'

/** A resource that tokens may be for, with the names of all its scopes. */
export interface PreviewResource {
  indicator: string
  scopes: readonly string[]
}

const resources = statement(
  'preview-resources',
  `SELECT r.indicator, coalesce(array_agg(s.name ORDER BY s.name) FILTER (WHERE s.id IS NOT NULL), '{}') AS scopes
   FROM resources r LEFT JOIN scopes s ON s.resource_id = r.id
   WHERE $1::text IS NULL OR r.indicator = $1 GROUP BY r.id ORDER BY r.is_default DESC, r.created_at, r.id LIMIT $2`,
)

/** The one with this indicator, or all, the default one first. */
export const findPreviewResources = (query: Query, indicator: string | undefined, limit: number) =>
  query<PreviewResource>(resources, [indicator ?? null, limit])

const organizationScopes = statement(
  'preview-organization-scopes',
  'SELECT name FROM organization_scopes ORDER BY name',
)

/** The names of all permissions inside organizations. */
export const findOrganizationScopes = async (query: Query): Promise<string[]> =>
  (await query<{ name: string }>(organizationScopes, [])).map(({ name }) => name)

/** An authorization that there would be if somebody signed in now; nothing of it is written. */
export interface ImaginedAuthorization {
  id: string
  userId: string
  clientId: string
  scopes: readonly string[]
  resource: string | undefined
  organizationId: string | undefined
  amr: readonly string[]
  acr: string
  interaction: SignInRecord
}

// The same statement that is asked of codes, about a row that is made up.
const select = lookUp(
  'preview-facts',
  {
    ...{ authorization_id: 'text', user_id: 'text', client_id: 'text', scopes: 'text[]', resource: 'text' },
    ...{ organization_id: 'text', amr: 'text[]', acr: 'text', interaction: 'jsonb' },
  },
  authorizationFactsSql('(SELECT asked.authorization_id) token', 'asked.client_id', {
    authorizations: `(SELECT asked.authorization_id AS id, NULL::text AS session_id, asked.user_id, asked.client_id,
       asked.scopes, array_remove(ARRAY[asked.resource], NULL) AS resources, true AS is_offline,
       now() AS authenticated_at, asked.amr, asked.acr, asked.interaction, NULL::text AS end_reason,
       'infinity'::timestamptz AS expires_at)`,
  }),
)

/** What decides about its tokens now. Undefined: there is no such user. */
export const findImaginedFacts = async (
  query: Query,
  { id, userId, clientId, organizationId, ...rest }: ImaginedAuthorization,
): Promise<AuthorizationFacts | undefined> => {
  const asked = { authorization_id: id, user_id: userId, client_id: clientId, organization_id: organizationId, ...rest }
  return (await query<{ facts: AuthorizationFacts }>(select, [asked]))[0]?.facts
}
