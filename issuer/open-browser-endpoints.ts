import type { IncomingMessage } from 'node:http'
import type { Database } from '../platform/database/database.ts'
import type { Envelope } from '../platform/envelope.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { AccountOperations } from './account/operations/index.ts'
import { createAccountEndpoint } from './account/pages/account-endpoint.ts'
import type { TokenAudit } from './base/audit/token-audit.ts'
import type { RequestOrigin } from './base/client-address.ts'
import { createCookies } from './base/cookies.ts'
import type { Hmac } from './base/hmac-keys-store.ts'
import type { NotifyOwner } from './base/owner-notices.ts'
import type { Limits } from './base/rate-limits/rate-limits.ts'
import type { Captcha } from './captcha/captcha.ts'
import type { Federation } from './connectors/federation.ts'
import type { Settings } from './directory/sign-in-experience/settings.ts'
import type { PasswordHasher } from './directory/users/password.ts'
import type { PasswordRules } from './directory/users/password-policy/password-rules.ts'
import type { SignInPolicy } from './interaction/sign-in-policy.ts'
import { createVisitorOf } from './interaction/visitor.ts'
import type { Messages } from './messages/messages.ts'
import { openSignIn } from './open-sign-in.ts'
import { createAssetEndpoint, createBrandings, createLocaleOf } from './pages/index.ts'
import type { Endpoint } from './protocol/answers.ts'
import { createAuthorizationEndpoint } from './protocol/authorization/authorization-endpoint.ts'
import { createCheckDeviceRequest, createCheckRequest } from './protocol/authorization/checks.ts'
import { createPushedAuthorizationEndpoint } from './protocol/authorization/pushed-authorization-endpoint.ts'
import { createPushedRequests } from './protocol/authorization/pushed-requests.ts'
import type { AuthenticateClient } from './protocol/clients/authenticate-client.ts'
import { nearestIndicator } from './protocol/clients/token-request-store.ts'
import { createDeviceAuthorizationEndpoint } from './protocol/device-authorization/device-authorization-endpoint.ts'
import { createEndSessionEndpoints } from './protocol/end-session/end-session.ts'
import type { Proofs } from './tokens/dpop/proofs.ts'
import { createIdTokenHintVerifier } from './tokens/id-token-hint.ts'
import type { SigningKeys } from './tokens/keys/signing-keys.ts'

export interface BrowserDependencies {
  database: Database
  envelope: Envelope
  hmac: Hmac
  /** To people. */
  messages: Messages
  notifyOwner: NotifyOwner
  signInPolicy: SignInPolicy
  captcha: Captcha
  federation: Federation
  keys: SigningKeys
  passwords: PasswordHasher
  /** For people who choose one. */
  passwordRules: PasswordRules
  /** The publisher of the outbox. */
  events: { wake(): void }
  audit: TokenAudit
  /** What people do to their own accounts. */
  account: AccountOperations
  settings: Settings
  authenticateClient: AuthenticateClient
  limits: Limits
  proofs: Pick<Proofs, 'forNewToken'>
  clientAddress(request: IncomingMessage): string
  originOf(request: IncomingMessage): RequestOrigin
  /** Whether what its headers tell of the client is believed. */
  isFromProxy(request: IncomingMessage): boolean
  /** Of tokens and of discovery. */
  issuer: string
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Open interactions of one address; 0: any number. */
  interactionsPerAddress: number
  now: () => Date
  logger: Logger
  metrics: Metrics
}

export interface BrowserEndpoints {
  authorization: Endpoint
  pushedAuthorization: Endpoint
  /** Where devices ask. */
  deviceAuthorization: Endpoint
  /** Where their people enter the code. */
  device: Endpoint
  /** The pages of signing in. */
  signIn: Endpoint
  /** The pages of a person's account. */
  account: Endpoint
  /** Files of the pages. */
  assets: Endpoint
  /** For pages of signing in that are not ours. */
  experience: Endpoint
  /** Where those lead. */
  resume: Endpoint
  /** Where identity providers send browsers back to. */
  callback: Endpoint
  endSession: Endpoint
  confirmEndSession: Endpoint
}

/** What people meet with their browsers: from an authorization request to its answer, and signing out. */
export const openBrowserEndpoints = async (dependencies: BrowserDependencies): Promise<BrowserEndpoints> => {
  const { database, hmac, keys, settings, issuer, baseUrl, originOf, limits, logger, metrics } = dependencies
  const { query } = database
  const cookies = createCookies({ secure: baseUrl.startsWith('https:') })
  const visitorOf = createVisitorOf({ cookies, originOf, isFromProxy: dependencies.isFromProxy })
  const verifyIdTokenHint = createIdTokenHintVerifier({ keys, issuer })
  const pushedRequests = createPushedRequests({ query })
  const checkRequest = createCheckRequest({
    verifyIdTokenHint,
    nearestIndicator: (indicator) => nearestIndicator(query, indicator),
  })
  const brandings = createBrandings({ settings, logger })
  const localeOf = createLocaleOf(settings.experience)
  const { authenticateClient, clientAddress } = dependencies
  const {
    accountFederation,
    interactions,
    signInEndpoint,
    experienceEndpoint,
    resumeEndpoint,
    callbackEndpoint,
    deviceEndpoint,
  } = await openSignIn({
    ...dependencies,
    cookies,
    visitorOf,
    settings: settings.experience,
    brandings,
    signInPagesOf: async (clientId) =>
      (await settings.ofApplication(clientId))?.signInPages ?? settings.experience().signInPages,
    localeOf,
    sessionLimits: async () => settings.session(),
    policy: dependencies.signInPolicy,
    keptPosts: {
      async keep(parameters, { origin }) {
        await limits.storedRequestFrom?.(origin.ip)
        return pushedRequests.post(parameters)
      },
      // It belongs to no client and to no browser; what is in it does.
      take: async (id) => (await pushedRequests.use(id, { clientId: '', browser: '' }))?.parameters,
    },
  })

  return {
    authorization: createAuthorizationEndpoint({
      query,
      checkRequest,
      pushedRequests,
      interactions,
      brandings,
      localeOf,
      visitorOf,
      cookies,
      limits,
      issuer,
      logger,
      metrics,
    }),
    pushedAuthorization: createPushedAuthorizationEndpoint({
      query,
      authenticateClient,
      checkRequest,
      pushedRequests,
      limits,
      proofs: dependencies.proofs,
      addressOf: clientAddress,
      logger,
    }),
    deviceAuthorization: createDeviceAuthorizationEndpoint({
      ...{ query, hmac, authenticateClient, limits, baseUrl, logger },
      checkRequest: createCheckDeviceRequest({ nearestIndicator: (indicator) => nearestIndicator(query, indicator) }),
      addressOf: clientAddress,
    }),
    device: deviceEndpoint,
    signIn: signInEndpoint,
    account: createAccountEndpoint({
      ...{ query, hmac, interactions, cookies, visitorOf, brandings, localeOf, baseUrl, logger },
      operations: dependencies.account,
      federation: accountFederation,
      experience: settings.experience,
    }),
    assets: createAssetEndpoint({ query, brandings, logger }),
    experience: experienceEndpoint,
    resume: resumeEndpoint,
    callback: callbackEndpoint,
    ...createEndSessionEndpoints({
      database,
      events: dependencies.events,
      verifyIdTokenHint,
      pushedRequests,
      cookies,
      hmac,
      brandings,
      localeOf,
      baseUrl,
      originOf,
      limitStored: limits.storedRequestFrom,
      logger,
    }),
  }
}
