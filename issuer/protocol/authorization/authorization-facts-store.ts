import type { Query } from '../../../platform/database/database.ts'
import { lookUp } from '../../../platform/database/shared-statement.ts'
import type { AuthorizationClient } from '../../interaction/authorization-client.ts'
import { mayAskFor, mayAskForScope } from '../../tokens/consents/consent-limit-store.ts'
import { isDeviceFlowSql } from '../clients/token-request-store.ts'

/** The application that asks, with what its requests must look like. */
export interface AskingClient extends AuthorizationClient {
  /** What is not a public client may be registered without PKCE. */
  requirePkce: boolean
  requirePar: boolean
  /** People sign in to it on another device (RFC 8628), and in no other way. */
  isDeviceFlow: boolean
}

/** What is registered of an authorization request. */
export interface AuthorizationFacts {
  client: AskingClient | undefined
  /** Of the indicators asked for, those registered; and the default resource. */
  resources: readonly RegisteredResource[]
  /** Of the scopes asked for, those that are permissions of organizations. */
  organizationScopes: readonly string[]
  /** Of the scopes asked for, those that a third-party client may ask people for; null: it is ours. */
  limits: AskingLimits | null
}

export interface AskingLimits {
  /** Those of no resource. */
  names: readonly string[]
  /** Scopes by indicator. */
  resources: Readonly<Record<string, readonly string[]>>
}

export interface RegisteredResource {
  indicator: string
  isDefault: boolean
  /** Of the scopes asked for, those of the resource. */
  scopes: readonly string[]
}

/** FAPI 2.0 §5.3.2.2 asks for both. */
const hasProfile = `(a.custom_client_metadata->'securityProfile') IS NOT NULL`

// The client is joined last and may be missing.
const select = lookUp(
  'authorization-request',
  { client_id: 'text', resources: 'text[]', scopes: 'text[]' },
  `SELECT a.id, a.name, a.description, a.type, a.is_third_party AS "isThirdParty", a.oidc_client_metadata->>'logoUri' AS "logoUri",
     coalesce(a.oidc_client_metadata->'redirectUris', '[]') AS "redirectUris",
     coalesce(a.custom_client_metadata->'alwaysIssueRefreshToken' = 'true', false) AS "alwaysIssueRefreshToken",
     coalesce((a.custom_client_metadata->>'refreshTokenTtlInDays')::integer, 14) AS "refreshTokenTtlInDays",
     ${hasProfile} OR coalesce(a.custom_client_metadata->'requirePkce' <> 'false', true) AS "requirePkce",
     ${hasProfile} OR coalesce(a.custom_client_metadata->'requirePar' = 'true', false) AS "requirePar",
     ${isDeviceFlowSql} AS "isDeviceFlow",
     coalesce(found.resources, '[]') AS resources,
     (SELECT coalesce(jsonb_agg(o.name), '[]') FROM organization_scopes o WHERE o.name = ANY (asked.scopes))
       AS "organizationScopes",
     CASE WHEN a.is_third_party THEN jsonb_build_object(
       'names', (SELECT coalesce(jsonb_agg(name), '[]') FROM unnest(asked.scopes) AS one (name)
         WHERE ${mayAskFor('a.id', 'one.name')}),
       'resources', (SELECT coalesce(jsonb_object_agg(p.indicator, allowed.names), '{}')
         FROM resources p JOIN LATERAL (
           SELECT jsonb_agg(s.name) AS names FROM scopes s
           WHERE s.resource_id = p.id AND s.name = ANY (asked.scopes) AND ${mayAskForScope('a.id', 's.id')}) allowed
         ON allowed.names IS NOT NULL
         WHERE p.indicator = ANY (asked.resources) OR p.is_default)) END AS limits
   FROM (SELECT) once
   LEFT JOIN LATERAL (
     SELECT jsonb_agg(jsonb_build_object('indicator', r.indicator, 'isDefault', r.is_default, 'scopes',
       (SELECT coalesce(jsonb_agg(s.name), '[]') FROM scopes s
        WHERE s.resource_id = r.id AND s.name = ANY (asked.scopes)))) AS resources
     FROM resources r WHERE r.indicator = ANY (asked.resources) OR r.is_default
   ) found ON true
   LEFT JOIN applications a ON a.id = asked.client_id`,
)

type Row = Omit<AuthorizationFacts, 'client'> &
  Omit<AskingClient, 'id' | 'logoUri'> & { n: number; id: string | null; logoUri: string | null }

/** One round trip. */
export const findAuthorizationFacts = async (
  query: Query,
  asked: { clientId: string | undefined; resources: readonly string[]; scopes: readonly string[] },
): Promise<AuthorizationFacts> => {
  const values = { client_id: asked.clientId, resources: asked.resources, scopes: asked.scopes }
  const [row] = await query<Row>(select, [values])
  if (!row) throw new Error('a look-up that always answers a row answered none')
  const { n: _, id, logoUri, resources, organizationScopes, limits, ...client } = row
  return {
    client: id === null ? undefined : { ...client, id, logoUri: logoUri ?? undefined },
    resources,
    organizationScopes,
    limits,
  }
}
