import type { IncomingMessage } from 'node:http'
import { createNotifier } from '../events/notifier.ts'
import type { Database } from '../platform/database/database.ts'
import type { Envelope } from '../platform/envelope.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { RequestOrigin } from './base/client-address.ts'
import type { AuthenticateClient } from './protocol/clients/authenticate-client.ts'
import { createAuthenticateRequest } from './protocol/clients/registered-client.ts'
import type { Grants } from './protocol/grants.ts'
import { createIntrospectionEndpoint } from './protocol/introspection.ts'
import { createJwksEndpoint } from './protocol/jwks.ts'
import { createMetadataEndpoint } from './protocol/metadata.ts'
import { createRevocationEndpoint } from './protocol/revocation.ts'
import { createFeedEndpoint } from './protocol/revocation-feed.ts'
import { createUserinfoEndpoint } from './protocol/userinfo-endpoint.ts'
import type { AccessTokenVerifier } from './tokens/access-token.ts'
import type { Proofs } from './tokens/dpop/proofs.ts'
import type { SigningKeys } from './tokens/keys/signing-keys.ts'
import { createLogoutTokenMint } from './tokens/logouts/logout-token.ts'
import { startLogouts } from './tokens/logouts/logouts.ts'
import { createRevocationFeed } from './tokens/revocations/feed.ts'
import { revocationChannel } from './tokens/revocations/revocation-store.ts'

export interface ProtocolDependencies {
  database: Database
  envelope: Envelope
  keys: SigningKeys
  grants: Grants
  verifier: AccessTokenVerifier
  /** The publisher of the outbox. */
  events: { wake(): void }
  authenticateClient: AuthenticateClient
  proofs: Proofs
  originOf(request: IncomingMessage): RequestOrigin
  /** Of tokens and of discovery. */
  issuer: string
  /** Of the Management API. */
  indicator: string
  /** Something was revoked, here or by another issuer. */
  onRevocations: (() => void) | undefined
  now: () => Date
  logger: Logger
  metrics: Metrics
  onStop: Lifecycle['onStop']
}

/** What clients and gateways ask about the issuer and about tokens that are out, and who is told when they end. */
export const openProtocolEndpoints = (dependencies: ProtocolDependencies) => {
  const { database, envelope, keys, grants, verifier, events, proofs, originOf, issuer, now } = dependencies
  const { authenticateClient, indicator, onRevocations, logger, metrics, onStop } = dependencies
  const notifier = createNotifier({ database, logger, channel: revocationChannel })
  onStop('revocation notifier', () => notifier.close())
  if (onRevocations) notifier.onNotify(onRevocations)
  const logouts = startLogouts({
    ...{ database, envelope, now, logger },
    tokens: createLogoutTokenMint({ keys, issuer }),
  })
  // Whatever ends an authorization is in the feed too.
  notifier.onNotify(logouts.wake)
  onStop('logouts', () => logouts.close())
  const feed = createRevocationFeed({ database, notifier, logger })
  onStop('revocation feed', () => feed.close())
  const authenticate = createAuthenticateRequest({ query: database.query, authenticateClient, indicator })
  return {
    introspection: createIntrospectionEndpoint({ database, authenticate, verifier, issuer, logger, metrics }),
    revocation: createRevocationEndpoint({ database, authenticate, verifier, events, originOf, logger }),
    revocations: createFeedEndpoint({ feed, authenticate, logger }),
    userinfo: createUserinfoEndpoint({ query: database.query, proofs, logger }),
    jwks: createJwksEndpoint({ keys }),
    metadata: createMetadataEndpoint({ issuer, grants, idTokenAlgorithms: keys.idTokenAlgorithms }),
  }
}
