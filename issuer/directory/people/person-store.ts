import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import type { UserRow } from '../users/user.ts'
import type { NewPerson } from './create-person.ts'

export type Identifying = Pick<NewPerson, 'username' | 'primaryEmail' | 'phone' | 'isUsernameCaseSensitive'>

// Two people who come at once with the same name or address in other cases: no unique constraint tells them apart.
const takeTurns = statement(
  'person-new-turn',
  `SELECT pg_advisory_xact_lock(7305180, hashtext(name)) FROM unnest($1::text[]) WITH ORDINALITY AS asked (name, place)
   ORDER BY place`,
)

/** Whoever comes with one of these names or addresses, in any case, waits until the transaction ends. */
export const takeTurnsAt = async (trx: Transaction, { username, primaryEmail }: Identifying): Promise<void> => {
  const names = [primaryEmail && `email:${primaryEmail.toLowerCase()}`, username && `name:${username.toLowerCase()}`]
  // All in the same order, so that nobody waits for each other.
  const asked = names.filter((name) => name !== undefined && name !== '').sort()
  if (asked.length > 0) await queryOf(trx)(takeTurns, [asked])
}

const taken = statement(
  'person-new-taken',
  `SELECT
     EXISTS (SELECT FROM users WHERE lower(username) = lower($1) AND (NOT $4 OR username = $1)) AS username,
     EXISTS (SELECT FROM users WHERE lower(primary_email) = lower($2)) AS email,
     EXISTS (SELECT FROM users WHERE primary_phone = ANY ($3::text[])) AS phone`,
)

/** Which of them somebody has. An address is the same in any case, a number in any spelling. */
export const findTaken = async (
  trx: Transaction,
  { username, primaryEmail, phone, isUsernameCaseSensitive = true }: Identifying,
): Promise<Record<'username' | 'email' | 'phone', boolean>> => {
  const values = [username ?? null, primaryEmail ?? null, phone?.spellings ?? [], isUsernameCaseSensitive]
  const [row] = await queryOf(trx)<Record<'username' | 'email' | 'phone', boolean>>(taken, values)
  return row!
}

const insert = statement(
  'person-new',
  `INSERT INTO users (id, username, primary_email, primary_phone, email_verified_at, phone_verified_at, password_digest,
     password_algorithm, password_changed_at, name, avatar, profile, custom_data, identities)
   VALUES ($1, $2, $3::text, $4::text, CASE WHEN $3::text IS NOT NULL THEN now() END, CASE WHEN $4::text IS NOT NULL THEN now() END,
     $5::text, $6, CASE WHEN $5::text IS NOT NULL THEN now() END, $7, $8, $9, $10, $11)
   ON CONFLICT DO NOTHING RETURNING *`,
)

/** Undefined when somebody has the id, the name, the address or the number. */
export const insertPerson = async (trx: Transaction, person: NewPerson): Promise<UserRow | undefined> => {
  const { id, username, primaryEmail, phone, password, name, avatar, profile = {} } = person
  const { customData = {}, identities = {} } = person
  const rows = await queryOf(trx)<UserRow>(insert, [
    id,
    username ?? null,
    primaryEmail ?? null,
    phone?.number ?? null,
    password?.digest ?? null,
    password?.algorithm ?? null,
    name ?? null,
    avatar ?? null,
    JSON.stringify(profile),
    JSON.stringify(customData),
    JSON.stringify(identities),
  ])
  return rows[0]
}
