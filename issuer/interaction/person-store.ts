import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { sha256 } from '../../platform/secret.ts'
import type { NoticedOwner } from '../base/owner-notices.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import type { UserRow } from '../directory/users/user.ts'
import type { Identifier } from './identifier.ts'
import type { IdentifierType } from './proofs.ts'

/** Whom an identifier names. */
export interface Person {
  id: string
  isSuspended: boolean
  /** The person has signed in with this browser before. */
  isDeviceKnown: boolean
  password: PasswordDigest | undefined
}

interface Row extends Pick<UserRow, 'password_digest' | 'password_algorithm'> {
  id: string
  isSuspended: boolean
  isDeviceKnown: boolean
  isExact: boolean
}

const columns = `u.id, u.is_suspended AS "isSuspended", u.password_digest, u.password_algorithm,
     EXISTS (SELECT FROM known_devices d WHERE d.digest = $2 AND d.user_id = u.id) AS "isDeviceKnown"`

const folded = (name: string, column: string) =>
  statement(
    `person-by-${name}`,
    `SELECT ${columns}, ${column} = ANY ($1::text[]) AS "isExact" FROM users u
     WHERE lower(${column}) = ANY (ARRAY(SELECT lower(spelling) FROM unnest($1::text[]) AS spelling))
     ORDER BY "isExact" DESC LIMIT 2`,
  )

const byType: Readonly<Record<IdentifierType, ReturnType<typeof statement>>> = {
  username: folded('username', 'u.username'),
  email: folded('email', 'u.primary_email'),
  phone: statement(
    'person-by-phone',
    `SELECT ${columns}, true AS "isExact" FROM users u WHERE u.primary_phone = ANY ($1::text[]) LIMIT 2`,
  ),
}

/**
 * The directory tells cases apart. An identifier names whom it fits exactly, else the only one whom it fits but for
 * case.
 */
export const findPerson = async (
  query: Query,
  { type, spellings }: Identifier,
  device: Buffer | undefined,
): Promise<Person | undefined> => {
  const rows = await query<Row>(byType[type], [spellings, device ?? null])
  const exact = rows.filter(({ isExact }) => isExact)
  const fitting = exact.length > 0 ? exact : rows
  const [row] = fitting
  if (!row || fitting.length > 1) return undefined
  const { id, isSuspended, isDeviceKnown, password_digest: digest, password_algorithm: algorithm } = row
  const password = digest === null || algorithm === null ? undefined : { digest, algorithm }
  return { id, isSuspended, isDeviceKnown, password }
}

/** Tells whether a password's digest is still the same one, without being it. */
export const digestMark = (digest: string): string => sha256(digestMarkPrefix + digest).toString('hex')

const digestMarkPrefix = 'password-digest:'
const markOf = (column: string) => `encode(sha256(convert_to('${digestMarkPrefix}' || ${column}, 'UTF8')), 'hex')`

// Suspension, deletion and a change of the password wait for it, or come first and show here.
const signIn = statement(
  'person-signs-in',
  `UPDATE users SET last_sign_in_at = now()
   WHERE id = $1 AND NOT is_suspended AND ($2::text IS NULL OR $2 = ${markOf('password_digest')}) RETURNING *`,
)

/**
 * Notes the sign-in, and holds the row until the transaction ends. Undefined when the person may not sign in, or has
 * another password than the one of `mark`.
 */
export const notePersonSignsIn = async (
  trx: Transaction,
  userId: string,
  mark: string | undefined,
): Promise<UserRow | undefined> => (await queryOf(trx)<UserRow>(signIn, [userId, mark ?? null]))[0]

const hold = statement('person-hold', 'SELECT * FROM users WHERE id = $1 AND NOT is_suspended FOR NO KEY UPDATE')

/** Holds the row until the transaction ends. Undefined when there is nobody who may sign in. */
export const holdPerson = async (trx: Transaction, userId: string): Promise<UserRow | undefined> =>
  (await queryOf(trx)<UserRow>(hold, [userId]))[0]

const device = statement(
  'known-device-keep',
  `WITH moved AS (
     UPDATE known_devices SET digest = $2, last_used_at = CASE WHEN user_id = $3 THEN now() ELSE last_used_at END
     WHERE digest = $1 RETURNING user_id),
   added AS (INSERT INTO known_devices (digest, user_id) SELECT $2, $3 WHERE $3 NOT IN (SELECT user_id FROM moved))
   SELECT $3 IN (SELECT user_id FROM moved) AS "isKnown"`,
)

/**
 * The browser is one of this person's from now on. It gets another cookie each time, for everybody who uses it: a value
 * that somebody planted, or has read, is worth nothing afterwards. Answers whether it was before.
 */
export const keepDevice = async (
  trx: Transaction,
  { from, to, userId }: { from: Buffer | undefined; to: Buffer; userId: string },
): Promise<boolean> => {
  const [row] = await queryOf(trx)<{ isKnown: boolean }>(device, [from ?? null, to, userId])
  return row?.isKnown === true
}

const account = statement(
  'person-account',
  `SELECT name, username, primary_email AS "primaryEmail", primary_phone AS "primaryPhone" FROM users WHERE id = $1`,
)

/** How pages name a person. */
export interface Account {
  name: string
  identifier: string
  fullName: string | null
  username: string | null
  primaryEmail: string | null
  primaryPhone: string | null
}

export const findAccount = async (query: Query, userId: string): Promise<Account | undefined> => {
  const [row] = await query<Record<'name' | 'username' | 'primaryEmail' | 'primaryPhone', string | null>>(account, [
    userId,
  ])
  if (!row) return undefined
  const identifier = row.primaryEmail ?? row.username ?? (row.primaryPhone === null ? '' : `+${row.primaryPhone}`)
  return { ...row, name: row.name ?? identifier, identifier, fullName: row.name }
}

const address = statement(
  'person-address',
  `SELECT CASE $2 WHEN 'email' THEN CASE WHEN email_verified_at IS NOT NULL THEN primary_email END
     ELSE CASE WHEN phone_verified_at IS NOT NULL THEN '+' || primary_phone END END AS address
   FROM users WHERE id = $1`,
)

/** The address that is known to be the person's, as it could be typed. */
export const personAddress = async (
  query: Query,
  userId: string,
  type: 'email' | 'phone',
): Promise<string | undefined> =>
  (await query<{ address: string | null }>(address, [userId, type]))[0]?.address ?? undefined

const password = statement(
  'person-password',
  'SELECT password_digest AS digest, password_algorithm AS algorithm FROM users WHERE id = $1 AND password_digest IS NOT NULL',
)

export const findPassword = async (query: Query, userId: string): Promise<PasswordDigest | undefined> =>
  (await query<PasswordDigest>(password, [userId]))[0]

const owner = statement('person-owner', 'SELECT id, primary_email, primary_phone, profile FROM users WHERE id = $1')

/** Whom to tell what is done to the account. */
export const findOwner = async (query: Query, userId: string): Promise<NoticedOwner | undefined> =>
  (await query<NoticedOwner>(owner, [userId]))[0]
