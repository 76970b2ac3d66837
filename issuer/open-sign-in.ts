import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { TokenAudit } from './base/audit/token-audit.ts'
import type { Cookies } from './base/cookies.ts'
import type { Hmac } from './base/hmac-keys-store.ts'
import type { PasswordHasher } from './directory/users/password.ts'
import { createFinish } from './interaction/finish.ts'
import { createInteractions, type Interactions } from './interaction/interactions.ts'
import { createPasswordProofs } from './interaction/password-proof.ts'
import type { SessionLimits } from './interaction/sign-in-session.ts'
import type { VisitorOf } from './interaction/visitor.ts'
import type { Brandings } from './pages/index.ts'
import { createSignInEndpoint, type PageEndpoint } from './sign-in/sign-in-endpoint.ts'

export interface SignInDependencies {
  database: Database
  /** The publisher of the outbox. */
  events: { wake(): void }
  cookies: Cookies
  hmac: Hmac
  passwords: PasswordHasher
  audit: TokenAudit
  visitorOf: VisitorOf
  /** Of tokens and of discovery. */
  issuer: string
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  /** What operators put on pages. */
  brandings: Brandings
  /** Of new sessions. */
  sessionLimits: () => Promise<SessionLimits>
  logger: Logger
  metrics: Metrics
}

/** Everything between an authorization request and its answer. */
export const openSignIn = async ({
  database,
  events,
  cookies,
  hmac,
  passwords,
  audit,
  visitorOf,
  issuer,
  baseUrl,
  interactionsPerAddress,
  brandings,
  sessionLimits,
  logger,
  metrics,
}: SignInDependencies): Promise<{ interactions: Interactions; signInEndpoint: PageEndpoint }> => {
  const { query } = database
  const passwordProofs = await createPasswordProofs({ database, events, hmac, passwords, audit })
  const finish = createFinish({ database, events, cookies, issuer, sessionLimits })
  return {
    interactions: createInteractions({ database, cookies, interactionsPerAddress }),
    signInEndpoint: createSignInEndpoint({
      query,
      hmac,
      passwordProofs,
      finish,
      visitorOf,
      brandings,
      baseUrl,
      logger,
      metrics,
    }),
  }
}
