import type { Knex } from 'knex'

/** Who a user is at an enterprise's provider. */
export interface SsoIdentityRow {
  id: string
  user_id: string
  provider_id: string
  issuer: string
  subject: string
  detail: Record<string, unknown>
  created_at: Date
  updated_at: Date
}

/** Oldest first. */
export const listSsoIdentities = (knex: Knex, userId: string): Promise<SsoIdentityRow[]> =>
  knex<SsoIdentityRow>('user_sso_identities').where({ user_id: userId }).orderBy(['created_at', 'id'])

/** Those that a user has by a connector; answers how many were removed. */
export const removeSsoIdentities = (trx: Knex, userId: string, connectorId: string): Promise<number> =>
  trx<SsoIdentityRow>('user_sso_identities').where({ user_id: userId, provider_id: connectorId }).delete()
