import { type Query, queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'
import type { LockoutPolicy } from './lockout-policy.ts'

const longestLockSeconds = 86_400

/** Parameters of a statement, such as `$1`. */
interface CountingParameters {
  key: string
  attempts: string
  windowSeconds: string
  /** What stands behind `SELECT … now()`; no row: nothing is counted. Default: it is counted. */
  from?: string
}

/**
 * Counts an attempt of an account as part of a statement: answers `count` and `locked_until`. Every attempt counts as a
 * failure until it succeeded, so that attempts at the same time count too. One more than are allowed stands for all
 * that are refused.
 */
export const countsAccount = ({ key, attempts, windowSeconds, from = '' }: CountingParameters): string => {
  const isOver = `(f.locked_until <= now()
         OR (f.locked_until IS NULL AND f.since <= now() - ${windowSeconds} * interval '1 second'))`
  return `INSERT INTO sign_in_failures AS f (key, count, since)
     SELECT ${key}, 1, now() ${from}
     ON CONFLICT (key) DO UPDATE SET
       count = CASE WHEN f.locked_until > now() THEN ${attempts}::integer + 1 WHEN ${isOver} THEN 1
         ELSE least(f.count + 1, ${attempts}::integer + 1) END,
       since = CASE WHEN ${isOver} THEN now() ELSE f.since END,
       locked_until = CASE WHEN f.locked_until > now() THEN f.locked_until END,
       updated_at = now()
     RETURNING count, locked_until`
}

const count = statement(
  'account-failure-count',
  `WITH account AS (${countsAccount({ key: '$1', attempts: '$2', windowSeconds: '$3' })}) SELECT count FROM account`,
)

/** Counts an attempt, and commits it, before anything is verified. Beyond those allowed it is not looked at. */
export const countAccountAttempt = async (
  query: Query,
  key: Buffer,
  { attempts, windowSeconds }: LockoutPolicy,
): Promise<number> => (await query<{ count: number }>(count, [key, attempts, windowSeconds]))[0]!.count

const forgive = statement(
  'account-failure-forgive',
  'UPDATE sign_in_failures SET count = count - 1 WHERE key = $1 AND count BETWEEN 1 AND $2::integer',
)

/** The attempt was not one: nothing was verified. */
export const forgiveAccountAttempt = async (query: Query, key: Buffer, { attempts }: LockoutPolicy): Promise<void> => {
  await query(forgive, [key, attempts])
}

const forget = statement('account-failure-forget', 'DELETE FROM sign_in_failures WHERE key = $1')

/** After a success. */
export const forgetAccountFailures = async (query: Query, key: Buffer): Promise<void> => {
  await query(forget, [key])
}

const lock = statement(
  'sign-in-failure-lock',
  `UPDATE sign_in_failures SET locks = locks + 1, updated_at = now(),
     locked_until = now() + least($3 * power(2, least(locks, 16)), ${longestLockSeconds}) * interval '1 second'
   WHERE key = $1 AND count >= $2 AND (locked_until IS NULL OR locked_until <= now())
   RETURNING key`,
)

/** After the last attempt that is allowed has failed. False when there was a success meanwhile. */
export const lockAccount = async (
  trx: Transaction,
  key: Buffer,
  { attempts, lockSeconds }: LockoutPolicy,
): Promise<boolean> => (await queryOf(trx)(lock, [key, attempts, lockSeconds])).length > 0
