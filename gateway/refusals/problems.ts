import { type ProblemTable, problemsOf } from '../../platform/problem.ts'

/**
 * Every error that a caller of the gateway may see: `code → status, title`. `docs/errors.md` has them too; a test keeps
 * the two in step.
 */
export const problems = {
  invalid_request: [400, 'The request cannot be read in exactly one way.'],
  not_found: [404, 'No route matches this request.'],
  request_timeout: [408, 'The request took too long to arrive.'],
  client_too_slow: [408, 'The client took the answer too slowly.'],
  rules_changed: [412, 'The file has changed since it was read.'],
  rules_refused: [422, 'The rules do not compile, or their tests fail.'],
  content_too_large: [413, 'The request body is too large.'],
  unsupported_media_type: [415, 'The request body is of a type that is not read here.'],
  uri_too_long: [414, 'The request target is too long.'],
  upgrade_required: [426, 'The WebSocket protocol is spoken here in version 13 only.'],
  header_fields_too_large: [431, 'The request has too many or too large header fields.'],
  token_missing: [401, 'An access token is needed.'],
  invalid_token: [401, 'The access token is not valid.'],
  invalid_dpop_proof: [401, 'The DPoP proof is not valid.'],
  use_dpop_nonce: [401, 'The DPoP proof needs a nonce of this gateway.'],
  insufficient_scope: [401, 'The access token does not carry the needed scope.'],
  insufficient_user_authentication: [401, 'The user must sign in again, or in a stronger way.'],
  impersonation_denied: [403, 'This cannot be done while acting for somebody.'],
  origin_not_allowed: [403, 'Pages of this origin may not open a WebSocket here.'],
  policy_denied: [403, 'The policy refused this request.'],
  policy_error: [403, 'The policy gave no usable decision.'],
  policy_unavailable: [503, 'The policy could not be asked in time.'],
  body_unavailable: [500, 'The request body that the policy needs was not handed over.'],
  rate_limited: [429, 'Too many requests.'],
  limits_unavailable: [503, 'It cannot be known whether the rate limit allows this request.'],
  keys_unavailable: [503, 'The keys of the token issuer cannot be obtained.'],
  issuer_unavailable: [503, 'The token issuer cannot be reached.'],
  dpop_unavailable: [503, 'It cannot be known whether the DPoP proof was used before.'],
  revocations_unavailable: [503, 'It cannot be known whether the token was revoked.'],
  upstream_unavailable: [502, 'The upstream cannot be reached.'],
  upstream_protocol_error: [502, 'The upstream gave an invalid answer.'],
  upstream_timeout: [504, 'The upstream did not answer in time.'],
  'server.error': [500, 'Something went wrong on our side.'],
  'server.unavailable': [503, 'The service is temporarily unavailable.'],
} as const satisfies ProblemTable

export type ProblemCode = keyof typeof problems

export const problem = problemsOf(problems)
