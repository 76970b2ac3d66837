import type { IncomingMessage, RequestListener } from 'node:http'
import type { Database } from '../platform/database/database.ts'
import type { Envelope } from '../platform/envelope.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { RequestOrigin } from './base/client-address.ts'
import { consoleClientId } from './base/console-roles.ts'
import { createCookies } from './base/cookies.ts'
import { OAuthError } from './base/errors/problems.ts'
import type { Hmac } from './base/hmac-keys-store.ts'
import type { Mutate } from './base/mutate.ts'
import { type ConsoleEndpoint, createConsoleEndpoint } from './console/console-endpoint.ts'
import { createConsoleCookies } from './console/cookies.ts'
import { createConsoleFiles } from './console/files.ts'
import { createGatewayClient } from './console/gateways/client.ts'
import { createFanOut } from './console/gateways/fan-out.ts'
import type { Gateway } from './console/gateways/gateways.ts'
import { createGatewaysEndpoint } from './console/gateways/gateways-endpoint.ts'
import { createJoinedStreams } from './console/gateways/joined-stream.ts'
import { createRecordChange } from './console/gateways/recorded-change.ts'
import { createTokenFor } from './console/gateways/tokens.ts'
import { createImpersonationExport } from './console/impersonation-export.ts'
import { type ConsoleClient, type ConsoleTokens, createConsoleSessions } from './console/sessions.ts'
import { createSetupCalls } from './console/setup.ts'
import { createConsoleSignIn } from './console/sign-in.ts'
import type { Settings } from './directory/sign-in-experience/settings.ts'
import { createFactors, relyingPartyOf } from './directory/users/factors/index.ts'
import type { PasswordHasher } from './directory/users/password.ts'
import type { PasswordRules } from './directory/users/password-policy/password-rules.ts'
import { createVisitorOf } from './interaction/visitor.ts'
import { createSignOut } from './protocol/end-session/sign-out.ts'
import type { IssueTokens } from './protocol/issue-tokens.ts'
import type { AccessTokenVerifier, MintAccessToken } from './tokens/access-token.ts'
import { grantTypes } from './tokens/grant-types.ts'
import type { SigningKeys } from './tokens/keys/signing-keys.ts'

export interface ConsoleDependencies {
  database: Database
  envelope: Envelope
  hmac: Hmac
  mutate: Mutate
  passwords: PasswordHasher
  passwordRules: PasswordRules
  settings: Settings
  /** The publisher of the outbox. */
  events: { wake(): void }
  issueTokens: IssueTokens
  verifier: AccessTokenVerifier
  mint: MintAccessToken
  keys: Pick<SigningKeys, 'active'>
  /** The `iss` of tokens. */
  issuer: string
  /** Those that the console asks. */
  gateways(): readonly Gateway[]
  gatewaysAudience: string
  management: RequestListener
  jwks: RequestListener
  /** Where the built console is. */
  folder: string | undefined
  baseUrl: string
  consoleUrl: string
  /** Of a listener of its own. */
  port: number | undefined
  originOf(request: IncomingMessage): RequestOrigin
  /** Whether what its headers tell of the client is believed. */
  isFromProxy(request: IncomingMessage): boolean
  now(): Date
  logger: Logger
  onStop: Lifecycle['onStop']
}

