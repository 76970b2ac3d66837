import { z } from 'zod'
import { user, userProfile } from '../../../events/records.ts'
import { clearable, jsonObject } from '../../base/schemas.ts'

export { user, userProfile }

/** A user as the database holds it. */
export interface UserRow {
  id: string
  username: string | null
  primary_email: string | null
  primary_phone: string | null
  password_digest: string | null
  password_algorithm: PasswordAlgorithm | null
  name: string | null
  avatar: string | null
  profile: UserProfile
  custom_data: Record<string, unknown>
  identities: Record<string, unknown>
  application_id: string | null
  is_suspended: boolean
  last_sign_in_at: Date | null
  /** Null: not known, the password is as old as the user. */
  password_changed_at: Date | null
  /** By an administrator, whatever its age. */
  password_expired: boolean
  created_at: Date
  updated_at: Date
}

/** Of digests that come from elsewhere; ours are Argon2id. */
const passwordAlgorithms = ['Argon2i', 'Argon2id', 'Argon2d', 'SHA1', 'SHA256', 'MD5', 'Bcrypt', 'Legacy'] as const
export type PasswordAlgorithm = (typeof passwordAlgorithms)[number]

export type UserProfile = z.output<typeof userProfile>

/**
 * A user as the Management API answers and events tell; nothing of the password but whether there is one. Times in ms.
 */
export type User = z.output<typeof user>

/**
 * A user in a list, with the digest of the password when the caller asks for that. Null for a user without a password.
 */
export const listedUser = user.extend({
  passwordDigest: z.string().nullable().optional(),
  passwordAlgorithm: z.enum(passwordAlgorithms).nullable().optional(),
})

/** What may be asked for besides. */
export const userDetails = listedUser.extend({ ssoIdentities: z.array(jsonObject).optional() })

export const toDigest = (row: UserRow) => ({
  passwordDigest: row.password_digest,
  passwordAlgorithm: row.password_algorithm,
})

export const toUser = (row: UserRow): User => ({
  id: row.id,
  username: row.username,
  primaryEmail: row.primary_email,
  primaryPhone: row.primary_phone,
  name: row.name,
  avatar: row.avatar,
  customData: row.custom_data,
  identities: row.identities,
  lastSignInAt: row.last_sign_in_at?.getTime() ?? null,
  createdAt: row.created_at.getTime(),
  updatedAt: row.updated_at.getTime(),
  profile: row.profile,
  applicationId: row.application_id,
  cimdClientId: null,
  isSuspended: row.is_suspended,
  hasPassword: row.password_digest !== null,
})

// What people search for first: of several conditions the first that holds is the last that is looked at.
export const userSearchFields = ['name', 'primaryEmail', 'username', 'primaryPhone', 'id'] as const

// The pattern of an address backtracks, so a text too long must not reach it.
const identity = {
  username: clearable(
    z
      .string()
      .max(128)
      .regex(/^[A-Z_a-z]\w*$/, 'must begin with a letter or _ and hold only word characters'),
  ),
  primaryEmail: clearable(
    z
      .string()
      .max(128, { abort: true })
      .regex(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'must be an email address'),
  ),
  // Whether it is a number, and which: `phone.ts`.
  primaryPhone: clearable(z.string().max(128).regex(/^\d+$/, 'must consist of digits')),
  name: clearable(z.string().max(128)),
  // Others show it: never a scheme that runs or reads something.
  avatar: clearable(z.url({ protocol: /^https?$/ }).max(2048)),
  customData: jsonObject,
  profile: userProfile,
}

/** In UTF-8. Nobody types more, and hashing should not begin for it. */
const maxPasswordBytes = 1_024

/** Any text that a password could be; whether it is good enough: `password-policy/`. */
export const password = z
  .string()
  .min(1)
  .max(maxPasswordBytes)
  .refine((text) => Buffer.byteLength(text) <= maxPasswordBytes, `must be at most ${maxPasswordBytes} bytes`)

export const newUser = z
  .object({
    ...identity,
    password,
    passwordDigest: z.string().min(1).max(256),
    passwordAlgorithm: z.enum(passwordAlgorithms),
  })
  .partial()
export type NewUser = z.output<typeof newUser>

export const userPatch = z.object(identity).partial()
export type UserPatch = z.output<typeof userPatch>
