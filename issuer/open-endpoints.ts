import type { IncomingMessage } from 'node:http'
import { noMessages } from '../deliveries/messages/settings.ts'
import { outcomesChannel } from '../deliveries/outcome-notice-store.ts'
import { createNotifier } from '../events/notifier.ts'
import { systemClock } from '../platform/clock.ts'
import { createEnvelope } from '../platform/envelope.ts'
import { createTargetPolicy } from '../platform/http/outbound.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import { StartupError } from '../platform/startup-error.ts'
import { createAuthenticateAccount } from './account/api/bearer.ts'
import { accountRoutes } from './account/api/index.ts'
import { createAccountOperations } from './account/operations/index.ts'
import { createManagementApi } from './api/mount.ts'
import { issuerRoutes } from './api/routes.ts'
import { consoleAlone, createIssuerApp } from './app.ts'
import { createTokenAudit } from './base/audit/token-audit.ts'
import { createClientAddress, createIsFromProxy } from './base/client-address.ts'
import { createHmacs } from './base/hmac-keys-store.ts'
import { createIdempotency } from './base/idempotency.ts'
import { managementScopesOfUser } from './base/management-scope-store.ts'
import { createMutate } from './base/mutate.ts'
import { createLimits, rateLimitDefaults } from './base/rate-limits/rate-limits.ts'
import { createCaptcha } from './captcha/captcha.ts'
import { captchaDefaults } from './captcha/captcha-settings.ts'
import { createCustomClaims } from './claims/claims.ts'
import { createClaimsScriptStore } from './claims/claims-script-store.ts'
import type { ClaimsSandbox } from './claims/sandbox/sandbox.ts'
import { createFederation } from './connectors/federation.ts'
import { consoleDefaults, consoleUrlOf } from './console/console-settings.ts'
import { createEventFeed } from './directory/events/feed.ts'
import { startReplayJob } from './directory/hooks/replay-job.ts'
import { createNotices } from './directory/notices/notices.ts'
import { createLastUse } from './directory/personal-access-tokens/last-use.ts'
import { createSettings } from './directory/sign-in-experience/settings.ts'
import { settingsChannel } from './directory/sign-in-experience/settings-revision-store.ts'
import type { PasswordHasher } from './directory/users/password.ts'
import { openBreachedPasswords } from './directory/users/password-policy/breached/open-breached-passwords.ts'
import { createPasswordRules } from './directory/users/password-policy/password-rules.ts'
import { createSignInPolicy } from './interaction/sign-in-policy.ts'
import type { IssuerOptions } from './main.ts'
import { bootstrap } from './maintenance/bootstrap.ts'
import { startExpiry } from './maintenance/expiry.ts'
import { startImpersonationNotices } from './maintenance/impersonation-notices.ts'
import { createRetentionJob, retentionDefaults } from './maintenance/retention.ts'
import { createMessages } from './messages/messages.ts'
import { createNotifyOwner } from './messages/owner-notices.ts'
import { openBrowserEndpoints } from './open-browser-endpoints.ts'
import { openConsole } from './open-console.ts'
import { openProtocolEndpoints } from './open-protocol-endpoints.ts'
import { createLocaleOf, mailLookFrom } from './pages/index.ts'
import { createAuthenticateClient } from './protocol/clients/authenticate-client.ts'
import { createCors } from './protocol/cors.ts'
import { createGrants } from './protocol/grants.ts'
import { createIssueTokens } from './protocol/issue-tokens.ts'
import { createJwksEndpoint } from './protocol/jwks.ts'
import { createTokenEndpoint } from './protocol/token-endpoint.ts'
import { createAccessTokenMint, createAccessTokenVerifier } from './tokens/access-token.ts'
import { createProofs } from './tokens/dpop/proofs.ts'
import { createIdTokenMint } from './tokens/id-token.ts'
import { signingKeysChannel } from './tokens/keys/key-store.ts'
import { createSigningKeys } from './tokens/keys/signing-keys.ts'
import { requireActive } from './tokens/revocations/require-active.ts'
import { createImpersonationPolicy } from './tokens/subject-tokens/impersonation-policy.ts'

