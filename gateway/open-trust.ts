import type { Clock } from '../platform/clock.ts'
import { createJwksClient } from '../platform/jwt/jwks-client.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { TrustedIssuer } from './caller/authenticate.ts'
import { createIntrospection, type Introspection } from './caller/introspection.ts'
import { createRevocations, type Revocations } from './caller/revocations.ts'
import type { GatewayConfig } from './config/load.ts'
import { introspectionsOf } from './config/settings/issuer.ts'
import type { Providers } from './providers.ts'
import { closing, type SharedParts, usedBy } from './shared-parts.ts'

/** Whose tokens are good, and which of them no longer are. */
export interface Trust {
  issuers: TrustedIssuer[]
  /** The feeds of the issuers that have one. */
  revocations: Revocations[]
  /** By issuer: those that are asked about opaque tokens (RFC 7662). */
  introspections: Map<string, Introspection>
}

export interface TrustOptions {
  config: Pick<GatewayConfig, 'issuers'>
  /** Keys, feeds and answers whose settings did not change are taken over. */
  shared: SharedParts
  lifecycle: Lifecycle
  logger: Logger
  metrics: Metrics
  now: Clock
  providers: Providers
}

/** Opens what tokens are verified with: for the routes of a gateway, or for its inspection. */
export const openTrust = (options: TrustOptions): Trust => {
  const { config, shared, lifecycle, logger, metrics, now, providers } = options
  const use = usedBy(lifecycle, shared)

  const issuers = (): TrustedIssuer[] =>
    config.issuers.map(({ issuer, jwksUri, jwks, algorithms, typ, clockSkew }) => {
      const { cooldown: cooldownMs, timeout: timeoutMs, maxBytes } = jwks
      const settings = { issuer, jwksUri, cooldownMs, timeoutMs, maxBytes }
      const open = () => createJwksClient({ ...settings, fetch: providers.fetchJson(settings), logger, metrics, now })
      const keys = use('keys', settings, open, closing)
      return { issuer, keys, algorithms, typ, clockSkewSeconds: clockSkew / 1000 }
    })

  const revocations = (): Revocations[] =>
    config.issuers.flatMap(({ issuer, client, revocations: feed }) => {
      if (feed?.mode !== 'feed' || !client) return []
      const settings = { issuer, client, ...feed }
      const follow = providers.followRevocations
      const open = () => createRevocations({ ...settings, logger, metrics, now, follow })
      return [use('revocations', settings, open, closing)]
    })

  const introspections = (): Map<string, Introspection> =>
    new Map(
      introspectionsOf(config.issuers).map((settings) => {
        const { issuer, url, client, clockSkew } = settings
        const open = () =>
          createIntrospection({
            ...{ issuer, url, clockSkewSeconds: clockSkew / 1000, logger, metrics, now },
            questions: providers.introspect({ issuer, client, metrics, now }),
            fetch: providers.fetchJson({ timeoutMs: 5_000, maxBytes: 262_144, cooldownMs: 10_000 }),
          })
        return [issuer, use('introspection', settings, open, closing)]
      }),
    )

  return { issuers: issuers(), revocations: revocations(), introspections: introspections() }
}
