import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { OfferedConnector } from './connectors/federation.ts'
import type { AccountFederation } from './interaction/account-federation.ts'
import type { AuthorizationClient } from './interaction/authorization-client.ts'
import { createInteractions, type Interactions } from './interaction/interactions.ts'
import { createInteractionOperations, type InteractionOperationsDependencies } from './interaction/operations.ts'
import type { VisitorOf } from './interaction/visitor.ts'
import type { Brandings, LocaleOf } from './pages/index.ts'
import { type CallbackDependencies, createCallbackEndpoint } from './sign-in/callback-endpoint.ts'
import { createDeviceEndpoint } from './sign-in/device/device-endpoint.ts'
import { createExperienceEndpoint } from './sign-in/experience/experience-endpoint.ts'
import type { SignInPagesOf } from './sign-in/experience/origins.ts'
import { createResumeEndpoint } from './sign-in/experience/resume-endpoint.ts'
import { createSignInEndpoint, type PageEndpoint } from './sign-in/sign-in-endpoint.ts'

export interface SignInDependencies extends InteractionOperationsDependencies {
  visitorOf: VisitorOf
  /** Pages of signing in that are not ours. Absent: there are none. */
  signInPagesOf?: SignInPagesOf
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  /** What operators put on pages. */
  brandings: Brandings
  localeOf: LocaleOf
  /** Answers that another site posted. Absent: none is taken. */
  keptPosts?: CallbackDependencies['keptPosts']
  logger: Logger
  metrics: Metrics
}

export interface SignInEndpoints {
  interactions: Interactions
  /** For the account pages. */
  accountFederation: AccountFederation & { offered(client: AuthorizationClient): Promise<readonly OfferedConnector[]> }
  signInEndpoint: PageEndpoint
  /** `/api/experience/…` */
  experienceEndpoint: PageEndpoint
  /** `/device` */
  deviceEndpoint: PageEndpoint
  /** `GET /oidc/auth/<id>` */
  resumeEndpoint: PageEndpoint
  /** `GET|POST /callback/<connector>` */
  callbackEndpoint: PageEndpoint
}

/** Everything between an authorization request and its answer. */
export const openSignIn = async (dependencies: SignInDependencies): Promise<SignInEndpoints> => {
  const { database, cookies, hmac, settings, visitorOf, brandings, localeOf, baseUrl, logger, metrics } = dependencies
  const { interactionsPerAddress, issuer } = dependencies
  const { inTurn } = dependencies.passwords
  const { signInPagesOf = async () => null } = dependencies
  const { query } = database
  const operations = await createInteractionOperations(dependencies)
  const { standingOf, noteBlocked, federated, accountFederation } = operations
  const interactions = createInteractions({
    ...{ database, cookies, interactionsPerAddress, settings, standingOf, noteBlocked, federated, signInPagesOf },
  })
  return {
    accountFederation: { ...accountFederation, offered: (client) => federated.offered({ client }) },
    interactions,
    deviceEndpoint: createDeviceEndpoint({
      ...{ query, hmac, interactions, cookies, visitorOf, brandings, localeOf, baseUrl, logger },
      audit: dependencies.audit,
    }),
    signInEndpoint: createSignInEndpoint({
      ...{
        query,
        hmac,
        operations,
        inTurn,
        visitorOf,
        settings,
        brandings,
        localeOf,
        baseUrl,
        issuer,
        logger,
        metrics,
      },
      unknownSessionRedirectUrl: () => settings().unknownSessionRedirectUrl,
    }),
    experienceEndpoint: createExperienceEndpoint({
      ...{ query, operations, inTurn, visitorOf, settings, localeOf, signInPagesOf, baseUrl, logger, metrics },
    }),
    callbackEndpoint: createCallbackEndpoint({
      ...{ operations, keptPosts: dependencies.keptPosts, visitorOf, brandings, localeOf, baseUrl, logger, metrics },
    }),
    resumeEndpoint: createResumeEndpoint({ query, operations, visitorOf, localeOf, baseUrl, logger }),
  }
}
