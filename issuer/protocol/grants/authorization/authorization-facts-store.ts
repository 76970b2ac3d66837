import { consoleClientId, consoleRoleIdsSql } from '../../../base/console-roles.ts'
import { type UserinfoFacts, userinfoColumns } from '../../../directory/users/userinfo-store.ts'
import type { Consent } from '../../../tokens/consents/consent.ts'
import { consentInForce } from '../../../tokens/consents/consent-limit-store.ts'
import { idTokenSettingsSql } from '../../../tokens/id-tokens/id-token-settings-store.ts'
import { revokedUntil } from '../../../tokens/revocations/revocation-store.ts'
import type { EndReason, SignInRecord } from '../../../tokens/sessions/session.ts'
import { sessionCounts } from '../../../tokens/sessions/session-store.ts'
import { oneHolds } from '../../clients/token-request-store.ts'

/** What is asked of a code or refresh token that a client presents. */
export interface AuthorizationQuestion {
  digest: Buffer
  /** The indicator, registered or not. */
  resource: string | undefined
  organizationId: string | undefined
}

/** An authorization, and all that decides about its tokens now. Times in seconds. */
export interface AuthorizationFacts {
  authorizationId: string
  clientId: string
  /** Granted at the authorization endpoint, in the order of the request. */
  scopes: string[]
  /** Indicators asked for there. */
  resources: string[]
  isOffline: boolean
  authTime: number
  amr: string[]
  acr: string
  interaction: SignInRecord
  endReason: EndReason | null
  expired: boolean
  /** False when there is no such session any more. */
  sessionCounts: boolean
  sessionExpiresAt: number | null
  userId: string
  isSuspended: boolean
  /** Until when tokens of the user are revoked; see `issueTime`. */
  userRevokedUntil: number | null
  /** What the person allowed a third-party application and did not take back; null: nothing. */
  consent: Consent | null
  /** What an ID token tells of; null without `openid`. */
  user: UserinfoFacts | null
  /** Of ID tokens, as stored; null: nothing was set. */
  idTokenSettings: unknown
  /** The resource asked for, or else the default one. */
  resource: { id: string; indicator: string; accessTokenTtl: number; isDefault: boolean } | null
  /**
   * Of the granted scopes, what the person's roles hold on the resource; space-separated. Roles in organizations count
   * unless the request names one: then those in it are looked up.
   */
  held: string | null
}

/** Of a request, beside the token that it presents. */
export const authorizationQuestion = { digest: 'bytea', resource: 'text', organization_id: 'text' } as const

// Roles in organizations: the primary key begins with the organization, so the way leads through those the person
// belongs to.
const inOrganizations = `EXISTS (
  SELECT FROM organization_role_resource_scopes c WHERE c.scope_id = s.id AND c.organization_role_id = ANY (ARRAY(
    SELECT mr.organization_role_id FROM organization_users m JOIN organization_user_roles mr
      ON mr.organization_id = m.organization_id AND mr.user_id = m.user_id
    WHERE m.user_id = u.id)))`

const consoleRolesOf = (user: string) =>
  `SELECT role_id FROM user_roles WHERE user_id = ${user} AND role_id IN (${consoleRoleIdsSql})`

/**
 * The facts of `token`, a row with the column `authorization_id`; no row when it has none. `columns` are those of the
 * token. `authorizations`: another relation with the columns of that table. Permissions of the Management API come to
 * people by the console alone, and by its roles.
 */
export const authorizationFactsSql = (
  token: string,
  columns: string,
  { authorizations = 'authorizations' } = {},
): string =>
  // One column, because the driver takes longer to read two dozen than to parse their JSON.
  `SELECT to_json(found) AS facts FROM (
   SELECT ${columns},
     a.id AS "authorizationId", a.client_id AS "clientId", a.scopes, a.resources, a.is_offline AS "isOffline",
     floor(extract(epoch FROM a.authenticated_at)) AS "authTime", a.amr, a.acr, a.interaction,
     a.end_reason AS "endReason", a.expires_at <= now() AS expired,
     COALESCE(${sessionCounts('b')}, false) AS "sessionCounts",
     floor(extract(epoch FROM b.expires_at)) AS "sessionExpiresAt",
     u.id AS "userId", u.is_suspended AS "isSuspended",
     ${revokedUntil('sub', 'ARRAY[u.id]::text[]')} AS "userRevokedUntil",
     ${consentInForce({ userId: 'a.user_id', clientId: 'a.client_id', organizationId: 'asked.organization_id' })} AS consent,
     CASE WHEN 'openid' = ANY (a.scopes) THEN
       (SELECT to_json(told) FROM (SELECT ${userinfoColumns('a.scopes')}) told) END AS "user",
     CASE WHEN 'openid' = ANY (a.scopes) THEN ${idTokenSettingsSql} END AS "idTokenSettings",
     CASE WHEN r.id IS NOT NULL THEN json_build_object('id', r.id, 'indicator', r.indicator,
       'accessTokenTtl', r.access_token_ttl, 'isDefault', r.is_default) END AS resource,
     (SELECT string_agg(s.name, ' ') FROM scopes s
      WHERE s.resource_id = r.id AND s.name = ANY (a.scopes)
        AND CASE WHEN r.is_management THEN a.client_id = '${consoleClientId}' AND ${oneHolds(consoleRolesOf('u.id'), 's.id')}
          ELSE ${oneHolds('SELECT role_id FROM user_roles WHERE user_id = u.id', 's.id')}
            OR (asked.organization_id IS NULL AND ${inOrganizations}) END) AS held
   FROM ${token}
   JOIN ${authorizations} a ON a.id = token.authorization_id
   JOIN users u ON u.id = a.user_id
   LEFT JOIN sessions b ON b.id = a.session_id
   LEFT JOIN resources r ON r.id = CASE WHEN asked.resource IS NOT NULL
     THEN (SELECT id FROM resources WHERE indicator = asked.resource)
     ELSE (SELECT id FROM resources WHERE is_default) END) found`
