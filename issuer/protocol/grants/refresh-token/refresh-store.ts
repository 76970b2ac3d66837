import { type Query, statement } from '../../../../platform/database/database.ts'
import { bytea, lookUp, sharedStatement } from '../../../../platform/database/shared-statement.ts'
import { erasedSuccessors } from '../../../tokens/authorizations/refresh-token-store.ts'
import {
  type AuthorizationFacts,
  type AuthorizationQuestion,
  authorizationFactsSql,
  authorizationQuestion,
} from '../authorization/authorization-facts-store.ts'
import {
  extendAuthorizations,
  issueColumns,
  issueRow,
  latestRefresh,
  liveAuthorizations,
  writeIssue,
} from '../authorization/issue-store.ts'
import type { PreparedIssue } from '../authorization/plan.ts'
import { type Redeemer, redeem, redeemBatched, redeeming, redeemWaiting } from '../redeeming-store.ts'

export interface RefreshFacts extends AuthorizationFacts {
  tokenExpired: boolean
  /** Its client gave it up. */
  tokenRevoked: boolean
  rotated: boolean
  /** Thumbprint of the key that it is bound to. */
  jkt: string | null
  /** Hexadecimal; only until the leeway ends. See `successor.ts`. */
  successor: string | null
  /** A longer life is to be had, and 70 % of this one have passed. */
  isAged: boolean
}

const select = lookUp(
  'refresh-facts',
  { ...authorizationQuestion, leeway: 'integer' },
  authorizationFactsSql(
    '(SELECT * FROM refresh_tokens WHERE digest = asked.digest) token',
    `token.expires_at <= now() AS "tokenExpired", token.revoked_at IS NOT NULL AS "tokenRevoked",
     token.rotated_at IS NOT NULL AS rotated, token.jkt,
     CASE WHEN token.rotated_at > now() - asked.leeway * interval '1 second' THEN encode(token.successor, 'hex') END AS successor,
     now() > token.created_at + 0.7 * (token.expires_at - token.created_at)
       AND token.expires_at < ${latestRefresh('a')} AS "isAged"`,
  ),
)

/** Undefined when there is no such token. `leeway` in seconds. One round trip. */
export const findRefreshFacts = async (
  query: Query,
  { digest, resource, organizationId, leeway }: AuthorizationQuestion & { leeway: number },
): Promise<RefreshFacts | undefined> => {
  const asked = { digest: bytea(digest), resource, organization_id: organizationId, leeway }
  return (await query<{ facts: RefreshFacts }>(select, [asked]))[0]?.facts
}

const next = statement('refresh-successor', `SELECT successor FROM refresh_tokens WHERE digest = $1`)

/** The sealed successor of a token; null when it is the newest. Undefined when there is no such token. */
export const findSuccessor = async (query: Query, digest: Buffer): Promise<Buffer | null | undefined> =>
  (await query<{ successor: Buffer | null }>(next, [digest]))[0]?.successor

// Whoever rotates a token of an authorization has it alone.
const rotateStatements = redeeming((locking, suffix) =>
  sharedStatement(
    `refresh-rotate${suffix}`,
    {
      ...issueColumns,
      token_presented: 'bytea',
      next_digest: 'bytea',
      successor: 'bytea',
      refresh_ttl: 'integer',
      refresh_jkt: 'text',
      leeway: 'integer',
    },
    (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   ${liveAuthorizations('NO KEY UPDATE', locking)},
   allowed AS (
     UPDATE refresh_tokens t SET rotated_at = clock_timestamp(), successor = asked.successor FROM asked
     WHERE t.digest = ANY (ARRAY(SELECT token_presented FROM asked)) AND t.digest = asked.token_presented
       AND t.rotated_at IS NULL AND t.revoked_at IS NULL AND t.expires_at > now()
       AND asked.authorization_id = ANY (ARRAY(SELECT id FROM live))
     RETURNING asked.*, t.expires_at AS previous_expiry, t.jkt AS previous_jkt),
   made AS (
     INSERT INTO refresh_tokens (digest, authorization_id, expires_at, jkt)
     SELECT next_digest, authorization_id, CASE WHEN refresh_ttl IS NULL THEN previous_expiry
       ELSE least(now() + refresh_ttl * interval '1 second', ${latestRefresh('live')}) END,
       coalesce(previous_jkt, refresh_jkt)
     FROM allowed JOIN live ON live.id = allowed.authorization_id
     RETURNING authorization_id, expires_at),
   ${extendAuthorizations('made')},
   ${erasedSuccessors('(SELECT max(leeway) FROM asked)')},
   ${writeIssue}
   SELECT n FROM allowed`,
  ),
)

/** A refresh token that another takes the place of. */
export interface Rotation {
  digest: Buffer
  next: Buffer
  /** The next one, sealed for who holds this one. */
  successor: Buffer
  /** Of the next one, in seconds. Undefined: it ends when this one would have. */
  ttl: number | undefined
  /** The key that the next one is bound to, if this one is bound to none. */
  jkt: string | undefined
  leeway: number
}

const rotationRow = (issue: PreparedIssue['issue'], { digest, next, successor, ttl, jkt, leeway }: Rotation) => ({
  ...issueRow(issue),
  token_presented: bytea(digest),
  next_digest: bytea(next),
  successor: bytea(successor),
  refresh_ttl: ttl,
  refresh_jkt: jkt,
  leeway,
})

/**
 * Puts the next refresh token in the place of this one and stores what is issued with it, in one statement. False when
 * it has been replaced already or counts no more; with `wait: false` also when somebody else is at it.
 */
export const rotate = (
  redeemer: Redeemer,
  issue: PreparedIssue['issue'],
  rotation: Rotation,
  { wait }: { wait: boolean },
): Promise<boolean> => (wait ? redeemWaiting : redeemBatched)(redeemer, rotateStatements, rotationRow(issue, rotation))

const issueStatements = redeeming((locking, suffix) =>
  sharedStatement(
    `refresh-issue${suffix}`,
    issueColumns,
    (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   ${liveAuthorizations('SHARE', locking)},
   allowed AS MATERIALIZED (SELECT * FROM asked WHERE authorization_id = ANY (ARRAY(SELECT id FROM live))),
   ${writeIssue}
   SELECT n FROM allowed`,
  ),
)

/** Stores what is issued while the refresh token stays. False when its authorization counts no more. */
export const issueWithoutRotation = (redeemer: Redeemer, issue: PreparedIssue['issue']): Promise<boolean> =>
  redeem(redeemer, issueStatements, issueRow(issue))
