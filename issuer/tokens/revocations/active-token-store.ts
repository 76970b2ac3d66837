import { type Query, statement } from '../../../platform/database/database.ts'
import { signInSidPrefix } from '../../../platform/jwt/sid.ts'
import type { VerifiedClaims } from '../../../platform/jwt/verify.ts'
import { consoleClientId, consoleRoleIdsSql } from '../../base/console-roles.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { Act } from '../access-token.ts'
import { type Confirmation, fitsScheme } from '../dpop/confirmation.ts'
import { cnfOf } from '../dpop/confirmation-store.ts'
import { representedUsers } from '../represented-users.ts'
import { revokedCondition, type TokenColumns } from './revocation-store.ts'

/** An SQL condition: a `sid` names an authorization, see `sid.ts`. */
const isSignIn = (sid: string): string => `starts_with(${sid}, '${signInSidPrefix}')`

/**
 * Whether a token is active (RFC 7662 §2.2): nobody revoked it, its session goes on, its people are neither suspended
 * nor deleted, its client exists. Each question is one round trip.
 */
const activeCondition = (token: TokenColumns): string =>
  `NOT ${revokedCondition(token)}
   AND (${token.sid} IS NULL OR CASE WHEN ${isSignIn(token.sid)}
     THEN EXISTS (SELECT FROM authorizations WHERE id = ${token.sid} AND ended_at IS NULL)
     ELSE EXISTS (SELECT FROM impersonation_sessions WHERE id = ${token.sid} AND ended_at IS NULL) END)
   AND NOT EXISTS (SELECT FROM unnest(${token.people}) AS person
     WHERE NOT EXISTS (SELECT FROM users WHERE id = person AND NOT is_suspended))
   AND EXISTS (SELECT FROM applications WHERE id = ${token.client})`

// $1…$5: `jwtValues`.
const jwtActive = activeCondition({
  jti: '$1',
  sid: '$2::text',
  people: '$3::text[]',
  client: '$4',
  iat: 'to_timestamp($5::float8)',
})
const jwtValues = (claims: VerifiedClaims) => [
  claims.jti,
  claims.sid,
  representedUsers(claims),
  claims.client_id,
  claims.iat,
]

const selectJwt = statement(
  'active-jwt',
  `SELECT ${jwtActive} AS active,
     EXISTS (SELECT FROM resources r JOIN scopes s ON s.resource_id = r.id JOIN role_scopes rs ON rs.scope_id = s.id
       JOIN application_roles ar ON ar.role_id = rs.role_id
       WHERE r.indicator = ANY ($6::text[]) AND ar.application_id = $7) AS "callerHoldsPermission"`,
)

export interface JwtState {
  active: boolean
  /** The caller holds a permission on a resource that the token is for. */
  callerHoldsPermission: boolean
}

/** Of a verified JWT of this issuer; `callerId` is the client that asks about it, if one does. */
export const findJwtState = async (
  query: Query,
  claims: VerifiedClaims,
  callerId?: string | undefined,
): Promise<JwtState> => {
  const values = [...jwtValues(claims), [claims.aud].flat(), callerId]
  return onlyRow(await query<JwtState>(selectJwt, values))
}

const selectHeld = statement(
  'active-held',
  `SELECT ${jwtActive} AS active, ARRAY(
     SELECT s.name FROM application_roles ar JOIN role_scopes rs ON rs.role_id = ar.role_id
     JOIN scopes s ON s.id = rs.scope_id JOIN resources r ON r.id = s.resource_id
     WHERE ar.application_id = $4 AND r.indicator = ANY ($6::text[])
     UNION
     SELECT s.name FROM user_roles ur JOIN role_scopes rs ON rs.role_id = ur.role_id
     JOIN scopes s ON s.id = rs.scope_id JOIN resources r ON r.id = s.resource_id
     WHERE $4 = '${consoleClientId}' AND ur.user_id = $7 AND ur.role_id IN (${consoleRoleIdsSql})
       AND r.indicator = ANY ($6::text[])) AS held`,
)

/**
 * Of a verified JWT, and which scopes its client holds now, itself, on the resource it is for. One of the console has
 * those of the person's roles there.
 */
export const findHeldScopes = async (
  query: Query,
  claims: VerifiedClaims,
): Promise<{ active: boolean; held: string[] }> =>
  onlyRow(
    await query<{ active: boolean; held: string[] }>(selectHeld, [
      ...jwtValues(claims),
      [claims.aud].flat(),
      claims.sub,
    ]),
  )

/** An active opaque token. Times in seconds. */
export interface OpaqueToken {
  userId: string
  clientId: string
  scope: string
  sessionId: string | null
  act: Act | null
  cnf: Confirmation | null
  /** `read`: it only reads. */
  access: 'read' | null
  fromPersonalAccessToken: boolean
  iat: number
  exp: number
}

const selectOpaque = statement(
  'active-opaque',
  `WITH token AS (
     SELECT *, ARRAY(SELECT jsonb_path_query(act, 'strict $.**.sub') #>> '{}') || user_id::text AS people
     FROM opaque_tokens WHERE digest = $1 AND revoked_at IS NULL AND expires_at > now())
   SELECT user_id AS "userId", client_id AS "clientId", scope, session_id AS "sessionId", act, access, ${cnfOf('jkt')} AS cnf,
     personal_access_token IS NOT NULL AS "fromPersonalAccessToken",
     floor(extract(epoch FROM created_at))::float8 AS iat, floor(extract(epoch FROM expires_at))::float8 AS exp
   FROM token WHERE ${activeCondition({ jti: 'NULL', sid: 'token.session_id', people: 'people', client: 'client_id', iat: 'token.created_at' })}`,
)

/** The opaque token behind a digest, whoever may use it; undefined when it does not count (any more). */
export const inspectOpaqueToken = async (query: Query, digest: Buffer): Promise<OpaqueToken | undefined> =>
  (await query<OpaqueToken>(selectOpaque, [digest]))[0]

/**
 * The opaque token behind a digest, for who proved to hold the key `jkt` (`tokens/dpop`): one that is bound to a key
 * counts with that alone, one that is bound to none only without (RFC 9449 §7.1).
 */
export const findOpaqueToken = async (
  query: Query,
  digest: Buffer,
  jkt?: string | undefined,
): Promise<OpaqueToken | undefined> => {
  const found = await inspectOpaqueToken(query, digest)
  return found && fitsScheme(found.cnf, jkt) ? found : undefined
}
