import { z } from 'zod'
import { id } from '../../../base/schemas.ts'
import type { FactorRow } from './factor-store.ts'

/** A factor as the Management API answers it: never what it is made of. */
export const mfaVerification = z.strictObject({
  id,
  /** ISO 8601 */
  createdAt: z.string(),
  lastUsedAt: z.string().optional(),
  type: z.enum(['Totp', 'WebAuthn', 'BackupCode']),
  /** Of a passkey: User-Agent of the browser that it was made with. */
  agent: z.string().optional(),
  name: z.string().optional(),
  /** Of backup codes: how many are left. */
  remainCodes: z.int().optional(),
})
export type MfaVerification = z.output<typeof mfaVerification>

export const toMfaVerification = (row: FactorRow): MfaVerification => ({
  id: row.id,
  createdAt: row.createdAt.toISOString(),
  ...(row.lastUsedAt && { lastUsedAt: row.lastUsedAt.toISOString() }),
  type: row.type,
  ...(row.agent !== null && { agent: row.agent }),
  ...(row.name !== null && { name: row.name }),
  ...(row.left !== null && { remainCodes: row.left }),
})

/**
 * What an administrator may give a person. A `secret` is for `Totp` alone: backup codes are always made here, since
 * those of others may be guessed.
 */
export const newMfaVerification = z.object({
  type: z.enum(['Totp', 'BackupCode']),
  /** Base32, 16 to 64 bytes. Default: a new one. */
  secret: z.string().min(1).max(128).optional(),
})
export type NewMfaVerification = z.output<typeof newMfaVerification>

/** What it is made of: this once. */
export const createdMfaVerification = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('Totp'),
    /** Base32 */
    secret: z.string(),
    /** A data URL. */
    secretQrCode: z.string(),
  }),
  z.strictObject({ type: z.literal('BackupCode'), codes: z.array(z.string()) }),
])
export type CreatedMfaVerification = z.output<typeof createdMfaVerification>
