import { z } from 'zod'
import { organization, organizationBranding, organizationColor } from '../../../events/records.ts'
import { id, jsonObject } from '../../base/schemas.ts'

export { organization }

/** An organization as the database holds it. Names need not differ. */
export interface OrganizationRow {
  id: string
  name: string
  description: string | null
  custom_data: Record<string, unknown>
  is_mfa_required: boolean
  color: OrganizationColor
  branding: OrganizationBranding
  custom_css: string | null
  created_at: Date
}

export type OrganizationColor = z.output<typeof organizationColor>

export type OrganizationBranding = z.output<typeof organizationBranding>

export type Organization = z.output<typeof organization>

export const toOrganization = (row: OrganizationRow): Organization => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  description: row.description,
  customData: row.custom_data,
  isMfaRequired: row.is_mfa_required,
  color: row.color,
  branding: row.branding,
  customCss: row.custom_css,
  createdAt: row.created_at.getTime(),
})

/** With how many users are members, and three of them, when the caller asks for that (`showFeatured`). */
export const featuredOrganization = organization.extend({
  usersCount: z.number().int().optional(),
  featuredUsers: z
    .array(z.strictObject({ id, name: z.string().nullable(), avatar: z.string().nullable() }))
    .max(3)
    .optional(),
})

export interface FeaturedOrganizationRow extends OrganizationRow {
  users_count: number
  featured_users: { id: string; name: string | null; avatar: string | null }[]
}

export const toFeaturedOrganization = (row: FeaturedOrganizationRow): z.output<typeof featuredOrganization> => ({
  ...toOrganization(row),
  usersCount: row.users_count,
  featuredUsers: row.featured_users,
})

const fields = {
  name: z.string().min(1).max(128),
  description: z.string().max(256).nullable(),
  customData: jsonObject,
  isMfaRequired: z.boolean(),
  color: organizationColor,
  branding: organizationBranding,
  customCss: z.string().max(65_536).nullable(),
}

export const newOrganization = z.object({
  ...fields,
  description: fields.description.default(null),
  customData: fields.customData.default({}),
  isMfaRequired: fields.isMfaRequired.default(false),
  color: fields.color.default({}),
  branding: fields.branding.default({}),
  customCss: fields.customCss.default(null),
})
export type NewOrganization = z.output<typeof newOrganization>

/** Objects are replaced as a whole. */
export const organizationPatch = z.object(fields).partial()
export type OrganizationPatch = z.output<typeof organizationPatch>
