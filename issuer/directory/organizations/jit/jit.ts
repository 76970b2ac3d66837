import { z } from 'zod'
import { id, tenantId } from '../../../base/schemas.ts'

/** The part behind the `@`, in lower case. */
export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1).toLowerCase()

/** As in addresses; case does not matter. */
export const emailDomain = z
  .string()
  .max(128, { abort: true })
  .regex(/^[^\s@.]+(?:\.[^\s@.]+)+$/, 'must be a domain such as example.com')
  .transform((domain) => domain.toLowerCase())

export const jitEmailDomain = z.strictObject({ tenantId, organizationId: id, emailDomain: z.string() })

export const toJitEmailDomain = (organizationId: string, emailDomain: string): z.output<typeof jitEmailDomain> => ({
  tenantId: 'default',
  organizationId,
  emailDomain,
})

export const jitSsoConnector = z.strictObject({ tenantId, id })
