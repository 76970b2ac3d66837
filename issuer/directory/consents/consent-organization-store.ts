import type { Knex } from 'knex'
import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import type { OrganizationRow } from '../organizations/organization.ts'

/** Those that the person allowed the application to act in, newest first. */
export const listConsentOrganizations = (
  knex: Knex,
  { userId, clientId }: { userId: string; clientId: string },
  page: Page | undefined,
): Promise<Listed<OrganizationRow>> =>
  listed(
    knex<OrganizationRow>('organizations')
      .select('organizations.*')
      .whereExists(
        knex('consents')
          .where({ user_id: userId, client_id: clientId, revoked_at: null })
          .whereRaw('expires_at > now() AND organizations.id::text = ANY (consents.organizations)'),
      )
      .orderBy([{ column: 'organizations.created_at', order: 'desc' }, 'organizations.id']),
    page,
  )

const memberships = statement(
  'consent-organizations-of-member',
  `SELECT organization_id AS id FROM organization_users WHERE user_id = $1 AND organization_id = ANY ($2::text[])
   ORDER BY organization_id FOR KEY SHARE`,
)

/** Of `organizationIds` those that the person is a member of. */
export const membershipsAmong = (
  query: Query,
  userId: string,
  organizationIds: readonly string[],
): Promise<{ id: string }[]> => query<{ id: string }>(memberships, [userId, organizationIds])

const set = statement(
  'consent-organizations-set',
  `UPDATE consents SET organizations = $3::text[] WHERE user_id = $1 AND client_id = $2
     AND revoked_at IS NULL AND expires_at > now()`,
)

/** Of a consent that counts, by whoever holds the row of the user. */
export const setConsentOrganizations = async (
  transaction: Transaction,
  { userId, clientId }: { userId: string; clientId: string },
  organizationIds: readonly string[],
): Promise<void> => {
  await queryOf(transaction)(set, [userId, clientId, organizationIds])
}
