import * as oauth from 'oauth4webapi'
import { FederationError, type FederationFault } from './federation-error.ts'

/** Part of the exchange that went wrong, and what it means when nothing tells more. */
const stages = {
  callback: ['invalid_response', 'The answer at the callback was refused'],
  token: ['invalid_id_token', 'The answer of the token endpoint was refused'],
  signature: ['invalid_id_token', 'The signature of the ID token was refused'],
  userinfo: ['subject_mismatch', 'The answer of the userinfo endpoint was refused'],
} as const satisfies Record<string, readonly [FederationFault, string]>

// The provider answered, but not with what it should have (OAuth 2.0 error bodies apart).
const unusable = new Set<unknown>([oauth.RESPONSE_IS_NOT_CONFORM, oauth.RESPONSE_IS_NOT_JSON, oauth.PARSE_ERROR])

/** RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6. */
const oauthFaults: Readonly<Record<string, FederationFault>> = {
  access_denied: 'denied',
  consent_required: 'denied',
  interaction_required: 'denied',
  login_required: 'denied',
  invalid_client: 'misconfigured',
  unauthorized_client: 'misconfigured',
  invalid_grant: 'invalid_response',
  server_error: 'unavailable',
  temporarily_unavailable: 'unavailable',
  // GitHub's.
  bad_verification_code: 'invalid_response',
  incorrect_client_credentials: 'misconfigured',
  redirect_uri_mismatch: 'misconfigured',
}

/** The library's errors carry tokens and claims along, so only their fixed texts go on. */
const textOf = (error: unknown) => (error instanceof oauth.OperationProcessingError ? `: ${error.message}` : '')

const faultOf = (error: unknown): FederationFault | undefined => {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError)
    return Object.hasOwn(oauthFaults, error.error) ? oauthFaults[error.error] : 'provider_error'
  if (error instanceof oauth.WWWAuthenticateChallengeError) return 'misconfigured'
  if (error instanceof oauth.OperationProcessingError && unusable.has(error.code)) return 'unavailable'
  return undefined
}

export const inStage = async <Result>(
  stage: keyof typeof stages,
  work: () => Promise<Result> | Result,
): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof FederationError) throw error
    const [usual, text] = stages[stage]
    throw new FederationError(faultOf(error) ?? usual, `${text}${textOf(error)}.`)
  }
}
