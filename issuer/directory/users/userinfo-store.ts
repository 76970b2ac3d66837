import { type Query, statement } from '../../../platform/database/database.ts'
import type { UserProfile } from './user.ts'

/** What userinfo and ID tokens may tell of a user. Times in seconds. */
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
  customData: Record<string, unknown> | null
  identities: Record<string, unknown> | null
  createdAt: number
  updatedAt: number
  roles: string[] | null
  organizations: { id: string; name: string; description: string | null }[] | null
  /** `<organization id>:<role name>` */
  organizationRoles: string[] | null
}

/** Columns of the user `u`. With `scopes`, an SQL array, what only other scopes tell is not read. */
export const userinfoColumns = (scopes?: string): string => {
  const told = (scope: string, column: string) =>
    scopes === undefined ? column : `CASE WHEN '${scope}' = ANY (${scopes}) THEN ${column} END`
  return `u.id, u.username, u.name, u.avatar, u.primary_email AS "primaryEmail", u.primary_phone AS "primaryPhone",
     u.email_verified_at IS NOT NULL AS "isEmailVerified", u.phone_verified_at IS NOT NULL AS "isPhoneVerified",
     u.profile, ${told('custom_data', 'u.custom_data')} AS "customData", ${told('identities', 'u.identities')} AS identities,
     floor(extract(epoch FROM u.created_at))::float8 AS "createdAt", floor(extract(epoch FROM u.updated_at))::float8 AS "updatedAt",
     ${told(
       'roles',
       `ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = u.id ORDER BY r.name)`,
     )} AS roles,
     ${told(
       'urn:logto:scope:organizations',
       `COALESCE((SELECT json_agg(json_build_object('id', o.id, 'name', o.name, 'description', o.description) ORDER BY o.id)
         FROM organization_users m JOIN organizations o ON o.id = m.organization_id WHERE m.user_id = u.id), '[]')`,
     )} AS organizations,
     ${told(
       'urn:logto:scope:organization_roles',
       // The primary key begins with the organization, so the way leads through those the user belongs to.
       `ARRAY(SELECT mr.organization_id || ':' || o.name FROM organization_users m
         JOIN organization_user_roles mr ON mr.organization_id = m.organization_id AND mr.user_id = m.user_id
         JOIN organization_roles o ON o.id = mr.organization_role_id WHERE m.user_id = u.id ORDER BY 1)`,
     )} AS "organizationRoles"`
}

const select = statement('userinfo', `SELECT ${userinfoColumns()} FROM users u WHERE u.id = $1`)

export const findUserinfo = async (query: Query, userId: string): Promise<UserinfoFacts | undefined> =>
  (await query<UserinfoFacts>(select, [userId]))[0]
