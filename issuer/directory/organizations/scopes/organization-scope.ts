import { z } from 'zod'
import { organizationScope } from '../../../../events/records.ts'

export { organizationScope }

/** A permission inside organizations as the database holds it; the same in every organization. */
export interface OrganizationScopeRow {
  id: string
  name: string
  description: string | null
  created_at: Date
}

export type OrganizationScope = z.output<typeof organizationScope>

export const toOrganizationScope = (row: OrganizationScopeRow): OrganizationScope => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  description: row.description,
})

const fields = {
  name: z
    .string()
    .min(1)
    .max(128)
    // It stands in the `scope` of tokens, where white space separates.
    .regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/, 'must be a scope token (RFC 6749 §3.3): visible ASCII without " and \\'),
  description: z.string().max(256).nullable(),
}

export const newOrganizationScope = z.object({ ...fields, description: fields.description.default(null) })
export type NewOrganizationScope = z.output<typeof newOrganizationScope>

export const organizationScopePatch = z.object(fields).partial()
export type OrganizationScopePatch = z.output<typeof organizationScopePatch>
