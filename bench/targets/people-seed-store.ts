import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createIdentityProviderStore } from '../../issuer/connectors/providers/identity-provider-store.ts'
import { newSignInSid } from '../../issuer/tokens/sid.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import { signInClient } from '../comparisons/sign-in-world.ts'
import type { Connection } from '../harness/database-store.ts'
import type { ProviderAddress } from './identity-provider.ts'

/** A connector by which people sign in. Answers its id; its target is `bench`. */
export const seedConnector = async (
  connection: Connection,
  { key, provider }: { key: string; provider: ProviderAddress },
): Promise<string> => {
  const database = createDatabase({ connection, logger: silentLogger })
  const store = createIdentityProviderStore(createEnvelope({ current: Buffer.from(key, 'hex') }))
  const id = 'bench-provider'
  await database.transaction((query) =>
    store.insert(query, {
      ...{ id, kind: 'social', provider: 'oidc', name: null, target: 'bench' },
      ...{ config: { ...provider }, domains: [], syncProfile: false, look: {} },
    }),
  )
  await database.close()
  return id
}

export const signedOutUri = 'https://app.example.test/signed-out'

/** What whoever signs out and whoever is told of it need. */
export const seedLogouts = async (connection: Connection) => {
  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(`UPDATE applications SET oidc_client_metadata = oidc_client_metadata || $2 WHERE id = $1`, [
    signInClient.id,
    { postLogoutRedirectUris: [signedOutUri] },
  ])
  return {
    /** Applications, each told at one of the addresses; without any they are told nothing. */
    register: async (group: string, addresses: readonly (string | undefined)[]): Promise<void> => {
      for (const [number, backchannelLogoutUri] of addresses.entries())
        await pool.query(
          `INSERT INTO applications (id, name, type, oidc_client_metadata) VALUES ($1, $1, 'Traditional', $2)`,
          [`${group}-${number}`, { redirectUris: [], backchannelLogoutUri }],
        )
    },
    /** The person of an authorization signs in at all of a group, in the same session. */
    signInAt: async (group: string, sid: string): Promise<void> => {
      const { rows } = await pool.query<{ id: string }>(
        `SELECT id FROM applications WHERE id LIKE $1 || '-%' AND name = id ORDER BY id`,
        [group],
      )
      await pool.query(
        `INSERT INTO authorizations (id, session_id, user_id, client_id, scopes, resources, is_offline, authenticated_at,
           amr, acr, interaction, expires_at)
         SELECT one.id, a.session_id, a.user_id, one.client_id, '{openid}', '{}', false, a.authenticated_at, a.amr, a.acr,
           a.interaction, a.expires_at
         FROM authorizations a, unnest($2::text[], $3::text[]) one (id, client_id) WHERE a.id = $1`,
        [sid, rows.map(() => newSignInSid()), rows.map(({ id }) => id)],
      )
    },
    close: () => pool.end(),
  }
}

/** Customers who want to be asked, and support that asks. */
export const seedAsking = async (connection: Connection): Promise<void> => {
  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(`UPDATE users SET custom_data = '{"askFirst": true}' WHERE primary_email IS NOT NULL`)
  await pool.end()
}

export const newKey = (): string => randomBytes(32).toString('hex')
