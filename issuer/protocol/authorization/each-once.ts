import { OAuthError } from '../../base/errors/problems.ts'
import type { Parameters } from '../requests/parameters.ts'
import { type AuthorizationParameters, onlyValueOf } from './authorization-parameters.ts'

/** The parameters that were sent once; throws for another that was repeated (RFC 6749 §3.1, RFC 8707 §2). */
export const eachOnce = (parameters: AuthorizationParameters): Parameters => {
  const single = new Map<string, string>()
  for (const [name, values] of parameters) {
    if (name !== 'resource' && values.length > 1) throw new OAuthError('invalid_request', 'A parameter is repeated.')
    const value = onlyValueOf(parameters, name)
    if (value !== undefined) single.set(name, value)
  }
  return single
}
