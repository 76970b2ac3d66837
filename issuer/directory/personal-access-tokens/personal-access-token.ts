import { z } from 'zod'
import { id, tenantId, timestamp } from '../../base/schemas.ts'

/**
 * A named token with which a user's scripts call APIs: exchanged for an access token, never itself one. Its value is
 * shown once.
 */
export interface PersonalAccessTokenRow {
  user_id: string
  name: string
  scopes: string[] | null
  created_at: Date
  expires_at: Date | null
  last_used_at: Date | null
}

export const personalAccessToken = z.strictObject({
  tenantId,
  userId: id,
  name: z.string(),
  /** What may be asked for with it; null: whatever the user holds. */
  scopes: z.array(z.string()).nullable(),
  createdAt: timestamp,
  expiresAt: timestamp.nullable(),
  /** To the minute; null: never used. */
  lastUsedAt: timestamp.nullable(),
})
export type PersonalAccessToken = z.output<typeof personalAccessToken>

export const createdPersonalAccessToken = personalAccessToken.extend({ value: z.string() })

export const toPersonalAccessToken = (row: PersonalAccessTokenRow): PersonalAccessToken => ({
  tenantId: 'default',
  userId: row.user_id,
  name: row.name,
  scopes: row.scopes,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at?.getTime() ?? null,
  lastUsedAt: row.last_used_at?.getTime() ?? null,
})

/** Tells what leaked, to people and to scanners of repositories. 256 random bits follow. */
export const personalAccessTokenPrefix = 'pat_'

const name = z.string().min(1).max(256)
// RFC 6749 §3.3
const scopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'must be a scope name')

export const newPersonalAccessToken = z.object({
  name,
  scopes: z
    .array(scopeName)
    .max(256)
    .transform((names) => [...new Set(names)])
    .nullable()
    .default(null),
  expiresAt: timestamp.nullable().default(null),
})
export type NewPersonalAccessToken = z.output<typeof newPersonalAccessToken>

export const nameOnly = z.object({ name })
export const rename = z.object({ currentName: name, name })
