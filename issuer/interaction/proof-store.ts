import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { InteractionState } from './interaction-state.ts'
import { isOpen } from './interaction-store.ts'
import { type Proof, type ProofData, type ProofKindName, type ProofPurpose, proofData, purposesOf } from './proofs.ts'

/** A proof that was not used by then is asked for again: `auth_time` tells when it was used. */
const proofLife = `interval '10 minutes'`

/** An SQL condition: whether a proof for this purpose means anything in the interaction now. */
const isWanted = (purpose: string): string => {
  const list = (event: keyof typeof purposesOf) => purposesOf[event].map((name) => `'${name}'`).join(', ')
  return `CASE event WHEN 'Register' THEN ${purpose} IN (${list('Register')})
         WHEN 'ForgotPassword' THEN ${purpose} IN (${list('ForgotPassword')}) ELSE ${purpose} IN (${list('SignIn')}) END`
}

/** An SQL condition: what adds to a person is of whom the interaction is about; it never says who that is. */
const isOf = (owner: string, purpose: string, userId: string): string =>
  `(${purpose} NOT IN ('mfa', 'bind') OR ${owner} IS NOT DISTINCT FROM ${userId})`

// One proof says who somebody is, and one of each kind counts for another purpose. All are of one person: those of
// somebody else end here, and so does what somebody else was to become: the next at this browser must not get a
// password of theirs. A deletion of the person that is under way is waited for; then nothing is kept. One that waited
// for an answer keeps its id.
export const verifiedProof = (more = ''): string => `person AS (SELECT id FROM users WHERE id = $2 FOR KEY SHARE),
   interaction AS (
     UPDATE interactions SET user_id = $2,
       staged = CASE WHEN user_id IS DISTINCT FROM $2 THEN '{}' ELSE staged END,
       state = (CASE WHEN user_id IS DISTINCT FROM $2 THEN state - 'skipsMfa' - 'skipsPasskey' - 'terms' ELSE state END
         - 'busyUntil')
         || $3::jsonb
     WHERE id = $1 AND ${isOpen} AND ($2::text IS NULL OR EXISTS (SELECT FROM person))
       AND ${isWanted('$7')} AND ${isOf('user_id', '$7', '$2')} RETURNING id),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE interaction_id = (SELECT id FROM interaction) AND consumed_at IS NULL AND id <> $4
       AND ((purpose = $7 AND (kind = $5 OR $7 = 'sign_in')) OR user_id IS DISTINCT FROM $2)),
   proof AS (
     INSERT INTO proofs AS p (id, interaction_id, user_id, kind, purpose, data, verified_at, expires_at)
     SELECT $4, id, $2, $5, $7, $6::jsonb, now(), now() + ${proofLife} FROM interaction
     ON CONFLICT (id) DO UPDATE SET user_id = $2, data = p.data || excluded.data, secret = NULL, verified_at = now(),
       expires_at = excluded.expires_at
     WHERE p.interaction_id = $1 AND p.kind = $5 AND p.purpose = $7 AND ${isOf('p.user_id', '$7', '$2')}
       AND p.verified_at IS NULL AND p.consumed_at IS NULL
     RETURNING p.id)${more}`

export interface NewProof {
  interactionId: string
  /** Null: of somebody new. */
  userId: string | null
  kind: ProofKindName
  purpose: ProofPurpose
  data: ProofData
  decision?: InteractionState
  /** Of the one that waited for this answer. */
  pendingId?: string | undefined
}

/** The values of `verifiedProof`. */
export const verifiedProofValues = (proof: NewProof): unknown[] => [
  proof.interactionId,
  proof.userId,
  JSON.stringify(proof.decision ?? {}),
  proof.pendingId ?? newId(),
  proof.kind,
  JSON.stringify(proof.data),
  proof.purpose,
]

const keep = statement('proof-keep', `WITH ${verifiedProof()} SELECT id FROM proof`)

/** Keeps a proof that needed no count. Undefined when the interaction is over, or the person deleted. */
export const keepProof = async (transaction: Transaction, proof: NewProof): Promise<string | undefined> =>
  (await queryOf(transaction)<{ id: string }>(keep, verifiedProofValues(proof)))[0]?.id

/** A proof that waits for its answer: a code that was sent, a challenge, a secret to be confirmed. */
export interface PendingProof extends Omit<Proof, 'userId'> {
  userId: string | null
  secret: Buffer | null
}

const begin = statement(
  'proof-begin',
  `WITH interaction AS (
     SELECT id FROM interactions
     WHERE id = $2 AND ${isOpen} AND ${isWanted('$5')} AND ${isOf('user_id', '$5', '$3')}),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE interaction_id = (SELECT id FROM interaction) AND kind = $4 AND purpose = $5 AND verified_at IS NULL
       AND consumed_at IS NULL)
   INSERT INTO proofs (id, interaction_id, user_id, kind, purpose, data, secret, expires_at)
   SELECT $1, id, $3, $4, $5, $6::jsonb, $7, now() + $8 * interval '1 second' FROM interaction RETURNING id`,
)

/**
 * Begins a proof; one that waits for the same ends. `seconds`: how long it may be answered. Undefined when the
 * interaction is over, or is for something or somebody else by now.
 */
