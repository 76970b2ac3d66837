import { type Query, statement } from '../../platform/database/database.ts'
import { countsAccount } from '../directory/users/lockout/failure-store.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import { leaveTurn, takesTurn } from './interaction-changes-store.ts'
import { type NewProof, verifiedProof, verifiedProofValues } from './proof-store.ts'

/** Of everybody behind one address together. It is never locked: the window ends. */
export const addressPolicy = { attempts: 100, windowSeconds: 600 } as const

const addressWindow = `interval '${addressPolicy.windowSeconds} seconds'`

// Everybody locks in this order: interaction, address, account.
const counts = (turn: string) => `WITH turn AS (${turn}),
   address AS (
     INSERT INTO sign_in_failures AS f (key, count, since) SELECT $2, 1, now() FROM turn
     ON CONFLICT (key) DO UPDATE SET
       count = CASE WHEN f.since <= now() - ${addressWindow} THEN 1 ELSE least(f.count + 1, ${addressPolicy.attempts} + 1) END,
       since = CASE WHEN f.since <= now() - ${addressWindow} THEN now() ELSE f.since END,
       updated_at = now()
     RETURNING count),
   account AS (${countsAccount({
     key: '$3',
     attempts: '$4',
     windowSeconds: '$5',
     from: `FROM address WHERE address.count <= ${addressPolicy.attempts}`,
   })})
   SELECT (SELECT count FROM address) AS "ofAddress", account.count AS "ofAccount",
     ceil(extract(epoch FROM coalesce(account.locked_until, now() + $5 * interval '1 second') - now()) / 60)::integer AS minutes
   FROM turn LEFT JOIN account ON true`

const count = statement('sign-in-failure-count', counts(takesTurn))
// $1 is the interaction, of which there is none.
const countWithout = statement('verification-failure-count', counts('SELECT WHERE $1::text IS NULL'))

export interface Counted {
  /** Which attempt it is; beyond those allowed it is not looked at. */
  ofAddress: number
  /** Null when the address was refused. */
  ofAccount: number | null
  /** How long to wait when it is refused. */
  minutes: number
}

export interface FailureKeys {
  address: Buffer
  account: Buffer
}

/**
 * Counts an attempt, and commits it, before anything is verified. Undefined when it is not this one's turn: another
 * attempt in the same interaction is under way, or the interaction is over.
 */
export const countAttempt = async (
  query: Query,
  interactionId: string,
  keys: FailureKeys,
  { attempts, windowSeconds }: LockoutPolicy,
): Promise<Counted | undefined> =>
  (await query<Counted>(count, [interactionId, keys.address, keys.account, attempts, windowSeconds]))[0]

/** The same without an interaction: everybody has their turn. */
export const countVerification = async (
  query: Query,
  keys: FailureKeys,
  { attempts, windowSeconds }: LockoutPolicy,
): Promise<Counted> =>
  (await query<Counted>(countWithout, [null, keys.address, keys.account, attempts, windowSeconds]))[0]!

// A success at the address is none of its failures.
const forgiveAddress = (key: string, after: string) => `address AS (
     UPDATE sign_in_failures SET count = greatest(count - 1, 0)
     FROM (SELECT count(*) AS total FROM ${after}) before_it
     WHERE key = ${key} AND count BETWEEN 1 AND ${addressPolicy.attempts} RETURNING key)`

const succeed = statement(
  'sign-in-success',
  `WITH ${verifiedProof(`,
   ${forgiveAddress('$8', 'proof')},
   account AS (DELETE FROM sign_in_failures USING (SELECT count(*) AS total FROM address) before_it WHERE key = $9)`)}
   SELECT id FROM proof`,
)

/**
 * Keeps the proof, forgets the failures of the account. Answers its id; undefined when the interaction is over, or the
 * person deleted.
 */
export const succeedAttempt = async (query: Query, keys: FailureKeys, proof: NewProof): Promise<string | undefined> =>
  (await query<{ id: string }>(succeed, [...verifiedProofValues(proof), keys.address, keys.account]))[0]?.id

const forget = statement(
  'verification-success',
  `WITH turn AS (SELECT), ${forgiveAddress('$1', 'turn')}
   DELETE FROM sign_in_failures USING (SELECT count(*) AS total FROM address) before_it WHERE key = $2`,
)

/** After a success without an interaction. */
export const forgetFailures = async (query: Query, keys: FailureKeys): Promise<void> => {
  await query(forget, [keys.address, keys.account])
}

const forgive = statement(
  'sign-in-failure-forgive',
  `WITH turn AS (SELECT), ${forgiveAddress('$1', 'turn')}
   UPDATE sign_in_failures SET count = greatest(count - 1, 0)
   FROM (SELECT count(*) AS total FROM address) before_it WHERE key = $2 AND count BETWEEN 1 AND $3::integer`,
)

/** The attempt was not one: nothing was verified. */
export const forgiveVerification = async (
  query: Query,
  keys: FailureKeys,
  { attempts }: LockoutPolicy,
): Promise<void> => {
  await query(forgive, [keys.address, keys.account, attempts])
}

/** The attempt was not one: nothing was verified, or what was proven was right. */
export const forgiveAttempt = async (
  query: Query,
  interactionId: string,
  keys: FailureKeys,
  policy: LockoutPolicy,
): Promise<void> => {
  await forgiveVerification(query, keys, policy)
  await leaveTurn(query, interactionId)
}
