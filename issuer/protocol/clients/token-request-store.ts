import { type Query, statement } from '../../../platform/database/database.ts'
import { lookUp } from '../../../platform/database/shared-statement.ts'
import { likelySpellings } from '../../base/indicator.ts'
import { type ScriptVersions, scriptVersions, scriptVersionsSql } from '../../claims/claims-script-store.ts'
import { revokedUntil } from '../../tokens/revocations/revocation-store.ts'
import type { Resource } from '../requests/resource.ts'
import type { Client } from './client.ts'
import type { ClientProofs } from './client-authentication.ts'

/**
 * A condition: one of these roles carries the scope. `roles` selects ids. They are probed in the index one by one, as
 * an array, so that the cost follows the roles somebody holds, never the roles there are; as a join the planner may
 * start with every role that has the scope.
 */
export const oneHolds = (roles: string, scopeId: string): string =>
  `EXISTS (SELECT FROM role_scopes rs WHERE rs.scope_id = ${scopeId} AND rs.role_id = ANY (ARRAY(${roles})))`

/**
 * An SQL expression: the id of the resource that a statement's `asked.resource` and `asked.use_default_resource` stand
 * for, or NULL.
 */
export const resourceAsked = `CASE
     WHEN asked.resource IS NOT NULL THEN (SELECT id FROM resources WHERE indicator = asked.resource)
     WHEN asked.use_default_resource THEN (SELECT id FROM resources WHERE is_default) END`

/**
 * What every token request needs to know, in one round trip: the client with what proves it, the resource, and the
 * scopes asked for.
 */
export interface TokenRequestFacts {
  client: Client & ClientProofs
  /** The resource asked for, or the default one where that applies. */
  resource: Resource | undefined
  /** Of the names asked for, those that exist on the resource. */
  definedScopes: readonly string[]
  /** Of those, what the client itself holds through its machine-to-machine roles. */
  clientScopes: readonly string[]
  /** Until when the tokens of the client are revoked, in seconds; see `issueTime`. */
  clientRevokedUntil: number | null
  /** Of custom claims. Read here, so that a change holds at once on every instance. */
  claimsScripts: ScriptVersions
}

/** An SQL condition on the applications row `a`. */
export const isDeviceFlowSql = `(a.type = 'Native' AND coalesce(a.custom_client_metadata->'isDeviceFlow' = 'true', false))`

// Scope names hold no white space, so joined text is unambiguous and cheaper to read than arrays. Whether one is held
// is looked up from the client's own roles, so the cost does not grow with the number of roles there are. The client is
// joined last and may be missing, so that an unknown one takes the same look-ups as a wrong secret.
const select = lookUp(
  'token-request',
  { client_id: 'text', resource: 'text', use_default_resource: 'boolean', scopes: 'text[]' },
  `SELECT a.id, a.name, a.type, a.is_third_party AS "isThirdParty",
     a.custom_client_metadata->'allowTokenExchange' AS "allowTokenExchange",
     ${isDeviceFlowSql} AS "isDeviceFlow",
     a.custom_client_metadata->'alwaysIssueRefreshToken' AS "alwaysIssueRefreshToken",
     a.custom_client_metadata->'refreshTokenTtlInDays' AS "refreshTokenTtlInDays",
     a.custom_client_metadata->'rotateRefreshToken' AS "rotateRefreshToken",
     a.custom_client_metadata->'idTokenTtl' AS "idTokenTtl",
     a.custom_client_metadata->'dpopBoundAccessTokens' AS "dpopBoundAccessTokens",
     a.custom_client_metadata->>'securityProfile' AS "securityProfile",
     a.oidc_client_metadata->>'idTokenSignedResponseAlg' AS "idTokenSignedResponseAlg",
     a.oidc_client_metadata->>'jwks' AS jwks, a.oidc_client_metadata->>'tokenEndpointAuthMethod' AS "authenticationMethod",
     (SELECT json_agg(json_build_object('name', s.name, 'digest', encode(s.digest, 'hex'))) FROM application_secrets s
      WHERE s.application_id = asked.client_id AND (s.expires_at IS NULL OR s.expires_at > now())) AS secrets,
     r.id AS "resourceId", r.indicator, r.access_token_ttl AS "accessTokenTtl", found.defined, found.granted,
     ${revokedUntil('client', 'ARRAY[asked.client_id]')} AS "clientRevokedUntil",
     ${scriptVersionsSql} AS "claimsScripts"
   FROM (SELECT) once
   LEFT JOIN resources r ON r.id = ${resourceAsked}
   LEFT JOIN LATERAL (
     SELECT string_agg(s.name, ' ') AS defined,
       string_agg(s.name, ' ') FILTER (WHERE
         ${oneHolds('SELECT role_id FROM application_roles WHERE application_id = asked.client_id', 's.id')}) AS granted
     FROM scopes s WHERE s.resource_id = r.id AND s.name = ANY (asked.scopes)
   ) found ON true
   LEFT JOIN applications a ON a.id = asked.client_id`,
)

