import { OAuthError } from '../../../base/errors/problems.ts'
import type { Parameters } from '../../requests/parameters.ts'

export const tokenTypes = {
  accessToken: 'urn:ietf:params:oauth:token-type:access_token',
  /** The older name for subject tokens of the Management API; such a token only. */
  impersonation: 'urn:logto:token-type:impersonation_token',
  personalAccessToken: 'urn:logto:token-type:personal_access_token',
} as const

/** RFC 8693 §2.1 */
export interface ExchangeRequest {
  subjectToken: string
  subjectTokenType: string
  actorToken: string | undefined
}

const subjectTokenTypes: readonly string[] = Object.values(tokenTypes)

const invalid = (description: string) => new OAuthError('invalid_request', description)

export const readExchangeRequest = (parameters: Parameters): ExchangeRequest => {
  const subjectToken = parameters.get('subject_token')
  const subjectTokenType = parameters.get('subject_token_type')
  if (subjectToken === undefined || subjectTokenType === undefined) {
    const missing = ['subject_token', 'subject_token_type'].filter((name) => !parameters.has(name))
    throw invalid(`Missing required parameter: ${missing.join(', ')}.`)
  }
  if (!subjectTokenTypes.includes(subjectTokenType)) {
    throw invalid('The subject_token_type is not supported.')
  }
  const actorToken = parameters.get('actor_token')
  const actorTokenType = parameters.get('actor_token_type')
  // RFC 8693 §2.1: "REQUIRED when the actor_token parameter is present … MUST NOT be included when … not present."
  if ((actorToken === undefined) !== (actorTokenType === undefined)) {
    throw invalid('The parameters actor_token and actor_token_type come together.')
  }
  if (actorTokenType !== undefined && actorTokenType !== tokenTypes.accessToken) {
    throw invalid('The actor_token_type is not supported.')
  }
  if ((parameters.get('requested_token_type') ?? tokenTypes.accessToken) !== tokenTypes.accessToken) {
    throw invalid('Only access tokens can be requested.')
  }
  if (parameters.has('audience')) throw invalid('The parameter audience is not supported; use resource.')
  return { subjectToken, subjectTokenType, actorToken }
}
