import { type Query, statement } from '../../../../platform/database/database.ts'
import { bytea, lookUp, sharedStatement } from '../../../../platform/database/shared-statement.ts'
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
import { type Redeemer, redeem, redeeming } from '../redeeming-store.ts'

/** How many wrong verifiers end a code. */
const mostWrongVerifiers = 5

export interface CodeFacts extends AuthorizationFacts {
  redirectUri: string
  codeChallenge: string | null
  nonce: string | null
  /** Thumbprint of the key that it is bound to (RFC 9449 §10). */
  jkt: string | null
  /** How long ago it was redeemed, in ms; null: it was not. */
  redeemedAgo: number | null
  /** Too old, or guessed at too often. */
  codeOver: boolean
}

const select = lookUp(
  'code-facts',
  authorizationQuestion,
  authorizationFactsSql(
    '(SELECT * FROM authorization_codes WHERE digest = asked.digest) token',
    `token.redirect_uri AS "redirectUri", token.code_challenge AS "codeChallenge", token.nonce, token.jkt,
     extract(epoch FROM clock_timestamp() - token.redeemed_at) * 1000 AS "redeemedAgo",
     token.expires_at <= now() OR token.wrong_verifiers >= ${mostWrongVerifiers} AS "codeOver"`,
  ),
)

/** Undefined when there is no such code. One round trip. */
export const findCodeFacts = async (
  query: Query,
  { digest, resource, organizationId }: AuthorizationQuestion,
): Promise<CodeFacts | undefined> => {
  const asked = { digest: bytea(digest), resource, organization_id: organizationId }
  return (await query<{ facts: CodeFacts }>(select, [asked]))[0]?.facts
}

const count = statement(
  'code-count-wrong-verifier',
  `UPDATE authorization_codes SET wrong_verifiers = wrong_verifiers + 1
   WHERE digest = $1 AND redeemed_at IS NULL AND wrong_verifiers < ${mostWrongVerifiers}`,
)

/** The fifth ends the code. */
export const countWrongVerifier = async (query: Query, digest: Buffer): Promise<void> => {
  await query(count, [digest])
}

// clock_timestamp: the statement may have waited for a lock, and whether a replay comes late is reckoned from here.
const redeemStatements = redeeming((locking, suffix) =>
  sharedStatement(
    `code-redeem${suffix}`,
    { ...issueColumns, code_digest: 'bytea', refresh_digest: 'bytea', refresh_ttl: 'integer', refresh_jkt: 'text' },
    (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   ${liveAuthorizations('NO KEY UPDATE', locking)},
   allowed AS (
     UPDATE authorization_codes c SET redeemed_at = clock_timestamp() FROM asked
     WHERE c.digest = ANY (ARRAY(SELECT code_digest FROM asked)) AND c.digest = asked.code_digest
       AND c.redeemed_at IS NULL AND c.wrong_verifiers < ${mostWrongVerifiers} AND c.expires_at > now()
       AND asked.authorization_id = ANY (ARRAY(SELECT id FROM live))
     RETURNING asked.*),
   made AS (
     INSERT INTO refresh_tokens (digest, authorization_id, expires_at, jkt)
     SELECT refresh_digest, authorization_id,
       least(live.created_at + refresh_ttl * interval '1 second', ${latestRefresh('live')}), refresh_jkt
     FROM allowed JOIN live ON live.id = allowed.authorization_id WHERE refresh_digest IS NOT NULL
     RETURNING authorization_id, expires_at),
   ${extendAuthorizations('made')},
   ${writeIssue}
   SELECT n FROM allowed`,
  ),
)

/**
 * Uses the code up and stores what comes of it, in one statement: all of it or nothing. False when it cannot be used
 * (any more): of any number of parallel calls on any number of instances, one succeeds.
 */
export const redeemCode = (
  database: Redeemer,
  issue: PreparedIssue['issue'],
  code: Buffer,
  /** `ttl` in seconds; `jkt`: the key that it is bound to. */
  refresh: { digest: Buffer; ttl: number; jkt: string | undefined } | undefined,
): Promise<boolean> =>
  redeem(database, redeemStatements, {
    ...issueRow(issue),
    code_digest: bytea(code),
    ...(refresh && { refresh_digest: bytea(refresh.digest), refresh_ttl: refresh.ttl, refresh_jkt: refresh.jkt }),
  })
