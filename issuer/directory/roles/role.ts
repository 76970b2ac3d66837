import { z } from 'zod'
import { role, roleType } from '../../../events/records.ts'
import { id, ids } from '../../base/schemas.ts'

export { role, roleType }

/**
 * A role as the database holds it. A user role can be held by users, a machine-to-machine role by applications of that
 * type.
 */
export interface RoleRow {
  id: string
  name: string
  description: string
  type: RoleType
  is_default: boolean
  created_at: Date
}

export type RoleType = z.output<typeof roleType>

export type Role = z.output<typeof role>

export const toRole = (row: RoleRow): Role => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  description: row.description,
  type: row.type,
  isDefault: row.is_default,
})

/** A role in a list, with how many hold it and up to three of them. */
export const listedRole = role.extend({
  usersCount: z.number().int(),
  featuredUsers: z.array(z.strictObject({ id, name: z.string().nullable(), avatar: z.string().nullable() })).max(3),
  applicationsCount: z.number().int(),
  featuredApplications: z.array(z.strictObject({ id, name: z.string(), type: z.string() })).max(3),
})

export interface ListedRoleRow extends RoleRow {
  users_count: number
  featured_users: { id: string; name: string | null; avatar: string | null }[]
  applications_count: number
  featured_applications: { id: string; name: string; type: string }[]
}

export const toListedRole = (row: ListedRoleRow): z.output<typeof listedRole> => ({
  ...toRole(row),
  usersCount: row.users_count,
  featuredUsers: row.featured_users,
  applicationsCount: row.applications_count,
  featuredApplications: row.featured_applications,
})

export const roleSearchFields = ['id', 'name', 'description'] as const

const fields = {
  name: z.string().min(1).max(128),
  description: z.string().min(1).max(128),
  isDefault: z.boolean(),
}

export const newRole = z.object({
  ...fields,
  type: roleType.default('User'),
  isDefault: z.boolean().default(false),
  scopeIds: ids.default([]),
})
export type NewRole = z.output<typeof newRole>

/** The type of a role never changes. */
export const rolePatch = z.object(fields).partial()
export type RolePatch = z.output<typeof rolePatch>
