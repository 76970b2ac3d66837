import { type Query, statement } from '../../platform/database/database.ts'
import { consoleRoles } from '../base/console-roles.ts'
import { tokenDigest } from '../tokens/token-digest.ts'

/** How long a link holds, in seconds. */
export const invitationTtl = 1_800

const digestOf = (token: string) => tokenDigest('console-invitation', token)

const hasOwner = `EXISTS (SELECT FROM user_roles o JOIN users u ON u.id = o.user_id
     WHERE o.role_id = '${consoleRoles.owner.id}' AND NOT u.is_suspended)`
// That of a start is for the first owner; nobody else becomes one by it.
const holds = `expires_at > now() AND NOT (is_first AND ${hasOwner})`

const insert = statement(
  'console-invitation-insert',
  `INSERT INTO console_invitations (digest, role_id, is_first, expires_at)
   SELECT $1, $2, $3, now() + interval '${invitationTtl} seconds' WHERE NOT ($3 AND ${hasOwner}) RETURNING digest`,
)

/** False: it was for the first owner, and there is one. */
export const insertInvitation = async (
  query: Query,
  { token, roleId, isFirst }: { token: string; roleId: string; isFirst: boolean },
): Promise<boolean> => (await query(insert, [digestOf(token), roleId, isFirst])).length > 0

export interface Invitation {
  roleId: string
  expiresAt: Date
}

const select = statement(
  'console-invitation-find',
  `SELECT role_id AS "roleId", expires_at AS "expiresAt" FROM console_invitations WHERE digest = $1 AND ${holds}`,
)

/** Undefined when it is unknown, was used or has expired. */
export const findInvitation = async (query: Query, token: string): Promise<Invitation | undefined> =>
  (await query<Invitation>(select, [digestOf(token)]))[0]

export interface PasskeyAsked {
  /** Whom it is made for. Base64url, as both. */
  handle: string
  challenge: string
}

const ask = statement(
  'console-invitation-ask-passkey',
  `UPDATE console_invitations SET passkey_handle = $2, passkey_challenge = $3 WHERE digest = $1 AND ${holds}
   RETURNING digest`,
)

/** The last that was asked for counts. False: the link does not hold any more. */
export const askForPasskey = async (query: Query, token: string, { handle, challenge }: PasskeyAsked) =>
  (await query(ask, [digestOf(token), handle, challenge])).length > 0

const take = statement(
  'console-invitation-take-challenge',
  `WITH asked AS (SELECT digest, passkey_handle, passkey_challenge FROM console_invitations WHERE digest = $1 FOR UPDATE)
   UPDATE console_invitations i SET passkey_challenge = NULL FROM asked
   WHERE i.digest = asked.digest AND asked.passkey_challenge IS NOT NULL
   RETURNING asked.passkey_handle AS handle, asked.passkey_challenge AS challenge`,
)

/** What the browser was asked for, once: the challenge is used up whatever comes of it. */
export const takeChallenge = async (query: Query, token: string): Promise<PasskeyAsked | undefined> =>
  (await query<PasskeyAsked>(take, [digestOf(token)]))[0]

// The lock of `keep_console_owner`: of two links for the first owner, used at once, the second finds one.
const lock = statement('console-owners-lock', 'SELECT pg_advisory_xact_lock(7305145)')
const spend = statement(
  'console-invitation-spend',
  `DELETE FROM console_invitations WHERE digest = $1 AND ${holds} RETURNING role_id AS "roleId"`,
)

/** In the transaction that makes the person. Undefined when somebody else was faster, or it does not hold any more. */
export const spendInvitation = async (query: Query, token: string): Promise<{ roleId: string } | undefined> => {
  await query(lock, [])
  return (await query<{ roleId: string }>(spend, [digestOf(token)]))[0]
}