interface Row extends Pick<Client, 'name' | 'type' | 'isThirdParty' | 'allowTokenExchange' | 'isDeviceFlow'> {
  id: string | null
  alwaysIssueRefreshToken: boolean | null
  refreshTokenTtlInDays: number | null
  rotateRefreshToken: boolean | null
  idTokenTtl: number | null
  dpopBoundAccessTokens: boolean | null
  securityProfile: Client['securityProfile'] | null
  idTokenSignedResponseAlg: Client['idTokenSignedResponseAlg'] | null
  jwks: string | null
  authenticationMethod: string | null
  secrets: { name: string; digest: string }[] | null
  resourceId: string | null
  indicator: string
  accessTokenTtl: number
  defined: string | null
  granted: string | null
  clientRevokedUntil: number | null
  claimsScripts: string | null
}

const clientDefaults = { refreshTokenTtlInDays: 14, idTokenTtl: 3600 }

const words = (text: string | null): readonly string[] => (text === null ? [] : text.split(' '))

export const findTokenRequestFacts = async (
  query: Query,
  asked: { clientId: string; resource: string | undefined; useDefaultResource: boolean; scopes: readonly string[] },
): Promise<TokenRequestFacts | undefined> => {
  const [row] = await query<Row>(select, [
    {
      client_id: asked.clientId,
      resource: asked.resource,
      use_default_resource: asked.useDefaultResource,
      scopes: asked.scopes,
    },
  ])
  if (!row || row.id === null) return undefined
  const { id, name, type, isThirdParty, allowTokenExchange, jwks, authenticationMethod } = row
  const { resourceId, indicator, accessTokenTtl } = row
  const securityProfile = row.securityProfile ?? undefined
  return {
    client: {
      id,
      name,
      type,
      isThirdParty,
      allowTokenExchange,
      isDeviceFlow: row.isDeviceFlow,
      alwaysIssueRefreshToken: row.alwaysIssueRefreshToken ?? false,
      refreshTokenTtlInDays: row.refreshTokenTtlInDays ?? clientDefaults.refreshTokenTtlInDays,
      // FAPI 2.0 §5.3.2.1: no rotation, which loses tokens and gains nothing where their client is proven.
      rotateRefreshToken: securityProfile === undefined && (row.rotateRefreshToken ?? true),
      idTokenTtl: row.idTokenTtl ?? clientDefaults.idTokenTtl,
      idTokenSignedResponseAlg: row.idTokenSignedResponseAlg ?? undefined,
      dpopBoundAccessTokens: securityProfile !== undefined || (row.dpopBoundAccessTokens ?? false),
      securityProfile,
      secrets: (row.secrets ?? []).map((secret) => ({ ...secret, digest: Buffer.from(secret.digest, 'hex') })),
      jwks,
      authenticationMethod: securityProfile === undefined ? authenticationMethod : 'private_key_jwt',
    },
    resource: resourceId === null ? undefined : { id: resourceId, indicator, accessTokenTtl },
    definedScopes: words(row.defined),
    clientScopes: words(row.granted),
    clientRevokedUntil: row.clientRevokedUntil,
    claimsScripts: scriptVersions(row.claimsScripts),
  }
}

const nearest = statement(
  'resource-nearest',
  `SELECT indicator FROM resources WHERE lower(indicator) = ANY ($1::text[]) ORDER BY indicator LIMIT 1`,
)

/**
 * For the hint of an error: the registered indicator that differs from `asked` only by case, default port or final
 * slash.
 */
export const nearestIndicator = async (query: Query, asked: string): Promise<string | undefined> =>
  (await query<{ indicator: string }>(nearest, [likelySpellings(asked)]))[0]?.indicator
