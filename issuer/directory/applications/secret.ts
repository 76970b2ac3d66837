import { z } from 'zod'
import { id, tenantId, timestamp } from '../../base/schemas.ts'

/** A named secret of an application. Its digest stays in the database; its value is shown once. */
export interface SecretRow {
  application_id: string
  name: string
  created_at: Date
  expires_at: Date | null
}

export const applicationSecret = z.strictObject({
  tenantId,
  applicationId: id,
  name: z.string(),
  createdAt: timestamp,
  expiresAt: timestamp.nullable(),
})
export type ApplicationSecret = z.output<typeof applicationSecret>

export const createdSecret = applicationSecret.extend({ value: z.string() })

export const toSecret = (row: SecretRow): ApplicationSecret => ({
  tenantId: 'default',
  applicationId: row.application_id,
  name: row.name,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at?.getTime() ?? null,
})

export const defaultSecretName = 'Default secret'

/** 43 characters of 62 are 256 bits; letters and digits need no escaping in a Basic header. */
export const secretLength = 43

const name = z.string().min(1).max(256)

export const newSecret = z.object({ name, expiresAt: timestamp.nullable().default(null) })
export type NewSecret = z.output<typeof newSecret>

export const secretPatch = z.object({ name, expiresAt: timestamp.nullable() }).partial()
export type SecretPatch = z.output<typeof secretPatch>
