import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import type { UserRow } from '../directory/users/user.ts'
import { type ProofData, type ProofKindName, proofData } from '../interaction/proofs.ts'
import { type AccountPerson, holderOf } from './person.ts'

/** A verification is a proof without an interaction: what a person shows who looks after their account. */

export interface Reauthentication {
  /** By the names of proofs: `password`, `totp`, … */
  kind: ProofKindName
  data: ProofData
  verifiedAt: Date
  expiresAt: Date
}

/** A verification that the person was asked for, and the addresses that they have now. */
export type ReauthenticationRow = Reauthentication & Pick<UserRow, 'primary_email' | 'primary_phone'>

const reauthentications = statement(
  'verification-find-reauthentications',
  `SELECT p.kind, p.data, p.verified_at AS "verifiedAt", p.expires_at AS "expiresAt", u.primary_email, u.primary_phone
   FROM proofs p JOIN users u ON u.id = p.user_id
   WHERE p.user_id = $1 AND p.holder = $2 AND p.purpose = 'reauth' AND ($3::text IS NULL OR p.id = $3)
     AND p.verified_at IS NOT NULL AND p.consumed_at IS NULL AND p.expires_at > now()
   ORDER BY p.verified_at DESC LIMIT 10`,
)

/** The newest first, or the one with this id. */
export const selectReauthentications = async (
  transaction: Transaction,
  person: AccountPerson,
  id: string | undefined,
): Promise<ReauthenticationRow[]> => {
  const values = [person.userId, holderOf(person), id ?? null]
  const rows = await queryOf(transaction)<ReauthenticationRow>(reauthentications, values)
  return rows.map((row) => ({ ...row, data: proofData.parse(row.data) }))
}

/** What a verification is good for: who somebody is, or an address or a factor that they get. */
export type VerificationPurpose = 'reauth' | 'bind'

/** Whose it is, and where it was begun: it counts nowhere else. */
type Holder = Pick<AccountPerson, 'userId' | 'sid' | 'sessionId'>

export interface VerificationId {
  id: string
  /** Until when it may be answered, or used. */
  expiresAt: Date
}

const begin = statement(
  'verification-begin',
  `WITH person AS (SELECT id FROM users WHERE id = $3 FOR KEY SHARE),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE holder = $2 AND kind = $4 AND purpose = $5 AND verified_at IS NULL AND consumed_at IS NULL)
   INSERT INTO proofs (id, holder, user_id, kind, purpose, data, secret, expires_at)
   SELECT $1, $2, id, $4, $5, $6::jsonb, $7, now() + $8 * interval '1 second' FROM person
   RETURNING id, expires_at AS "expiresAt"`,
)

/** Begins one; those of the same kind that wait for the same end. Undefined when the person is gone. */
export const beginVerification = async (
  transaction: Transaction,
  { id, person, kind, purpose, data, secret = null, seconds }: NewVerification & { secret?: Buffer | null },
): Promise<VerificationId | undefined> => {
  const values = [id, holderOf(person), person.userId, kind, purpose, JSON.stringify(data), secret, seconds]
  return (await queryOf(transaction)<VerificationId>(begin, values))[0]
}

interface NewVerification {
  /** Made before: what is secret in it depends on it. */
  id: string
  person: Holder
  kind: ProofKindName
  purpose: VerificationPurpose
  data: ProofData
  seconds: number
}

const insert = statement(
  'verification-insert',
  `INSERT INTO proofs (id, holder, user_id, kind, purpose, data, verified_at, expires_at)
   SELECT $1, $2, id, $4, $5, $6::jsonb, now(), now() + $7 * interval '1 second'
   FROM (SELECT id FROM users WHERE id = $3 FOR KEY SHARE) person
   RETURNING id, expires_at AS "expiresAt"`,
)

/** One that is verified already. Undefined when the person is gone. */
export const insertVerification = async (
  transaction: Transaction,
  { id, person, kind, purpose, data, seconds }: NewVerification,
): Promise<VerificationId | undefined> => {
  const values = [id, holderOf(person), person.userId, kind, purpose, JSON.stringify(data), seconds]
  return (await queryOf(transaction)<VerificationId>(insert, values))[0]
}

/** A verification that was begun and waits for its answer. */
export interface Waiting {
  id: string
  kind: ProofKindName
  purpose: VerificationPurpose
  data: ProofData
  secret: Buffer | null
}

const parsed = ({ data, ...row }: Omit<Waiting, 'data'> & { data: unknown }): Waiting => ({
  ...row,
  data: proofData.parse(data),
})

const columns = 'id, kind, purpose, data, secret'
const waits = 'verified_at IS NULL AND consumed_at IS NULL AND expires_at > now()'

