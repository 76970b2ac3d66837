import { type Query, statement } from '../../platform/database/database.ts'
import type { Consent } from '../tokens/consents/consent.ts'

interface NamedScope {
  name: string
  description: string | null
}

/** What the consent page says in words. */
export interface ConsentFacts {
  /** In the order in which they are asked for. */
  resources: readonly { indicator: string; name: string; scopes: readonly NamedScope[] }[]
  organizationScopes: readonly NamedScope[]
}

const select = statement(
  'consent-facts',
  `SELECT
     (SELECT coalesce(json_agg(json_build_object('indicator', r.indicator, 'name', r.name, 'scopes', (
        SELECT coalesce(json_agg(json_build_object('name', s.name, 'description', s.description)
          ORDER BY array_position($2::text[], s.name::text)), '[]')
        FROM scopes s WHERE s.resource_id = r.id AND s.name = ANY ($2::text[]))) ORDER BY array_position($1::text[], r.indicator::text)), '[]')
      FROM resources r WHERE r.indicator = ANY ($1::text[])) AS resources,
     (SELECT coalesce(json_agg(json_build_object('name', o.name, 'description', o.description)), '[]')
      FROM organization_scopes o WHERE o.name = ANY ($3::text[])) AS "organizationScopes"`,
)

export const findConsentFacts = async (
  query: Query,
  { scopes, resources }: Omit<Consent, 'organizations'>,
): Promise<ConsentFacts> => {
  const [row] = await query<ConsentFacts>(select, [Object.keys(resources), Object.values(resources).flat(), scopes])
  return {
    organizationScopes: row!.organizationScopes,
    resources: row!.resources.map((resource) => ({
      ...resource,
      scopes: resource.scopes.filter(({ name }) => resources[resource.indicator]?.includes(name)),
    })),
  }
}

const memberships = statement(
  'consent-organizations',
  `SELECT o.id, o.name FROM organization_users m JOIN organizations o ON o.id = m.organization_id
   WHERE m.user_id = $1 ORDER BY o.name, o.id LIMIT 200`,
)

/** The organizations that a person is a member of and may choose from. */
export const findMemberships = (query: Query, userId: string): Promise<{ id: string; name: string }[]> =>
  query<{ id: string; name: string }>(memberships, [userId])
