import { OAuthError, type OAuthErrorCode } from '../../base/errors/problems.ts'
import { type AuthorizationRequest, authorizationRequest } from '../../interaction/authorization-request.ts'
import type { PageProblem } from '../../pages/index.ts'
import type { VerifyIdTokenHint } from '../../tokens/id-token-hint.ts'
import {
  codeAsked,
  echoedValues,
  keyThumbprint,
  knownResponseMode,
  proofKey,
  type Recipient,
  recipientOf,
} from './answer-checks.ts'
import { type Asked, invalid } from './asked.ts'
import { onlyValueOf } from './authorization-parameters.ts'
import {
  clientOfDevices,
  clientOfPeople,
  clientWithBrowser,
  oneClientId,
  registeredClient,
  registeredRedirectUri,
  sentAheadWhereRequired,
} from './client-checks.ts'
import { knownPrompts, ownIdTokenHint, shortLoginHint, wholeMaxAge, wishes } from './person-checks.ts'
import { knownScopes, registeredResources } from './target-checks.ts'

interface Check {
  /** What it looks at, for the log. */
  name: string
  /** Who is told of a refusal: the person by a page, or the client by a redirect. */
  refusal: PageProblem | 'redirect'
  /** Throws an `OAuthError`, or answers members of the checked request. */
  check(asked: Asked): Partial<AuthorizationRequest> | Promise<Partial<AuthorizationRequest>>
}

export interface CheckDependencies {
  verifyIdTokenHint: VerifyIdTokenHint
  /** The registered indicator that somebody may have meant. */
  nearestIndicator(indicator: string): Promise<string | undefined>
}

/**
 * What an authorization request must be (RFC 6749 §4.1.1, OpenID Connect Core §3.1.2.2), in this order. Nobody is sent
 * to an address before it is proven to be the client's (RFC 6749 §4.1.2.1, RFC 9700 §4.11).
 */
const checksOf = ({ verifyIdTokenHint, nearestIndicator }: CheckDependencies): readonly Check[] => [
  { name: 'client_id', refusal: 'invalid_request', check: oneClientId },
  { name: 'the client', refusal: 'invalid_client', check: registeredClient },
  { name: 'type of the application', refusal: 'unauthorized_client', check: clientOfPeople },
  { name: 'device flow', refusal: 'unauthorized_client', check: clientWithBrowser },
  { name: 'sent ahead', refusal: 'invalid_request_uri', check: sentAheadWhereRequired },
  { name: 'redirect_uri', refusal: 'invalid_redirect_uri', check: registeredRedirectUri },

  { name: 'repeated parameters', refusal: 'redirect', check: eachOnce },
  { name: 'request', refusal: 'redirect', check: withoutParameter('request', 'request_not_supported') },
  { name: 'request_uri', refusal: 'redirect', check: withoutParameter('request_uri', 'request_uri_not_supported') },
  { name: 'registration', refusal: 'redirect', check: withoutParameter('registration', 'registration_not_supported') },
  { name: 'response_type', refusal: 'redirect', check: codeAsked },
  { name: 'response_mode', refusal: 'redirect', check: knownResponseMode },
  { name: 'state, nonce', refusal: 'redirect', check: echoedValues },
  { name: 'code_challenge', refusal: 'redirect', check: proofKey },
  { name: 'dpop_jkt', refusal: 'redirect', check: keyThumbprint },
  { name: 'resource', refusal: 'redirect', check: registeredResources(nearestIndicator) },
  { name: 'scope', refusal: 'redirect', check: knownScopes },
  { name: 'prompt', refusal: 'redirect', check: knownPrompts },
  { name: 'max_age', refusal: 'redirect', check: wholeMaxAge },
  { name: 'login_hint', refusal: 'redirect', check: shortLoginHint },
  { name: 'id_token_hint', refusal: 'redirect', check: ownIdTokenHint(verifyIdTokenHint) },
  { name: 'wishes', refusal: 'redirect', check: wishes },
]

/** What a request of a device must be (RFC 8628 §3.1): it has no redirect URI, and gets its answer by asking for it. */
const checksOfDevices = ({ nearestIndicator }: Pick<CheckDependencies, 'nearestIndicator'>): readonly Check[] =>
  (
    [
      ['the client', registeredClient],
      ['device flow', clientOfDevices],
      ['resource', registeredResources(nearestIndicator)],
      ['scope', knownScopes],
      ['wishes', wishes],
      ['what it has not', () => ({ redirectUri: '', responseMode: 'query', prompts: ['login', 'consent'] })],
    ] as const
  ).map(([name, check]) => ({ name, refusal: 'invalid_request', check }) as Check)

export type Checked =
  | { request: AuthorizationRequest }
  | { check: string; error: OAuthError; recipient: Recipient }
  | { check: string; error: OAuthError; problem: PageProblem }

export type CheckRequest = (asked: Asked) => Promise<Checked>

/** Faults of ours, such as a database that is away, are thrown on. */
export const createCheckRequest = (dependencies: CheckDependencies): CheckRequest => checking(checksOf(dependencies))

export const createCheckDeviceRequest = (dependencies: Pick<CheckDependencies, 'nearestIndicator'>): CheckRequest =>
  checking(checksOfDevices(dependencies))

const checking =
  (checks: readonly Check[]): CheckRequest =>
  async (asked) => {
    const request: Partial<AuthorizationRequest> = {}
    for (const { name, refusal, check } of checks) {
      try {
        Object.assign(request, await check(asked))
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error
        const refused = { check: name, error }
        return refusal === 'redirect' ? { ...refused, recipient: recipientOf(asked) } : { ...refused, problem: refusal }
      }
    }
    return { request: authorizationRequest.parse(request) }
  }

// RFC 6749 §3.1. RFC 8707 §2 lets `resource` repeat.
const eachOnce = ({ parameters }: Asked) => {
  for (const [name, values] of parameters)
    if (name !== 'resource' && values.length > 1) throw invalid('A parameter is repeated.')
  return {}
}

const withoutParameter =
  (name: string, error: OAuthErrorCode) =>
  ({ parameters }: Asked) => {
    if (onlyValueOf(parameters, name) !== undefined)
      throw new OAuthError(error, `The parameter ${name} is not supported here.`)
    return {}
  }
