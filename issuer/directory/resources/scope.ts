import { z } from 'zod'
import { scope } from '../../../events/records.ts'

export { scope }

/** A permission (scope) of an API resource as the database holds it. */
export interface ScopeRow {
  id: string
  resource_id: string
  name: string
  description: string | null
  created_at: Date
}

export type Scope = z.output<typeof scope>

export const toScope = (row: ScopeRow): Scope => ({
  tenantId: 'default',
  id: row.id,
  resourceId: row.resource_id,
  name: row.name,
  description: row.description,
  createdAt: row.created_at.getTime(),
})

export const scopeSearchFields = ['id', 'name', 'description'] as const

// RFC 6749 §3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ). White space has an error code of its own.
const scopeToken = /^[\x21\x23-\x5B\x5D-\x7E\s]+$/

const fields = {
  name: z
    .string()
    .min(1)
    .max(256)
    .regex(scopeToken, 'must be a scope token (RFC 6749 §3.3): visible ASCII without " and \\'),
  description: z.string().max(2048).nullable(),
}

export const newScope = z.object({ ...fields, description: fields.description.default(null) })
export type NewScope = z.output<typeof newScope>

export const scopePatch = z.object(fields).partial()
export type ScopePatch = z.output<typeof scopePatch>
