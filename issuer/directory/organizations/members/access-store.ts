import { type Query, statement } from '../../../../platform/database/database.ts'
import { onlyRow } from '../../../base/only-row.ts'
import { hasOwnFactor } from '../../users/factors/factor-store.ts'
import { type MemberKind, memberTables } from './member-store.ts'

/**
 * What a member may have in an organization; asked in one round trip, and only by token requests that name an
 * organization.
 */
export interface OrganizationAccess {
  isMember: boolean
  /** The organization asks for multi-factor authentication, and the user has no factor of their own. */
  isFactorMissing: boolean
  /** Without a resource: of the names asked for, those that are permissions inside organizations. */
  defined: readonly string[]
  /** Of the names asked for, what the member's roles carry: inside the organization or, with a resource, on that. */
  granted: readonly string[]
}

// Looked up from the member's own roles, so that the cost does not grow with members, roles or organizations. Roles of
// organizations never carry permissions of the Management API; that they count for nothing here makes sure of it.
const selectFor = (kind: MemberKind) => {
  const { members, roles, column } = memberTables[kind]
  // There is none for applications, which prove themselves otherwise.
  const isFactorMissing =
    kind === 'user'
      ? `EXISTS (SELECT FROM organizations o WHERE o.id = $1 AND o.is_mfa_required) AND NOT ${hasOwnFactor('$2')}`
      : 'false'
  const carriedBy = (table: string, scope: string) =>
    `EXISTS (SELECT FROM ${roles} m WHERE m.organization_id = $1 AND m.${column} = $2 AND EXISTS (
       SELECT FROM ${table} c WHERE c.organization_role_id = m.organization_role_id AND ${scope} OFFSET 0))`
  return statement(
    `organization-access-${kind}`,
    `SELECT EXISTS (SELECT FROM ${members} WHERE organization_id = $1 AND ${column} = $2) AS "isMember",
       ${isFactorMissing} AS "isFactorMissing",
       CASE WHEN $3::text IS NULL THEN
         (SELECT string_agg(s.name, ' ') FROM organization_scopes s WHERE s.name = ANY ($4::text[])) END AS defined,
       CASE WHEN $3::text IS NULL THEN
         (SELECT string_agg(s.name, ' ') FROM organization_scopes s WHERE s.name = ANY ($4::text[])
          AND ${carriedBy('organization_role_scopes', 'c.organization_scope_id = s.id')})
       ELSE
         (SELECT string_agg(s.name, ' ') FROM scopes s JOIN resources r ON r.id = s.resource_id
          WHERE r.id = $3 AND NOT r.is_management AND s.name = ANY ($4::text[])
          AND ${carriedBy('organization_role_resource_scopes', 'c.scope_id = s.id')}) END AS granted`,
  )
}

const selects = { user: selectFor('user'), application: selectFor('application') } as const

export const findOrganizationAccess = async (
  query: Query,
  member: { kind: MemberKind; id: string },
  asked: { organizationId: string; resourceId: string | undefined; scopes: readonly string[] },
): Promise<OrganizationAccess> => {
  const values = [asked.organizationId, member.id, asked.resourceId, asked.scopes]
  const rows = await query<
    Pick<OrganizationAccess, 'isMember' | 'isFactorMissing'> & { defined: string | null; granted: string | null }
  >(selects[member.kind], values)
  const { defined, granted, ...access } = onlyRow(rows)
  return { ...access, defined: defined?.split(' ') ?? [], granted: granted?.split(' ') ?? [] }
}
