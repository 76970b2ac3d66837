import { type Database, statement } from '../../platform/database/database.ts'
import { onlyRow } from '../base/only-row.ts'

/** Rows that are too old, as a condition: `$1` is how long they are kept, in ms. Each has an index on its time. */
const tooOld = (time: string) => `${time} < now() - $1 * interval '1 millisecond'`

const removal = (table: string, condition: string) =>
  statement(
    `retention-${table}`,
    `WITH gone AS (
       DELETE FROM ${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM ${table} WHERE ${condition} LIMIT $2)) RETURNING 1)
     SELECT count(*) AS removed FROM gone`,
  )

const removals = {
  subjectTokens: removal('subject_tokens', tooOld('expires_at')),
  opaqueTokens: removal('opaque_tokens', tooOld('expires_at')),
  // Whatever is set: a session whose token is still good is needed to end it.
  sessions: removal('impersonation_sessions', `${tooOld('started_at')} AND expires_at < now()`),
  impersonationRequests: removal('impersonation_requests', tooOld('expires_at')),
  // With their codes and refresh tokens.
  authorizations: removal('authorizations', tooOld('coalesce(ended_at, expires_at)')),
  signInSessions: removal('sessions', tooOld('coalesce(ended_at, expires_at)')),
  refreshTokens: removal('refresh_tokens', tooOld('expires_at')),
  consents: removal('consents', tooOld('coalesce(revoked_at, expires_at)')),
  oneTimeTokens: removal('one_time_tokens', tooOld('expires_at')),
  interactions: removal('interactions', tooOld('expires_at')),
  proofs: removal('proofs', tooOld('expires_at')),
  pushedRequests: removal('pushed_requests', tooOld('expires_at')),
  deviceCodes: removal('device_codes', tooOld('expires_at')),
  knownDevices: removal('known_devices', tooOld('last_used_at')),
  signInFailures: removal('sign_in_failures', tooOld('updated_at')),
  captchaSolutions: removal('captcha_solutions', tooOld('expires_at')),
  failingIdentifiers: removal('failing_identifiers', tooOld('failed_at')),
  messageCounts: removal('message_counts', tooOld('updated_at')),
  consoleSessions: removal('console_sessions', tooOld('expires_at')),
  consoleInvitations: removal('console_invitations', tooOld('expires_at')),
  logs: removal('logs', tooOld('created_at')),
  revocations: removal('revocations', tooOld('expires_at')),
  idempotency: removal('idempotency_answers', tooOld('created_at')),
  clientAssertions: removal('client_assertions', tooOld('expires_at')),
  dpopProofs: removal('dpop_proofs', tooOld('expires_at')),
  rateLimits: removal('rate_limit_buckets', tooOld('updated_at')),
}

export type RemovableKind = keyof typeof removals

const lock = statement('retention-lock', `SELECT pg_try_advisory_xact_lock(7305175) AS mine`)

/**
 * Removes up to `batch` rows that have been kept for `keepMs`; a short transaction of its own. Undefined: another
 * instance is at it.
 */
export const removeOld = (
  database: Pick<Database, 'transaction'>,
  kind: RemovableKind,
  keepMs: number,
  batch: number,
): Promise<number | undefined> =>
  database.transaction(async (query) => {
    if (!onlyRow(await query<{ mine: boolean }>(lock, [])).mine) return undefined
    return onlyRow(await query<{ removed: number }>(removals[kind], [keepMs, batch])).removed
  })
