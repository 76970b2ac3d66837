import { z } from 'zod'
import { id, tenantId, timestamp } from '../../base/schemas.ts'

/** What a one-time token lets its holder do, and nothing else; without an event, any of them. */
const interactionEvents = ['SignIn', 'Register', 'ForgotPassword'] as const
export type InteractionEvent = (typeof interactionEvents)[number]

export const oneTimeTokenContext = z.strictObject({
  /** The organizations that the holder joins. */
  jitOrganizationIds: z.array(id).max(100).optional(),
  interactionEvent: z.enum(interactionEvents).optional(),
})
export type OneTimeTokenContext = z.output<typeof oneTimeTokenContext>

export const oneTimeTokenStatuses = ['active', 'consumed', 'revoked', 'expired'] as const
export type OneTimeTokenStatus = (typeof oneTimeTokenStatuses)[number]

/** A one-time token as the database holds it: its digest only. */
export interface OneTimeTokenRow {
  id: string
  email: string
  context: OneTimeTokenContext
  created_at: Date
  expires_at: Date
  status: OneTimeTokenStatus
}

/** The token itself is shown once, when it is made. */
export const oneTimeToken = z.strictObject({
  tenantId,
  id,
  email: z.string(),
  context: oneTimeTokenContext,
  status: z.enum(oneTimeTokenStatuses),
  createdAt: timestamp,
  expiresAt: timestamp,
})

export const toOneTimeToken = (row: OneTimeTokenRow): z.output<typeof oneTimeToken> => ({
  tenantId: 'default',
  id: row.id,
  email: row.email,
  context: row.context,
  status: row.status,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at.getTime(),
})

export const email = z
  .string()
  .max(128, { abort: true })
  .regex(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'must be an email address')

const defaultSeconds = 600
/** A link that waits longer in a mailbox is found by others. */
const maxSeconds = 30 * 86_400

export const newOneTimeToken = z.object({
  email,
  /** In seconds. */
  expiresIn: z.number().int().min(1).max(maxSeconds).default(defaultSeconds),
  context: oneTimeTokenContext.default({}),
})
export type NewOneTimeToken = z.output<typeof newOneTimeToken>