export const beginProof = async (
  transaction: Transaction,
  proof: {
    interactionId: string
    userId: string | null
    kind: ProofKindName
    purpose: ProofPurpose
    data: ProofData
    secret: Buffer | null
    seconds: number
    /** Made before, where the secret depends on it. */
    id?: string
  },
): Promise<string | undefined> => {
  const { id = newId(), interactionId, userId, kind, purpose, data, secret, seconds } = proof
  const values = [id, interactionId, userId, kind, purpose, JSON.stringify(data), secret, seconds]
  return (await queryOf(transaction)(begin, values)).length > 0 ? id : undefined
}

// A challenge, or a provider's answer, that comes twice at once is good the first time, which is being looked at.
const take = statement(
  'proof-take-try',
  `UPDATE proofs SET tries = least(tries + 1, 100), consumed_at = CASE WHEN tries + 1 > $5 AND kind NOT IN ('passkey', 'federated') THEN now() END
   WHERE id = $1 AND interaction_id = $2 AND kind = ANY ($3::text[]) AND purpose = ANY ($4::text[])
     AND verified_at IS NULL AND consumed_at IS NULL AND expires_at > now()
   RETURNING id, kind, purpose, user_id AS "userId", data, secret, tries`,
)

interface PendingRow extends Omit<PendingProof, 'data'> {
  data: unknown
  tries: number
}

/**
 * One answer is held against it; beyond `most` there is none, whatever it was. Counted, and committed, before anybody
 * compares. Undefined when nothing waits for an answer.
 */
export const takeTry = async (
  query: Query,
  asked: {
    id: string
    interactionId: string
    kinds: readonly ProofKindName[]
    purposes: readonly ProofPurpose[]
    most: number
  },
): Promise<PendingProof | undefined> => {
  const { id, interactionId, kinds, purposes, most } = asked
  const [row] = await query<PendingRow>(take, [id, interactionId, kinds, purposes, most])
  return row && row.tries <= most ? { ...row, data: proofData.parse(row.data) } : undefined
}

const findPending = statement(
  'proof-find-pending',
  `SELECT id, kind, purpose, user_id AS "userId", data, secret, tries,
     extract(epoch FROM now() - created_at)::float8 AS age,
     EXISTS (
       SELECT FROM proofs before
       WHERE before.interaction_id = $1 AND before.kind = $2 AND before.purpose = $3 AND before.id <> p.id
         AND before.data->'identifier' = p.data->'identifier') AS "isAnother"
   FROM proofs p
   WHERE interaction_id = $1 AND kind = $2 AND purpose = $3 AND verified_at IS NULL AND consumed_at IS NULL
     AND expires_at > now() ORDER BY created_at DESC LIMIT 1`,
)

/** `age`: seconds since it was begun. `isAnother`: it is not the first one about the same thing. */
export type WaitingProof = PendingProof & { age: number; isAnother: boolean }

/** The one of a kind that waits for its answer, without using up a try. */
export const findPendingProof = async (
  query: Query,
  interactionId: string,
  kind: ProofKindName,
  purpose: ProofPurpose,
): Promise<WaitingProof | undefined> => {
  const [row] = await query<PendingRow & Pick<WaitingProof, 'age' | 'isAnother'>>(findPending, [
    interactionId,
    kind,
    purpose,
  ])
  return row && { ...row, data: proofData.parse(row.data) }
}

const withdraw = statement(
  'proof-withdraw',
  `UPDATE proofs SET consumed_at = now()
   WHERE interaction_id = $1 AND kind = ANY ($2::text[]) AND purpose = $3 AND consumed_at IS NULL AND id <> $4
     AND (verified_at IS NULL OR (purpose = 'sign_in' AND user_id IS NULL))`,
)

/** Ends those of these kinds that wait, and what shows who it is but names nobody; but for `except`. */
export const withdrawProofs = async (
  query: Query,
  asked: { interactionId: string; kinds: readonly ProofKindName[]; purpose: ProofPurpose; except?: string | undefined },
): Promise<void> => {
  const { interactionId, kinds, purpose, except = '' } = asked
  await query(withdraw, [interactionId, kinds, purpose, except])
}

const findById = statement(
  'proof-find-waiting',
  `SELECT id, kind, purpose, user_id AS "userId", data, secret, tries FROM proofs
   WHERE id = $2 AND interaction_id = $1 AND verified_at IS NULL AND consumed_at IS NULL AND expires_at > now()`,
)

/** The one that waits under this id, without using up a try. */
export const findWaiting = async (
  query: Query,
  interactionId: string,
  id: string,
): Promise<PendingProof | undefined> => {
  const [row] = await query<PendingRow>(findById, [interactionId, id])
  return row && { ...row, data: proofData.parse(row.data) }
}

const fate = statement(
  'proof-find-fate',
  `SELECT verified_at IS NOT NULL AS "isVerified", expires_at <= now() AS "isExpired", tries FROM proofs
   WHERE id = $2 AND interaction_id = $1 AND kind IN ('email_code', 'phone_code')`,
)

/** What became of a code that was sent; undefined when it belongs elsewhere. */
export const findFate = async (
  query: Query,
  interactionId: string,
  id: string,
): Promise<{ isVerified: boolean; isExpired: boolean; tries: number } | undefined> =>
  (await query<{ isVerified: boolean; isExpired: boolean; tries: number }>(fate, [interactionId, id]))[0]
