import { z } from 'zod'
import { organizationRole, roleType } from '../../../../events/records.ts'
import { id, ids } from '../../../base/schemas.ts'
import type { RoleType } from '../../roles/role.ts'

export { organizationRole }

/**
 * A role inside organizations as the database holds it: the same in every organization, held in each by other members.
 */
export interface OrganizationRoleRow {
  id: string
  name: string
  description: string | null
  type: RoleType
  created_at: Date
}

export type OrganizationRole = z.output<typeof organizationRole>

export const toOrganizationRole = (row: OrganizationRoleRow): OrganizationRole => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  description: row.description,
  type: row.type,
})

const named = z.strictObject({ id, name: z.string() })

/** A role in a list, with the permissions it carries inside organizations and those of API resources. */
export const listedOrganizationRole = organizationRole.extend({
  scopes: z.array(named),
  resourceScopes: z.array(named.extend({ resource: named })),
})
type ListedOrganizationRole = z.output<typeof listedOrganizationRole>

export interface ListedOrganizationRoleRow extends OrganizationRoleRow {
  scopes: ListedOrganizationRole['scopes']
  resource_scopes: ListedOrganizationRole['resourceScopes']
}

export const toListedOrganizationRole = (row: ListedOrganizationRoleRow): ListedOrganizationRole => ({
  ...toOrganizationRole(row),
  scopes: row.scopes,
  resourceScopes: row.resource_scopes,
})

/** How a role stands beside a member that has it. */
export const organizationRoleName = named

const fields = {
  name: z.string().min(1).max(128),
  description: z.string().max(256).nullable(),
  type: roleType,
}

export const newOrganizationRole = z.object({
  ...fields,
  description: fields.description.default(null),
  type: fields.type.default('User'),
  organizationScopeIds: ids.default([]),
  resourceScopeIds: ids.default([]),
})
export type NewOrganizationRole = z.output<typeof newOrganizationRole>

/** The type changes only while nobody has the role. */
export const organizationRolePatch = z.object(fields).partial()
export type OrganizationRolePatch = z.output<typeof organizationRolePatch>
