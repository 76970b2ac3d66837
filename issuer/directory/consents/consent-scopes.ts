import { z } from 'zod'
import { id, ids } from '../../base/schemas.ts'

/** Scopes about the person that a third-party application may be allowed to ask for. `openid` needs no permission. */
export const userScopes = [
  ...(['profile', 'email', 'phone', 'address', 'custom_data', 'identities', 'roles'] as const),
  ...(['urn:logto:scope:organizations', 'urn:logto:scope:organization_roles', 'urn:logto:scope:sessions'] as const),
] as const

const userScope = z.enum(userScopes)

/** What an application may ask people for, beside what it may already. */
export const newConsentScopes = z.object({
  /** Permissions inside organizations, by id. */
  organizationScopes: ids.default([]),
  /** Scopes of resources, by id. */
  resourceScopes: ids.default([]),
  /** The same, within organizations. */
  organizationResourceScopes: ids.default([]),
  userScopes: z.array(userScope).max(userScopes.length).default([]),
})
export type NewConsentScopes = z.output<typeof newConsentScopes>

const scope = z.object({ id, name: z.string(), description: z.string().nullable() })
const ofResources = z.array(
  z.object({ resource: z.object({ id, name: z.string(), indicator: z.string() }), scopes: z.array(scope) }),
)

export const consentScopes = z.object({
  organizationScopes: z.array(scope),
  resourceScopes: ofResources,
  organizationResourceScopes: ofResources,
  userScopes: z.array(userScope),
})
export type ConsentScopes = z.output<typeof consentScopes>

export const consentScopeKind = z.enum([
  'organization-scopes',
  'resource-scopes',
  'organization-resource-scopes',
  'user-scopes',
])
export type ConsentScopeKind = z.output<typeof consentScopeKind>
