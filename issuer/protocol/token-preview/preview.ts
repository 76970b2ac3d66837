import type { Database } from '../../../platform/database/database.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import { consoleClientId } from '../../base/console-roles.ts'
import { requireFound } from '../../base/errors/not-found.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { CustomClaims } from '../../claims/claims.ts'
import { accessTokenPayload } from '../../tokens/access-token.ts'
import { grantTypes } from '../../tokens/grant-types.ts'
import { newSignInSid } from '../../tokens/sid.ts'
import { findTokenRequestFacts } from '../clients/token-request-store.ts'
import { signsPeopleIn } from '../grants/authorization/signs-people-in.ts'
import { organizationsScope } from '../grants/authorization/target.ts'
import { prepareCode } from '../grants/authorization-code/code-issue.ts'
import { clientCredentialsGrant } from '../grants/client-credentials.ts'
import type { PreparedToken, TokenRequest } from '../grants/grant.ts'
import { organizationAudience } from '../grants/organization.ts'
import { tokenRequestOf } from '../token-request.ts'
import { findImaginedFacts, findOrganizationScopes, findPreviewResources } from './preview-store.ts'

/** Which tokens somebody wants to know. */
export interface PreviewQuestion {
  applicationId: string
  /** Absent: the application asks for itself. */
  userId?: string | undefined
  organizationId?: string | undefined
  /** An indicator. Default: every resource, and the organization itself where one is named. */
  resource?: string | undefined
}

/** A token that would be issued, by its claims; or why there would be none. */
export interface TokenPreview {
  /** The `aud`. */
  audience: string
  claims?: Record<string, unknown>
  refused?: { error: string; reason: string | undefined; message: string }
}

export type PreviewTokens = (
  question: PreviewQuestion,
  origin: RequestOrigin,
) => Promise<{ tokens: TokenPreview[]; more: boolean }>

export interface PreviewDependencies {
  database: Pick<Database, 'query'>
  claims: CustomClaims
  /** The `iss` of tokens. */
  issuer: string
  now(): Date
}

/** Each may run a script. */
const mostTokens = 32
/** Where the client would prove one: its thumbprint is not known. */
const someKey = 'the-key-of-the-client'

/**
 * The tokens that a person would get who signed in now with a password, or that a machine would get, if the application
 * asked for every permission. The grants' own code makes them, up to where a token is signed: nothing is issued and
 * nothing is written. Throws 404.
 */
export const createPreviewTokens = ({ database, claims, issuer, now }: PreviewDependencies): PreviewTokens => {
  const { query } = database
  // What a grant would write about a refusal is the answer here.
  const audit = { record: () => {}, close: async () => {} }
  const machines = clientCredentialsGrant({ database, audit, claims })

  const ofMachine = (request: TokenRequest): Promise<PreparedToken> => {
    if (!machines.allows(request.client)) throw unauthorized('This application gets no tokens for itself.')
    return machines.prepare(undefined, request, undefined)
  }

  const ofPerson = async (request: TokenRequest, userId: string): Promise<PreparedToken> => {
    const { client, scopes, resource, organizationId } = request
    if (!signsPeopleIn(client)) throw unauthorized('Nobody signs in to this application.')
    const found = await findImaginedFacts(query, {
      ...{ id: newSignInSid(), userId, clientId: client.id, resource, organizationId },
      scopes: [organizationsScope, ...scopes],
      ...byPassword(userId, request.origin),
    })
    const facts = requireFound(found, userId)
    const attempt = { grantType: grantTypes.authorizationCode, request, facts }
    return prepareCode({ database, claims }, attempt, { digest: Buffer.alloc(0), nonce: null })
  }

  const claimsOf = async (request: TokenRequest, userId: string | undefined): Promise<Partial<TokenPreview>> => {
    try {
      const { token } = await (userId === undefined ? ofMachine(request) : ofPerson(request, userId))
      if ('opaque' in token) throw new Error('A token with an audience is no opaque one.')
      const cnf = request.client.dpopBoundAccessTokens ? { jkt: someKey } : undefined
      // As it would stand in the token, without members that have no value.
      return { claims: JSON.parse(JSON.stringify(accessTokenPayload({ ...token.claims, cnf }, issuer))) }
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error
      return { refused: { error: error.error, reason: error.reason, message: error.message } }
    }
  }

  return async ({ applicationId, userId, organizationId, resource }, origin) => {
    const resources = await findPreviewResources(query, resource, mostTokens + 1)
    if (resource !== undefined) requireFound(resources[0], resource)
    const all: { audience: string; resource: string | undefined; scopes: readonly string[] }[] = resources.map(
      ({ indicator, scopes }) => ({ audience: indicator, resource: indicator, scopes }),
    )
    if (resource === undefined && organizationId !== undefined) {
      const { indicator } = organizationAudience(organizationId)
      all.unshift({ audience: indicator, resource: undefined, scopes: await findOrganizationScopes(query) })
    }
    const wanted = all.slice(0, mostTokens)
    const tokens: TokenPreview[] = []
    // One after another: each may run a script.
    for (const { audience, ...target } of wanted) {
      const asked = { ...target, useDefaultResource: false }
      const found = await findTokenRequestFacts(query, { clientId: applicationId, ...asked })
      const facts = requireFound(applicationId === consoleClientId ? undefined : found, applicationId)
      const request = tokenRequestOf(query, { ...asked, organizationId, origin, jkt: undefined, now: now() }, facts)
      tokens.push({ audience, ...(await claimsOf(request, userId)) })
    }
    return { tokens, more: all.length > wanted.length }
  }
}

const unauthorized = (message: string) => new OAuthError('unauthorized_client', message)

/** As somebody would have signed in. */
const byPassword = (userId: string, { ip, userAgent = '' }: RequestOrigin) => ({
  amr: ['pwd'],
  acr: 'urn:surrogate:acr:basic' as const,
  interaction: {
    interactionEvent: 'SignIn' as const,
    userId,
    verificationRecords: [{ id: 'preview', type: 'Password', verified: true }],
    signInContext: { ip, userAgent },
  },
})