const findWaitingById = statement(
  'verification-find-waiting',
  `SELECT ${columns} FROM proofs
   WHERE holder = $2 AND user_id = $3 AND ($1::text IS NULL OR id = $1) AND kind = ANY ($4::text[])
     AND ($5::text IS NULL OR purpose = $5) AND ${waits}
   ORDER BY created_at DESC LIMIT 1`,
)

/** The one with this id, or the newest, without using up a try. */
export const findWaitingVerification = async (
  transaction: Transaction,
  person: Holder,
  { id, kinds, purpose }: { id?: string | undefined; kinds: readonly ProofKindName[]; purpose?: VerificationPurpose },
): Promise<Waiting | undefined> => {
  const values = [id ?? null, holderOf(person), person.userId, kinds, purpose ?? null]
  const [row] = await queryOf(transaction)<Omit<Waiting, 'data'> & { data: unknown }>(findWaitingById, values)
  return row && parsed(row)
}

// Of a challenge only the first answer counts; it is still being looked at when the next one comes.
const takeTry = statement(
  'verification-take-try',
  `UPDATE proofs SET tries = least(tries + 1, 100), consumed_at = CASE WHEN tries + 1 > $5 AND kind <> 'passkey' THEN now() END
   WHERE id = $1 AND holder = $2 AND user_id = $3 AND kind = ANY ($4::text[]) AND ${waits}
   RETURNING ${columns}, tries`,
)

/**
 * One answer is held against it; beyond `most` there is none. Counted, and committed, before anybody compares.
 * `exceeded`: there were too many.
 */
export const takeVerificationTry = async (
  query: Query,
  person: Holder,
  { id, kinds, most }: { id: string; kinds: readonly ProofKindName[]; most: number },
): Promise<Waiting | 'exceeded' | undefined> => {
  const [row] = await query<Omit<Waiting, 'data'> & { data: unknown; tries: number }>(takeTry, [
    ...[id, holderOf(person), person.userId, kinds, most],
  ])
  if (!row) return undefined
  const { tries, ...rest } = row
  return tries > most ? 'exceeded' : parsed(rest)
}

interface Completed {
  id: string
  data: ProofData
  seconds: number
  /** What the answer turned out to be good for. Default: what it was begun for. */
  purpose?: VerificationPurpose
}

const complete = statement(
  'verification-complete',
  `UPDATE proofs SET verified_at = now(), secret = NULL, data = data || $4::jsonb,
     expires_at = now() + $5 * interval '1 second', purpose = coalesce($6, purpose)
   WHERE id = $1 AND holder = $2 AND user_id = $3 AND verified_at IS NULL AND consumed_at IS NULL
   RETURNING id, expires_at AS "expiresAt"`,
)

/** The answer was right. Undefined: another one was first, or something else was begun meanwhile. */
export const completeVerification = async (
  transaction: Transaction,
  person: Holder,
  { id, data, seconds, purpose }: Completed,
): Promise<VerificationId | undefined> => {
  const values = [id, holderOf(person), person.userId, JSON.stringify(data), seconds, purpose ?? null]
  return (await queryOf(transaction)<VerificationId>(complete, values))[0]
}

const fate = statement(
  'verification-find-fate',
  `SELECT verified_at IS NOT NULL AS "isVerified", expires_at <= now() AS "isExpired" FROM proofs
   WHERE id = $1 AND holder = $2 AND user_id = $3`,
)

/** What became of one that does not wait any more. */
export const findVerificationFate = async (
  query: Query,
  person: Holder,
  id: string,
): Promise<{ isVerified: boolean; isExpired: boolean } | undefined> =>
  (await query<{ isVerified: boolean; isExpired: boolean }>(fate, [id, holderOf(person), person.userId]))[0]

const use = statement(
  'verification-use',
  `UPDATE proofs SET consumed_at = now()
   WHERE id = $1 AND holder = $2 AND user_id = $3 AND kind = ANY ($4::text[]) AND purpose = 'bind'
     AND verified_at IS NOT NULL AND consumed_at IS NULL AND expires_at > now()
   RETURNING ${columns}`,
)

/** Uses what was verified to be bound, once. Undefined when it is not there to be used. */
export const useVerification = async (
  trx: Transaction,
  person: Holder,
  { id, kinds }: { id: string; kinds: readonly ProofKindName[] },
): Promise<Waiting | undefined> => {
  const values = [id, holderOf(person), person.userId, kinds]
  const [row] = await queryOf(trx)<Omit<Waiting, 'data'> & { data: unknown }>(use, values)
  return row && parsed(row)
}
