import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { authorizationCounts } from '../../tokens/authorizations/authorization-store.ts'

/** What an application got of a person, over all their sign-ins. */
export interface AccountApplication {
  clientId: string
  name: string
  logoUri: string | null
  isThirdParty: boolean
  /** It keeps its access while the person is signed out. */
  isOffline: boolean
  since: Date
  /** Granted: of OpenID Connect, of organizations and of resources. */
  scopes: string[]
  /** Indicators. */
  resources: string[]
  /** Ids of those that a consent names. */
  organizations: string[]
}

// A consent may be all that is left, and a first-party application has none.
const applicationsWhere = (name: string, condition: string) =>
  statement(
    `account-applications-${name}`,
    `SELECT c.id AS "clientId", c.name, c.oidc_client_metadata->>'logoUri' AS "logoUri", c.is_third_party AS "isThirdParty",
       coalesce(bool_or(granted.is_offline), false) AS "isOffline",
       least(min(granted.created_at), min(k.granted_at)) AS since,
       ARRAY(SELECT DISTINCT one FROM unnest(array_agg(granted.scope) || array_agg(consented.scope)) AS one
         WHERE one IS NOT NULL ORDER BY one) AS scopes,
       ARRAY(SELECT DISTINCT one FROM unnest(array_agg(granted.resource) || array_agg(consented.resource)) AS one
         WHERE one IS NOT NULL ORDER BY one) AS resources,
       coalesce(min(k.organizations), '{}') AS organizations
     FROM applications c
       LEFT JOIN LATERAL (
         SELECT a.created_at, a.is_offline, scope, resource FROM authorizations a
           LEFT JOIN LATERAL unnest(a.scopes) AS scope ON true LEFT JOIN LATERAL unnest(a.resources) AS resource ON true
         WHERE a.user_id = $1 AND a.client_id = c.id AND ${authorizationCounts('a')}) AS granted ON true
       LEFT JOIN consents k ON k.user_id = $1 AND k.client_id = c.id AND k.revoked_at IS NULL AND k.expires_at > now()
       LEFT JOIN LATERAL (
         SELECT scope, NULL AS resource FROM unnest(k.scopes) AS scope
         UNION ALL
         SELECT jsonb_array_elements_text(one.value), one.key FROM jsonb_each(k.resources) AS one) AS consented ON true
     WHERE ${condition} AND (granted.created_at IS NOT NULL OR k.id IS NOT NULL)
     GROUP BY c.id ORDER BY lower(c.name), c.id`,
  )
const all = applicationsWhere(
  'list',
  `c.id IN (SELECT client_id FROM authorizations WHERE user_id = $1 UNION SELECT client_id FROM consents WHERE user_id = $1)`,
)
const one = applicationsWhere('find', 'c.id = $2')

/** By name. */
export const listAccountApplications = (query: Query, userId: string): Promise<AccountApplication[]> =>
  query<AccountApplication>(all, [userId])

export const findAccountApplication = async (
  transaction: Transaction,
  userId: string,
  clientId: string,
): Promise<AccountApplication | undefined> =>
  (await queryOf(transaction)<AccountApplication>(one, [userId, clientId]))[0]
