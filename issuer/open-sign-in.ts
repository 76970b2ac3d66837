import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createInteractions, type Interactions } from './interaction/interactions.ts'
import { createInteractionOperations, type InteractionOperationsDependencies } from './interaction/operations.ts'
import type { VisitorOf } from './interaction/visitor.ts'
import type { Brandings } from './pages/index.ts'
import { createSignInEndpoint, type PageEndpoint } from './sign-in/sign-in-endpoint.ts'

export interface SignInDependencies extends InteractionOperationsDependencies {
  visitorOf: VisitorOf
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  /** What operators put on pages. */
  brandings: Brandings
  logger: Logger
  metrics: Metrics
}

/** Everything between an authorization request and its answer. */
export const openSignIn = async (
  dependencies: SignInDependencies,
): Promise<{ interactions: Interactions; signInEndpoint: PageEndpoint }> => {
  const { database, cookies, hmac, settings, visitorOf, brandings, baseUrl, interactionsPerAddress, logger, metrics } =
    dependencies
  const { query } = database
  const operations = await createInteractionOperations(dependencies)
  return {
    interactions: createInteractions({ database, cookies, interactionsPerAddress, settings }),
    signInEndpoint: createSignInEndpoint({
      ...{ query, hmac, operations, visitorOf, settings, brandings, baseUrl, logger, metrics },
    }),
  }
}
