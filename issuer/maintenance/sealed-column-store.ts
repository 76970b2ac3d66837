import { hookHeadersContext, hookKeyContext } from '../../deliveries/hook-secrets.ts'
import { logoutContext } from '../../deliveries/logouts/logout.ts'
import { connectorContext } from '../../deliveries/messages/connector-store.ts'
import { messageContext } from '../../deliveries/messages/message.ts'
import { type Query, statement } from '../../platform/database/database.ts'
import { hmacKeyContext } from '../base/hmac-keys-store.ts'
import { idempotencyContext } from '../base/idempotency-store.ts'
import { environmentContext } from '../claims/claims-script-store.ts'
import { providerRequestContext } from '../connectors/providers/request-store.ts'
import { consoleSessionContext } from '../console/session-store.ts'
import { totpSecretContext } from '../directory/users/factors/totp-store.ts'
import { signingKeyContext } from '../tokens/keys/key-pair.ts'

/** A column whose values are sealed under the key-encryption key. */
export interface SealedColumn {
  name: string
  /** The next values after the row `after`, in the order of their rows; at most `limit`. */
  read(query: Query, after: string, limit: number): Promise<SealedValue[]>
  /** False when the value is no longer the one that was read. */
  replace(query: Query, value: SealedValue, sealed: Buffer): Promise<boolean>
  /** What the value is bound to. */
  context(value: SealedValue): string
}

export interface SealedValue {
  id: string
  /** The record that the secret belongs to. */
  owner: string
  sealed: Buffer
}

const sealedColumn = (
  place: { table: string; id: string; owner: string; column: string },
  context: (owner: string) => string,
): SealedColumn => {
  const { table, id, owner, column } = place
  const name = `${table}.${column}`
  const select = statement(
    `reencrypt-read-${name}`,
    `SELECT ${id} AS id, ${owner} AS owner, ${column} AS sealed FROM ${table}
     WHERE ${column} IS NOT NULL AND ${id} > $1 ORDER BY ${id} LIMIT $2`,
  )
  const update = statement(
    `reencrypt-write-${name}`,
    `UPDATE ${table} SET ${column} = $3 WHERE ${id} = $1 AND ${column} = $2 RETURNING ${id}`,
  )
  return {
    name,
    read: (query, after, limit) => query<SealedValue>(select, [after, limit]),
    replace: async (query, value, sealed) => (await query(update, [value.id, value.sealed, sealed])).length > 0,
    context: (value) => context(value.owner),
  }
}

/** All of them. A test holds this list against the schema. */
export const sealedColumns: readonly SealedColumn[] = [
  sealedColumn({ table: 'signing_keys', id: 'kid', owner: 'kid', column: 'private_jwk' }, signingKeyContext),
  sealedColumn({ table: 'id_token_keys', id: 'kid', owner: 'kid', column: 'private_jwk' }, signingKeyContext),
  sealedColumn({ table: 'hooks', id: 'id', owner: 'id', column: 'sealed_headers' }, hookHeadersContext),
  sealedColumn({ table: 'hook_signing_keys', id: 'id', owner: 'hook_id', column: 'sealed' }, hookKeyContext),
  sealedColumn(
    { table: 'test_targets', id: 'delivery_id::text', owner: 'hook_id', column: 'sealed_headers' },
    hookHeadersContext,
  ),
  sealedColumn({ table: 'idempotency_answers', id: 'id', owner: 'id', column: 'sealed' }, idempotencyContext),
  sealedColumn(
    { table: 'claims_scripts', id: 'token_type', owner: 'token_type', column: 'sealed_environment' },
    environmentContext,
  ),
  sealedColumn({ table: 'hmac_keys', id: 'purpose', owner: 'purpose', column: 'sealed' }, hmacKeyContext),
  sealedColumn({ table: 'totp_secrets', id: 'id', owner: 'user_id', column: 'sealed' }, totpSecretContext),
  sealedColumn({ table: 'connectors', id: 'id', owner: 'id', column: 'sealed_config' }, connectorContext),
  sealedColumn({ table: 'identity_providers', id: 'id', owner: 'id', column: 'sealed_config' }, connectorContext),
  sealedColumn(
    {
      table: 'identity_provider_requests',
      id: `provider_id || encode(state_digest, 'hex')`,
      owner: 'provider_id',
      column: 'sealed',
    },
    providerRequestContext,
  ),
  sealedColumn({ table: 'messages', id: 'id', owner: 'id', column: 'sealed' }, messageContext),
  sealedColumn({ table: 'console_sessions', id: 'id', owner: 'id', column: 'sealed' }, consoleSessionContext),
  sealedColumn(
    { table: 'logout_deliveries', id: 'authorization_id', owner: 'authorization_id', column: 'sealed' },
    logoutContext,
  ),
]
