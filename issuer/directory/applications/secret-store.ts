import type { Knex } from 'knex'
import type { SecretRow } from './secret.ts'

const columns = ['application_id', 'name', 'created_at', 'expires_at'] as const

export const insertSecret = async (
  trx: Knex,
  secret: Pick<SecretRow, 'application_id' | 'name' | 'expires_at'> & { digest: Buffer },
): Promise<SecretRow> => {
  const [row] = await trx('application_secrets').insert(secret).returning(columns)
  return row as SecretRow
}

/** The oldest first. */
export const listSecrets = (knex: Knex, applicationId: string): Promise<SecretRow[]> =>
  knex('application_secrets').where({ application_id: applicationId }).orderBy(['created_at', 'name']).select(columns)

/** The secret, which stays as it is until the transaction ends. */
export const lockSecret = async (trx: Knex, applicationId: string, name: string): Promise<SecretRow | undefined> =>
  trx('application_secrets').where({ application_id: applicationId, name }).forUpdate().first(columns)

export const updateSecret = async (
  trx: Knex,
  { application_id, name }: SecretRow,
  changes: Partial<Pick<SecretRow, 'name' | 'expires_at'>>,
): Promise<SecretRow> => {
  const [row] = await trx('application_secrets').where({ application_id, name }).update(changes).returning(columns)
  return row as SecretRow
}

export const deleteSecret = (trx: Knex, applicationId: string, name: string): Promise<number> =>
  trx('application_secrets').where({ application_id: applicationId, name }).delete()
