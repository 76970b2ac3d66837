import { type Query, statement } from '../../../platform/database/database.ts'
import type { UserProfile } from './user.ts'

/** What userinfo may tell of a user. Times in seconds. */
export interface UserinfoFacts {
  id: string
  username: string | null
  name: string | null
  avatar: string | null
  primaryEmail: string | null
  primaryPhone: string | null
  /** Whether it is known to be the user's. Means nothing without one. */
  isEmailVerified: boolean
  isPhoneVerified: boolean
  profile: UserProfile
  customData: Record<string, unknown>
  identities: Record<string, unknown>
  createdAt: number
  updatedAt: number
  roles: string[]
}

const select = statement(
  'userinfo',
  `SELECT u.id, u.username, u.name, u.avatar, u.primary_email AS "primaryEmail", u.primary_phone AS "primaryPhone",
     u.email_verified_at IS NOT NULL AS "isEmailVerified", u.phone_verified_at IS NOT NULL AS "isPhoneVerified",
     u.profile, u.custom_data AS "customData", u.identities,
     floor(extract(epoch FROM u.created_at))::float8 AS "createdAt", floor(extract(epoch FROM u.updated_at))::float8 AS "updatedAt",
     ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id ORDER BY r.name) AS roles
   FROM users u WHERE u.id = $1`,
)

export const findUserinfo = async (query: Query, userId: string): Promise<UserinfoFacts | undefined> =>
  (await query<UserinfoFacts>(select, [userId]))[0]