/** The administration console, as a client of the issuer in the issuer's own process. */
export const openConsole = (dependencies: ConsoleDependencies): ConsoleEndpoint => {
  const { database, envelope, hmac, mutate, passwords, passwordRules, settings, events, folder } = dependencies
  const { baseUrl, consoleUrl, port, originOf, isFromProxy, now, logger } = dependencies
  const indicator = `${baseUrl}/api`
  const client = createConsoleClient(dependencies, indicator)
  const cookies = createConsoleCookies({ secure: consoleUrl.startsWith('https:'), port })
  const sessions = createConsoleSessions({ database, envelope, client, indicator })
  const signOut = createSignOut({ database, events, logger })
  const issuerCookies = createCookies({ secure: baseUrl.startsWith('https:') })
  return createConsoleEndpoint({
    sessions,
    cookies,
    signIn: createConsoleSignIn({ envelope, cookies, sessions, client, baseUrl, consoleUrl, now }),
    files: folder === undefined ? undefined : createConsoleFiles(folder),
    management: dependencies.management,
    jwks: dependencies.jwks,
    ...openGateways(dependencies),
    signOut: ({ sessionId, userId }, origin) =>
      signOut({
        session: { id: sessionId, userId },
        clientId: consoleClientId,
        browser: undefined,
        everywhere: false,
        wasAsked: false,
        origin,
      }),
    calls: createSetupCalls({
      ...{ database, mutate, passwords, passwordRules, settings, cookies, client, sessions, baseUrl, consoleUrl },
      factors: createFactors({ envelope, hmac }),
      relyingParty: relyingPartyOf(baseUrl, [consoleUrl]),
      sessionLimits: settings.session,
      visitorOf: createVisitorOf({ cookies: issuerCookies, originOf, isFromProxy }),
      issuerCookies,
    }),
    baseUrl,
    consoleUrl,
    originOf,
    logger,
  })
}

const openGateways = (dependencies: ConsoleDependencies) => {
  const { database, keys, issuer, mint, gateways, gatewaysAudience, originOf, now, onStop } = dependencies
  const client = createGatewayClient()
  onStop('connections to gateways', client.close)
  const tokenFor = createTokenFor({ mint, now })
  const streams = createJoinedStreams({ client, tokenFor, now })
  onStop('streams of gateways', streams.close)
  const { list } = createFanOut({ client, tokenFor })
  return {
    gateways: createGatewaysEndpoint({
      ...{ gateways, client, tokenFor, streams, originOf, now },
      audience: gatewaysAudience,
      recordChange: createRecordChange(database.query),
    }),
    exportImpersonation: createImpersonationExport({
      ...{ database, keys, issuer, now },
      decisionsOf: (session, sid) => list(gateways(), session, { sid, limit: 1_000 }),
    }),
  }
}

/** Its requests never leave the process, so it needs no secret, and nobody else can make them. */
const createConsoleClient = (
  { issueTokens, verifier, consoleUrl }: Pick<ConsoleDependencies, 'issueTokens' | 'verifier' | 'consoleUrl'>,
  indicator: string,
): ConsoleClient => {
  const ask = async (form: Record<string, string>, origin: RequestOrigin): Promise<ConsoleTokens> => {
    const issued = await issueTokens({
      parameters: new Map(Object.entries({ ...form, resource: indicator })),
      origin,
      proof: undefined,
      async authenticate(find) {
        const facts = await find(consoleClientId)
        if (!facts) throw new OAuthError('invalid_client', 'There is no console.')
        // A script that fails must not lock out whoever could mend it.
        return { ...facts, claimsScripts: undefined }
      },
    })
    const { access_token: accessToken, refresh_token: refreshToken } = issued
    const claims = await verifier.verify(accessToken, { audience: [indicator] })
    if (refreshToken === undefined || claims.sid === undefined)
      throw new OAuthError('invalid_grant', 'The console got no refresh token.')
    return {
      accessToken,
      refreshToken,
      userId: claims.sub,
      authorizationId: claims.sid,
      scopes: issued.scope.split(' ').filter((name) => name !== ''),
      expiresAt: new Date(claims.exp * 1_000),
    }
  }
  return {
    redeem: (code, verifier, origin) =>
      ask(
        {
          grant_type: grantTypes.authorizationCode,
          code,
          code_verifier: verifier,
          redirect_uri: `${consoleUrl}/console/callback`,
        },
        origin,
      ),
    refresh: (refreshToken, origin) =>
      ask({ grant_type: grantTypes.refreshToken, refresh_token: refreshToken }, origin),
  }
}
