import { type Query, statement } from '../../platform/database/database.ts'
import { onlyRow } from '../base/only-row.ts'

const use = statement(
  'captcha-solution-use',
  `WITH used AS (
     INSERT INTO captcha_solutions (digest, expires_at) SELECT $1, $2 WHERE $2::timestamptz > now()
     ON CONFLICT DO NOTHING RETURNING true)
   SELECT EXISTS (SELECT FROM used) AS "isFirst", $2::timestamptz > now() AS "isCurrent"`,
)

/** Uses a challenge up, here and at every other instance. */
export const useChallenge = async (
  query: Query,
  { digest, expiresAt }: { digest: Buffer; expiresAt: Date },
): Promise<{ isFirst: boolean; isCurrent: boolean }> =>
  onlyRow(await query<{ isFirst: boolean; isCurrent: boolean }>(use, [digest, expiresAt]))

const failed = statement(
  'captcha-identifier-failed',
  `INSERT INTO failing_identifiers (key) VALUES ($1) ON CONFLICT (key) DO UPDATE SET failed_at = now()`,
)

export const noteFailure = async (query: Query, key: Buffer): Promise<void> => {
  await query(failed, [key])
}

const succeeded = statement('captcha-identifier-succeeded', `DELETE FROM failing_identifiers WHERE key = $1`)

/** Whoever gets in after all was no machine that tries one password on everybody. */
export const forgetFailure = async (query: Query, key: Buffer): Promise<void> => {
  await query(succeeded, [key])
}

/** In which failures of different identifiers count together. */
export const failingWindowMinutes = 10

// It reads as many rows of the index as decide it, and no more.
const failing = statement(
  'captcha-identifiers-failing',
  `SELECT count(*) >= $1 AS "areMany" FROM (
     SELECT FROM failing_identifiers WHERE failed_at > now() - interval '${failingWindowMinutes} minutes' LIMIT $1) recent`,
)

/** Whether sign-ins with at least so many identifiers failed lately. */
export const areManyFailing = async (query: Query, many: number): Promise<boolean> =>
  onlyRow(await query<{ areMany: boolean }>(failing, [many])).areMany
