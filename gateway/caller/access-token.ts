import type { Route } from '../config/route.ts'
import { invalidToken, tokenMissing } from '../refusals/challenges.ts'

export interface AccessToken {
  scheme: 'bearer' | 'dpop'
  token: string
}

/**
 * RFC 6750 §2.1 and RFC 9449 §7.1, the only ways a token is taken: never from the query or a body, which end up in
 * logs. Throws 401 without one, or with a scheme that the route does not take.
 */
export const accessTokenOf = (authorization: string | undefined, { dpop }: Pick<Route, 'dpop'>): AccessToken => {
  if (authorization === undefined) throw tokenMissing()
  const space = authorization.indexOf(' ')
  const scheme = (space < 0 ? authorization : authorization.slice(0, space)).toLowerCase()
  const isTaken = scheme === 'bearer' ? dpop !== 'required' : scheme === 'dpop' && dpop !== undefined
  if (!isTaken) throw tokenMissing()
  const token = space < 0 ? '' : authorization.slice(space).trim()
  if (token === '') throw invalidToken('The Authorization field holds no token.')
  return { scheme: scheme as AccessToken['scheme'], token }
}
