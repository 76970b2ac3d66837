import { z } from 'zod'
import { id, jsonObject, tenantId, timestamp } from '../../../base/schemas.ts'
import type { JitSsoConnectorRow } from './jit-store.ts'

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

/** As the list of enterprise connectors shows it; how it reaches the provider is for those who may read that. */
export const jitSsoConnector = z.strictObject({
  tenantId,
  id,
  providerName: z.string(),
  connectorName: z.string(),
  config: z.strictObject({}),
  domains: z.array(z.string()),
  branding: jsonObject,
  syncProfile: z.boolean(),
  enableTokenStorage: z.literal(false),
  createdAt: timestamp,
})

export const toJitSsoConnector = ({ createdAt, ...row }: JitSsoConnectorRow): z.input<typeof jitSsoConnector> => ({
  tenantId: 'default',
  ...row,
  config: {},
  enableTokenStorage: false,
  createdAt: createdAt.getTime(),
})