/** Every part of the issuer, made and handed to those that need it. */
export const openEndpoints = async (
  options: IssuerOptions & {
    baseUrl: string
    sandbox: ClaimsSandbox
    passwords: PasswordHasher
    onStop: Lifecycle['onStop']
  },
) => {
  const { config, database, events, logger, metrics, baseUrl, sandbox, passwords, onStop, now = systemClock } = options
  const issuer = `${baseUrl}/oidc`
  const indicator = `${baseUrl}/api`
  const indicators = [indicator, ...config.managementApiIndicators]
  const envelope = createEnvelope({ current: config.keyEncryptionKey, previous: config.previousKeyEncryptionKey })

  const consoleSettings = config.console ?? consoleDefaults
  const consoleUrl = consoleUrlOf(consoleSettings, baseUrl)
  const { gatewaysAudience = `${baseUrl}/inspection` } = consoleSettings
  if (indicators.includes(gatewaysAudience)) {
    throw new StartupError(
      'CONSOLE_GATEWAYS_AUDIENCE is the Management API: tokens for gateways would be good for it.',
      {
        hint: 'Give gateways an inspection.audience of their own.',
      },
    )
  }

  const algorithm = config.signingAlgorithm
  const keyNotifier = createNotifier({ database, logger, channel: signingKeysChannel })
  onStop('signing-key notifier', () => keyNotifier.close())
  const keys = await createSigningKeys({ database, envelope, algorithm, notifier: keyNotifier, logger })
  onStop('signing keys', () => keys.close())
  const audit = createTokenAudit({ database, logger })
  onStop('token audit', () => audit.close())
  const lastUse = createLastUse({ database, logger })
  onStop('last use of personal access tokens', () => lastUse.close())
  const credentials = await bootstrap({
    database,
    indicators,
    clientId: config.bootstrapClientId,
    clientSecret: config.bootstrapClientSecret?.reveal(),
    consoleUrl,
  })

  const settingsNotifier = createNotifier({ database, logger, channel: settingsChannel })
  onStop('settings notifier', () => settingsNotifier.close())
  const settings = await createSettings({ database, notifier: settingsNotifier, logger })
  onStop('settings', () => settings.close())

  const mint = createAccessTokenMint({ keys, issuer })
  const verifier = createAccessTokenVerifier({ keys, issuer, now })
  const policy = createImpersonationPolicy({ policies: options.policies, logger })
  const signInPolicy = await createSignInPolicy({
    policies: options.policies,
    shipped: options.shippedPolicies,
    shadow: options.signInShadow,
    logger,
    metrics,
  })
  const claimsScripts = createClaimsScriptStore(envelope)
  // Now rather than at the first token.
  if ((await claimsScripts.list(database.query)).length > 0) await sandbox.start()
  const claims = createCustomClaims({ database, store: claimsScripts, sandbox, logger, metrics })
  const grants = createGrants({
    database,
    verifier,
    policy,
    claims,
    events,
    audit,
    lastUse,
    refreshTokenLeeway: config.refreshTokenLeeway,
    endsWithActor: () => settings.experience().impersonationEndsWithActor,
  })
  const hmac = await createHmacs(database, envelope)
  const proofs = createProofs({ query: database.query, hmac, baseUrl, now })
  const breached = await openBreachedPasswords(config.breachedPasswords ?? {}, { audit })
  onStop('breached passwords', () => breached.close())
  const passwordRules = createPasswordRules({ experience: settings.experience, breached })
  const mutate = createMutate({ knex: database.knex, events })
  const clientAddress = createClientAddress(config.trustedProxies)
  const originOf = (request: IncomingMessage) => ({
    ip: clientAddress(request),
    userAgent: request.headers['user-agent'],
  })

  const limits = createLimits({
    query: database.query,
    limits: config.rateLimits ?? rateLimitDefaults,
    now,
    metrics,
  })

  const captchaSettings = config.captcha ?? captchaDefaults
  const captcha = createCaptcha({ query: database.query, hmac, settings: captchaSettings, logger, metrics, now })
  onStop('captcha', () => captcha.close())
  const messageConfig = config.messages ?? noMessages
  const federation = createFederation({
    ...{ database, envelope, experience: settings.experience, memory: settings.memory, now },
    outbound: { allowedNetworks: messageConfig.allowedNetworks },
    mocks: messageConfig.mockFolder !== undefined,
  })
  onStop('identity providers', () => federation.close())
  const messages = createMessages({
    ...{ query: database.query, senderOf: settings.sender, envelope, hmac, config: messageConfig, baseUrl, events },
    looks: {
      ofIssuer: () => mailLookFrom(settings.experience(), undefined, baseUrl),
      ofApplication: async (clientId) =>
        mailLookFrom(settings.experience(), await settings.ofApplication(clientId), baseUrl),
    },
  })
  const notifyOwner = createNotifyOwner({
    messages,
    fallbackLanguage: () => settings.experience().languageInfo.fallbackLanguage,
    logger,
  })
  const replayJob = startReplayJob({ database, logger })
  onStop('replays of events', () => replayJob.close())
  const eventFeed = createEventFeed(database)
  onStop('event feed', () => eventFeed.close())
  const notices = createNotices({
    feed: eventFeed,
    hearOutcomes: () => createNotifier({ database, logger, channel: outcomesChannel }),
  })
  onStop('notices', () => notices.close())
  const impersonationNotices = startImpersonationNotices({
    ...{ database, feed: eventFeed, notifyOwner, logger },
    isOn: () => settings.experience().notifyImpersonation,
  })
  onStop('notices of impersonation', () => impersonationNotices.close())
  const account = createAccountOperations({
    ...{
      database,
      federation,
      mutate,
      audit,
      envelope,
      hmac,
      messages,
      notifyOwner,
      passwords,
      passwordRules,
      settings,
      baseUrl,
      now,
    },
    localeOf: createLocaleOf(settings.experience),
  })
  const managementRoutes = issuerRoutes({
    database,
    passwords,
    hmac,
    mutate,
    indicators,
    now,
    audit,
    policy,
    verifier,
    subjectTokenTtl: config.subjectTokenTtl,
    envelope,
    targets: createTargetPolicy(config.webhookTargets),
    baseUrl,
    replaysWaiting: replayJob.wake,
    eventFeed,
    notices,
    claimsScripts,
    sandbox,
    issuer,
    keys,
    algorithm,
    settings,
    logger,
    notifyOwner,
    messageConfig,
    testMessages: messages,
    federation,
  })
  const management = createManagementApi({
    routes: [...managementRoutes, ...accountRoutes(account)],
    authenticateAccount: createAuthenticateAccount({ query: database.query, verifier }),
    verify: async (token) => requireActive(database.query, await verifier.verify(token, { audience: indicators })),
    indicators,
    proofs,
    baseUrl,
    clientAddress,
    now,
    mutate,
    limitClient: limits.managementRequestBy,
    scopesOfUser: (id) => managementScopesOfUser(database.knex, indicators, id),
    idempotency: createIdempotency({ knex: database.knex, envelope }),
    query: database.query,
    logger,
  })
  const authenticateClient = createAuthenticateClient({
    query: database.query,
    issuer,
    limits,
    addressOf: clientAddress,
    now,
  })
  const mintIdToken = createIdTokenMint({ keys, issuer })
  const issueTokens = createIssueTokens({ database, grants, mint, mintIdToken, now })
  const token = createTokenEndpoint({ issueTokens, authenticateClient, limits, proofs, originOf, logger, metrics })
  const jwks = createJwksEndpoint({ keys })
  const console =
    consoleUrl === undefined
      ? undefined
      : openConsole({
          ...{
            database,
            envelope,
            events,
            issueTokens,
            verifier,
            management,
            baseUrl,
            consoleUrl,
            originOf,
            now,
            logger,
            mint,
            onStop,
          },
          gatewaysAudience,
          gateways: () => [
            ...(consoleSettings.gateways ?? []).map((gateway) => ({ ...gateway, audience: gatewaysAudience })),
            ...(options.console?.gateways?.() ?? []),
          ],
          ...{ hmac, issuer, jwks, keys, mutate, passwords, passwordRules, settings },
          isFromProxy: createIsFromProxy(config.trustedProxies),
          folder: options.console?.folder,
          port: consoleSettings.port,
        })
  const protocolEndpoints = openProtocolEndpoints({
    ...{ database, envelope, keys, grants, verifier, events, authenticateClient, proofs, originOf },
    ...{ issuer, indicator, now, logger, metrics, onStop },
    onRevocations: options.onRevocations,
  })
  const { retention = retentionDefaults } = config
  const retentionJob = createRetentionJob({ database, retention, logger, metrics })
  onStop('retention', () => retentionJob.close())
  retentionJob.start()
  const expiry = startExpiry({
    database,
    events,
    refreshTokenLeeway: config.refreshTokenLeeway,
    logger,
    metrics,
  })
  onStop('expiry', () => expiry.close())
  const browserEndpoints = await openBrowserEndpoints({
    database,
    envelope,
    hmac,
    messages,
    notifyOwner,
    signInPolicy,
    captcha,
    federation,
    keys,
    passwords,
    passwordRules,
    events,
    audit,
    account,
    settings,
    authenticateClient,
    limits,
    proofs,
    clientAddress,
    originOf,
    isFromProxy: createIsFromProxy(config.trustedProxies),
    issuer,
    baseUrl,
    interactionsPerAddress: config.interactionsPerAddress,
    now,
    logger,
    metrics,
  })
  const cors = createCors({ query: database.query, logger })
  const endpoints = {
    token,
    management,
    ...protocolEndpoints,
    ...browserEndpoints,
  }
  const isOnIssuer = consoleSettings.port === undefined
  return {
    handler: createIssuerApp({ ...endpoints, ...(console && isOnIssuer && { console }) }, { cors, logger }),
    ...(console && !isOnIssuer && { consoleHandler: consoleAlone(console) }),
    consoleUrl,
    bootstrap: credentials,
  }
}
