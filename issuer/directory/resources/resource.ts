import { z } from 'zod'
import { isIndicator } from '../../base/indicator.ts'
import { id, tenantId } from '../../base/schemas.ts'
import { type Scope, scope } from './scope.ts'

/**
 * An API resource as the database holds it. `indicator` is what tokens carry as `aud` (RFC 8707 §2); it never changes.
 */
export interface ResourceRow {
  id: string
  name: string
  indicator: string
  is_default: boolean
  /** Seconds. */
  access_token_ttl: number
  /** A start made it for the Management API, under one of its indicators of then. */
  is_management: boolean
}

export const resource = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  indicator: z.string(),
  isDefault: z.boolean(),
  accessTokenTtl: z.number().int(),
})
export type Resource = z.output<typeof resource>

export const resourceWithScopes = resource.extend({ scopes: z.array(scope) })
export type ResourceWithScopes = Resource & { scopes: Scope[] }

export const toResource = (row: ResourceRow): Resource => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  indicator: row.indicator,
  isDefault: row.is_default,
  accessTokenTtl: row.access_token_ttl,
})

/** Names that the protocol itself uses. */
const isReserved = (text: string) => /^urn:logto:/i.test(text)

const accessTokenTtl = z.number().int().min(1).max(31_536_000)
const name = z.string().min(1).max(256)

export const newResource = z.object({
  name,
  indicator: z
    .string()
    .refine(isIndicator, 'must be an absolute URI without fragment, of at most 2048 characters')
    .refine((text) => !isReserved(text), 'is reserved'),
  accessTokenTtl: accessTokenTtl.default(3600),
})
export type NewResource = z.output<typeof newResource>

/** The indicator is ignored: tokens out there carry it. */
export const resourcePatch = z.object({ name, accessTokenTtl }).partial()
export type ResourcePatch = z.output<typeof resourcePatch>
