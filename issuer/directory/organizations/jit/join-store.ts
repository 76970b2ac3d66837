import { queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'

const ofDomain = statement(
  'jit-of-domain',
  'SELECT organization_id AS id FROM organization_jit_email_domains WHERE email_domain = $1 ORDER BY 1',
)
const ofConnector = statement(
  'jit-of-connector',
  'SELECT organization_id AS id FROM organization_jit_sso_connectors WHERE sso_connector_id = $1 ORDER BY 1',
)

const ids = async (rows: Promise<{ id: string }[]>): Promise<string[]> => (await rows).map(({ id }) => id)

export const organizationsOfDomain = (trx: Transaction, domain: string): Promise<string[]> =>
  ids(queryOf(trx)<{ id: string }>(ofDomain, [domain]))

export const organizationsOfConnector = (trx: Transaction, ssoConnectorId: string): Promise<string[]> =>
  ids(queryOf(trx)<{ id: string }>(ofConnector, [ssoConnectorId]))

// All lock organizations in the order of their ids.
const joining = statement(
  'jit-join',
  `WITH there AS (SELECT id FROM organizations WHERE id = ANY ($2::text[]) ORDER BY id FOR NO KEY UPDATE),
   joined AS (
     INSERT INTO organization_users (organization_id, user_id) SELECT id, $1 FROM there
     ON CONFLICT DO NOTHING RETURNING organization_id),
   given AS (
     INSERT INTO organization_user_roles (organization_id, user_id, organization_role_id)
     SELECT organization_id, $1, r.organization_role_id FROM organization_jit_roles r JOIN joined USING (organization_id)
     ON CONFLICT DO NOTHING)
   SELECT organization_id AS id FROM joined ORDER BY 1`,
)

/** Those of the organizations, as far as they exist, that the user was no member of. */
export const joinOrganizations = (
  trx: Transaction,
  userId: string,
  organizationIds: readonly string[],
): Promise<string[]> => ids(queryOf(trx)<{ id: string }>(joining, [userId, organizationIds]))
