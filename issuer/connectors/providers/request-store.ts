import { z } from 'zod'
import { type Query, statement } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { sha256 } from '../../../platform/secret.ts'

/** A request to a provider that the Management API began. */
export interface ProviderRequestRow {
  providerId: string
  state: string
  redirectUri: string
  kept: Record<string, unknown>
}

const sealedSchema = z.object({ redirectUri: z.string(), kept: z.record(z.string(), z.unknown()) })

const drop = statement(
  'identity-provider-requests-drop',
  'DELETE FROM identity_provider_requests WHERE expires_at <= now()',
)
const insert = statement(
  'identity-provider-request-keep',
  `INSERT INTO identity_provider_requests (provider_id, state_digest, sealed, expires_at)
   VALUES ($1, $2, $3, now() + interval '10 minutes')
   ON CONFLICT (provider_id, state_digest) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`,
)
const take = statement(
  'identity-provider-request-take',
  `DELETE FROM identity_provider_requests WHERE provider_id = $1 AND state_digest = $2 AND expires_at > now() RETURNING sealed`,
)

export const providerRequestContext = (providerId: string) => `identity-provider-request:${providerId}`

/** Good for ten minutes and for one answer. What is kept is sealed: with the code it is who somebody is. */
export const createRequestStore = (envelope: Envelope) => ({
  async keep(query: Query, { providerId, state, redirectUri, kept }: ProviderRequestRow): Promise<void> {
    await query(drop, [])
    const sealed = envelope.seal(JSON.stringify({ redirectUri, kept }), providerRequestContext(providerId))
    await query(insert, [providerId, sha256(state), sealed])
  },

  async take(
    query: Query,
    { providerId, state }: Pick<ProviderRequestRow, 'providerId' | 'state'>,
  ): Promise<z.output<typeof sealedSchema> | undefined> {
    const [row] = await query<{ sealed: Buffer }>(take, [providerId, sha256(state)])
    if (row === undefined) return undefined
    return sealedSchema.parse(
      JSON.parse(envelope.open(row.sealed, providerRequestContext(providerId)).toString('utf8')),
    )
  },
})
