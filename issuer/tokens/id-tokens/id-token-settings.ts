import { z } from 'zod'
import type { Setting } from '../../base/settings-store.ts'

/** Claims that ID tokens have when they are enabled, beside those of `profile`, `email`, `phone` and `address`. */
export const extendedClaims = [
  'custom_data',
  'identities',
  'sso_identities',
  'roles',
  'organizations',
  'organization_data',
  'organization_roles',
] as const
export type ExtendedClaim = (typeof extendedClaims)[number]

const defaultClaims: readonly ExtendedClaim[] = ['roles', 'organizations', 'organization_roles']

/** What ID tokens tell. A scope must allow it too; userinfo tells all that scopes allow. */
export const idTokenSettings = {
  name: 'id-token',
  schema: z.object({
    enabledExtendedClaims: z
      .array(z.string())
      .default([...defaultClaims])
      // Issuers of a newer version may know more of them.
      .transform((claims) => extendedClaims.filter((claim) => claims.includes(claim))),
  }),
} satisfies Setting<z.ZodType>

/** As the Management API takes it and answers. Left out: none. */
export const idTokenConfig = z.object({ enabledExtendedClaims: z.array(z.enum(extendedClaims)).optional() })
