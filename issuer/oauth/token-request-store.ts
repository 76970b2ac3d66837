import { type Query, statement } from '../../platform/database.ts'
import type { Client } from './client.ts'
import type { ClientSecrets } from './client-authentication.ts'
import type { Resource } from './resource.ts'

/** What every token request needs to know, in one round trip: the client with its secrets, the resource, and the scopes asked for. */
export interface TokenRequestFacts {
  client: Client & ClientSecrets
  /** The resource asked for, or the default one where that applies. */
  resource: Resource | undefined
  /** Of the names asked for, those that exist on the resource. */
  definedScopes: readonly string[]
  /** Of those, what the client itself holds through its machine-to-machine roles. */
  clientScopes: readonly string[]
}

// Scope names hold no white space, so joined text is unambiguous and cheaper to read than arrays. Scopes are looked up by name and their
// roles by scope, so the cost does not grow with the number of roles a client has. The client is joined last and optional, so that an
// unknown one takes the same look-ups as a wrong secret.
const select = statement(
  'token-request',
  `SELECT a.id, a.name, a.type, a.is_third_party AS "isThirdParty",
     a.custom_client_metadata->'allowTokenExchange' AS "allowTokenExchange",
     (SELECT string_agg(encode(s.digest, 'hex'), ' ') FROM application_secrets s
      WHERE s.application_id = asked.id AND (s.expires_at IS NULL OR s.expires_at > now())) AS secrets,
     r.id AS "resourceId", r.indicator, r.access_token_ttl AS "accessTokenTtl", found.defined, found.granted
   FROM (SELECT $1::text AS id) asked
   LEFT JOIN resources r ON r.id = CASE
     WHEN $2::text IS NOT NULL THEN (SELECT id FROM resources WHERE indicator = $2)
     WHEN $3::boolean THEN (SELECT id FROM resources WHERE is_default) END
   LEFT JOIN LATERAL (
     SELECT string_agg(s.name, ' ') AS defined,
       string_agg(s.name, ' ') FILTER (WHERE EXISTS (
         SELECT FROM role_scopes rs JOIN application_roles ar ON ar.role_id = rs.role_id
         WHERE rs.scope_id = s.id AND ar.application_id = asked.id)) AS granted
     FROM scopes s WHERE s.resource_id = r.id AND s.name = ANY ($4::text[])
   ) found ON true
   LEFT JOIN applications a ON a.id = asked.id`,
)

interface Row extends Omit<Client, 'id'> {
  id: string | null
  secrets: string | null
  resourceId: string | null
  indicator: string
  accessTokenTtl: number
  defined: string | null
  granted: string | null
}

const words = (text: string | null): readonly string[] => (text === null ? [] : text.split(' '))

export const findTokenRequestFacts = async (
  query: Query,
  asked: { clientId: string; resource: string | undefined; useDefaultResource: boolean; scopes: readonly string[] },
): Promise<TokenRequestFacts | undefined> => {
  const [row] = await query<Row>(select, [asked.clientId, asked.resource, asked.useDefaultResource, asked.scopes])
  if (!row || row.id === null) return undefined
  const { id, name, type, isThirdParty, allowTokenExchange, resourceId, indicator, accessTokenTtl } = row
  const digests = words(row.secrets).map((digest) => Buffer.from(digest, 'hex'))
  return {
    client: { id, name, type, isThirdParty, allowTokenExchange, digests },
    resource: resourceId === null ? undefined : { id: resourceId, indicator, accessTokenTtl },
    definedScopes: words(row.defined),
    clientScopes: words(row.granted),
  }
}

const indicators = statement('resource-indicators', `SELECT indicator FROM resources ORDER BY indicator LIMIT 10000`)

/** Every registered indicator, for the hint of an error. */
export const registeredIndicators = async (query: Query): Promise<string[]> =>
  (await query<{ indicator: string }>(indicators, [])).map(({ indicator }) => indicator)
