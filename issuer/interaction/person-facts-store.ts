import { z } from 'zod'
import { type Query, statement } from '../../platform/database/database.ts'
import type { PersonFacts } from './person-facts.ts'

/** For how long nobody who said "not now" is offered a passkey. */
const passkeySkipLife = `interval '90 days'`

/** An SQL expression: the facts of the user whose id is `userId`, as JSON; NULL for nobody. */
export const personFacts = (userId: string): string => `(SELECT json_build_object(
     'id', u.id, 'isSuspended', u.is_suspended, 'hasPassword', u.password_digest IS NOT NULL,
     'passwordChangedAt', extract(epoch FROM coalesce(u.password_changed_at, u.created_at)) * 1000,
     'isPasswordMarkedExpired', u.password_expired, 'hasUsername', u.username IS NOT NULL,
     'hasIdentity', u.identities <> '{}' OR EXISTS (SELECT FROM user_sso_identities s WHERE s.user_id = u.id),
     'hasEmail', u.primary_email IS NOT NULL AND u.email_verified_at IS NOT NULL,
     'hasPhone', u.primary_phone IS NOT NULL AND u.phone_verified_at IS NOT NULL,
     'hasTotp', EXISTS (SELECT FROM totp_secrets t WHERE t.user_id = u.id),
     'passkeys', (SELECT count(*) FROM passkeys k WHERE k.user_id = u.id),
     'backupCodes', (SELECT count(*) FROM backup_codes b WHERE b.user_id = u.id AND b.used_at IS NULL),
     'hasSkippedMfa', u.mfa_skipped_at IS NOT NULL,
     'hasSkippedPasskey', coalesce(u.passkey_skipped_at > now() - ${passkeySkipLife}, false),
     'mfaOrganizations', ARRAY(
       SELECT m.organization_id FROM organization_users m JOIN organizations o ON o.id = m.organization_id
       WHERE m.user_id = u.id AND o.is_mfa_required))
     FROM users u WHERE u.id = ${userId})`

const facts = z.object({
  id: z.string(),
  isSuspended: z.boolean(),
  hasPassword: z.boolean(),
  /** In ms. */
  passwordChangedAt: z.number(),
  isPasswordMarkedExpired: z.boolean(),
  hasUsername: z.boolean(),
  hasIdentity: z.boolean(),
  hasEmail: z.boolean(),
  hasPhone: z.boolean(),
  hasTotp: z.boolean(),
  passkeys: z.number(),
  backupCodes: z.number(),
  hasSkippedMfa: z.boolean(),
  hasSkippedPasskey: z.boolean(),
  mfaOrganizations: z.array(z.string()),
})

export type StoredPersonFacts = Omit<PersonFacts, 'isPasswordExpired'> & z.output<typeof facts>

export const toPersonFacts = (value: unknown): StoredPersonFacts | undefined =>
  value === null || value === undefined ? undefined : facts.parse(value)

const select = statement('person-facts', `SELECT ${personFacts('$1')} AS facts`)

/** Undefined: there is nobody. */
export const findPersonFacts = async (query: Query, userId: string): Promise<StoredPersonFacts | undefined> =>
  toPersonFacts((await query<{ facts: unknown }>(select, [userId]))[0]?.facts)
