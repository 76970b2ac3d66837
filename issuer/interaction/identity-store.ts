import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { AddressedAccount } from './linking.ts'
import type { FederatedIdentity } from './proofs.ts'

/** Who people are at identity providers: of social ones by target, of enterprises by connector. */
type Named = Pick<FederatedIdentity, 'kind' | 'target' | 'subject'>

const holders = {
  social: statement(
    'identity-holder-social',
    'SELECT user_id AS id FROM user_identities WHERE target = $1 AND subject = $2',
  ),
  sso: statement(
    'identity-holder-sso',
    'SELECT user_id AS id FROM user_sso_identities WHERE provider_id = $1 AND subject = $2',
  ),
}

export const findHolder = async (query: Transaction, { kind, target, subject }: Named): Promise<string | undefined> =>
  (await queryOf(query)<{ id: string }>(holders[kind], [target, subject]))[0]?.id

const ofUser = statement(
  'identity-providers-of-user',
  `SELECT 'social' AS kind, target FROM user_identities WHERE user_id = $1
   UNION ALL SELECT 'sso', provider_id FROM user_sso_identities WHERE user_id = $1`,
)

/** Where somebody has identities. */
export const findProvidersOf = (query: Query, userId: string): Promise<Pick<Named, 'kind' | 'target'>[]> =>
  query(ofUser, [userId])

const linkSocial = statement(
  'identity-link-social',
  `UPDATE users SET identities = identities || jsonb_build_object($2::text, $3::jsonb), updated_at = now()
   WHERE id = $1 RETURNING id`,
)
const linkSso = statement(
  'identity-link-sso',
  `INSERT INTO user_sso_identities (id, user_id, provider_id, issuer, subject, detail)
   VALUES ($4, $1, $2, $5, $6, $3::jsonb)`,
)

/** Another one that the user has at a social target is replaced. Throws when somebody else has it. */
export const linkIdentity = async (trx: Transaction, userId: string, identity: FederatedIdentity): Promise<void> => {
  const { kind, target, subject, issuer = '' } = identity
  const query = queryOf(trx)
  if (kind === 'social') await query(linkSocial, [userId, target, JSON.stringify(socialIdentity(identity))])
  else await query(linkSso, [userId, target, JSON.stringify(detailsOf(identity)), newId(), issuer, subject])
}

const detailsOf = ({ subject, email, phone, name, avatar, raw }: FederatedIdentity) => ({
  ...{ id: subject, email, phone, name, avatar },
  rawData: raw,
})

/** As users have it. */
const socialIdentity = (identity: FederatedIdentity) => ({ userId: identity.subject, details: detailsOf(identity) })

/** By target. */
export const socialIdentities = (identities: readonly FederatedIdentity[]): Record<string, unknown> =>
  Object.fromEntries(
    identities.filter(({ kind }) => kind === 'social').map((identity) => [identity.target, socialIdentity(identity)]),
  )

const byAddress = statement(
  'account-by-vouched-address',
  `SELECT id, primary_email = $1 AS "isExact", email_verified_at IS NOT NULL AS "isEmailVerified",
     EXISTS (SELECT FROM totp_secrets t WHERE t.user_id = u.id) OR EXISTS (SELECT FROM passkeys k WHERE k.user_id = u.id)
       OR EXISTS (SELECT FROM backup_codes b WHERE b.user_id = u.id AND b.used_at IS NULL) AS "hasSecondFactor",
     identities ? $2 OR EXISTS (SELECT FROM user_sso_identities s WHERE s.user_id = u.id AND s.provider_id = $2) AS "isElsewhere"
   FROM users u WHERE lower(primary_email) = lower($1) ORDER BY "isExact" DESC LIMIT 2`,
)

/** As `findPerson`: whom it fits exactly, else the only one whom it fits but for case. */
export const findByAddress = async (
  query: Transaction,
  email: string,
  { target }: Named,
): Promise<AddressedAccount | undefined> => {
  const rows = await queryOf(query)<AddressedAccount & { isExact: boolean }>(byAddress, [email, target])
  const [first, second] = rows
  return first && (first.isExact || !second) ? first : undefined
}

const sync = statement(
  'person-sync-profile',
  `UPDATE users SET name = coalesce($2, name), avatar = coalesce($3, avatar), updated_at = now()
   WHERE id = $1 AND (coalesce($2, name) IS DISTINCT FROM name OR coalesce($3, avatar) IS DISTINCT FROM avatar)
   RETURNING id`,
)

/** Takes over what the provider says. False: nothing is new. */
export const syncProfile = async (
  trx: Transaction,
  userId: string,
  { name, avatar }: Pick<FederatedIdentity, 'name' | 'avatar'>,
): Promise<boolean> => (await queryOf(trx)(sync, [userId, name ?? null, avatar ?? null])).length > 0

const adopt = statement(
  'person-adopt',
  `WITH before AS (SELECT id, password_digest FROM users
     WHERE id = $1 AND lower(primary_email) = lower($2) AND email_verified_at IS NULL FOR UPDATE),
   after AS (
     UPDATE users u SET email_verified_at = now(), updated_at = now(),
       password_digest = CASE WHEN $3 THEN u.password_digest END,
       password_algorithm = CASE WHEN $3 THEN u.password_algorithm END,
       password_changed_at = CASE WHEN $3 THEN u.password_changed_at END
     FROM before WHERE u.id = before.id)
   SELECT password_digest IS NOT NULL AND NOT $3 AS "isPasswordVoid" FROM before`,
)

/**
 * The owner of an address has come to the account that had it without ever showing that it was theirs: a password that
 * was set there before may be somebody else's, and is void unless it was shown. Undefined: the address was verified.
 */
export const adoptAddress = async (
  trx: Transaction,
  userId: string,
  { email, isPasswordShown }: { email: string; isPasswordShown: boolean },
): Promise<{ isPasswordVoid: boolean } | undefined> =>
  (await queryOf(trx)<{ isPasswordVoid: boolean }>(adopt, [userId, email, isPasswordShown]))[0]
