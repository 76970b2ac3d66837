import type { Knex } from 'knex'
import type { Page } from '../../../base/lists/list-store.ts'
import { type Listed, listed } from '../../../base/lists/list-store.ts'
import type { OrganizationRoleRow } from '../roles/organization-role.ts'
import type { OrganizationScopeRow } from '../scopes/organization-scope.ts'
import { type MemberKind, memberTables } from './member-store.ts'

/** A user or an application in an organization. */
export interface Member {
  kind: MemberKind
  organizationId: string
  id: string
}

const held = (knex: Knex, { kind, organizationId, id }: Member): Knex.QueryBuilder => {
  const { roles, column } = memberTables[kind]
  return knex(roles).where({ [`${roles}.organization_id`]: organizationId, [`${roles}.${column}`]: id })
}

/** In the order of their making. */
export const listRolesOfMember = (
  knex: Knex,
  member: Member,
  page: Page | undefined,
): Promise<Listed<OrganizationRoleRow>> => {
  const query = held(knex, member)
    .join('organization_roles', 'organization_roles.id', `${memberTables[member.kind].roles}.organization_role_id`)
    .orderBy(['organization_roles.created_at', 'organization_roles.id'])
    .select('organization_roles.*')
  return listed(query, page)
}

/** What the roles of a member carry inside the organization, each once, in the order of their making. */
export const listScopesOfMember = (knex: Knex, member: Member): Promise<OrganizationScopeRow[]> =>
  knex<OrganizationScopeRow>('organization_scopes')
    .whereIn(
      'id',
      held(knex, member)
        .join(
          'organization_role_scopes',
          'organization_role_scopes.organization_role_id',
          `${memberTables[member.kind].roles}.organization_role_id`,
        )
        .select('organization_role_scopes.organization_scope_id'),
    )
    .orderBy(['created_at', 'id'])

export const roleIdsOfMember = async (knex: Knex, member: Member): Promise<string[]> =>
  (await held(knex, member).select('organization_role_id')).map(
    ({ organization_role_id: id }: { organization_role_id: string }) => id,
  )

/** Gives all of these members all of these roles, which are those that exist; what they have is left alone. */
export const addMemberRoles = async (
  trx: Knex,
  kind: MemberKind,
  organizationId: string,
  ids: readonly string[],
  roleIds: readonly string[],
): Promise<void> => {
  const { roles, column } = memberTables[kind]
  await trx.raw(
    `INSERT INTO ${roles} (organization_id, ${column}, organization_role_id)
     SELECT ?, member, role FROM unnest(?::text[]) AS member, unnest(?::text[]) AS role ON CONFLICT DO NOTHING`,
    [organizationId, [...ids], [...roleIds]],
  )
}

/** Answers how many were taken. */
export const removeMemberRoles = async (trx: Knex, member: Member, roleIds: readonly string[]): Promise<number> =>
  roleIds.length === 0 ? 0 : held(trx, member).whereIn('organization_role_id', roleIds).delete()
