import { z } from 'zod'
import { FederationError } from './federation-error.ts'
import type { ProviderFetch } from './outbound.ts'
import type { OpenIdProfile, ProviderMetadata } from './profile.ts'

/** Never `none`, and nothing with a secret for a key: whoever knows that, signs. */
const asymmetric = new Set(
  ['RS', 'PS', 'ES'].flatMap((kind) => [`${kind}256`, `${kind}384`, `${kind}512`]).concat('EdDSA', 'Ed25519'),
)

const address = z.url({ protocol: /^https?$/ }).max(2_048)

const document = z.object({
  issuer: z.string().min(1).max(2_048),
  authorization_endpoint: address,
  token_endpoint: address,
  jwks_uri: address,
  userinfo_endpoint: address.optional(),
  // OpenID Connect Discovery §3 demands it; RS256 is what it must contain.
  id_token_signing_alg_values_supported: z
    .array(z.string())
    .default(['RS256'])
    .transform((names) => names.filter((name) => asymmetric.has(name)))
    .refine((names) => names.length > 0, 'must hold an algorithm with a public key'),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
})

/** How long a document is used, in ms. */
const lifeMs = 3_600_000

export interface MetadataReader {
  /** What the provider publishes, now or within the last hour. Throws `FederationError`. */
  read(connectorId: string, profile: OpenIdProfile, fetch: ProviderFetch): Promise<ProviderMetadata>
}

export const fetchMetadata = async (profile: OpenIdProfile, fetch: ProviderFetch): Promise<ProviderMetadata> => {
  const { discovery, isIssuer = (issuer: string) => issuer === discovery } = profile
  const answer = await fetch(`${discovery.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (answer.status >= 500) throw new FederationError('unavailable', `The discovery answers ${answer.status}.`)
  const misfit = (what: string) => new FederationError('misconfigured', `The discovery of ${discovery} ${what}.`)
  if (answer.status !== 200) throw misfit(`answers ${answer.status}`)
  const read = document.safeParse(await answer.json().catch(() => undefined))
  if (!read.success)
    throw misfit(
      `cannot be used: ${read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ')}`,
    )
  // Else whoever answers here could speak for anybody (OpenID Connect Discovery §4.3).
  if (!isIssuer(read.data.issuer)) throw misfit('names another issuer')
  if (discovery.startsWith('https:') && !read.data.authorization_endpoint.startsWith('https:'))
    throw misfit('sends browsers over plain http')
  return read.data
}

export const createMetadataReader = ({ now }: { now: () => Date }): MetadataReader => {
  const known = new Map<string, { discovery: string; until: number; metadata: Promise<ProviderMetadata> }>()
  return {
    read(connectorId, profile, fetch) {
      const { discovery } = profile
      const kept = known.get(connectorId)
      if (kept?.discovery === discovery && now().getTime() < kept.until) return kept.metadata
      const metadata = fetchMetadata(profile, fetch)
      known.set(connectorId, { discovery, until: now().getTime() + lifeMs, metadata })
      metadata.catch(() => {
        if (known.get(connectorId)?.metadata === metadata) known.delete(connectorId)
      })
      return metadata
    },
  }
}
