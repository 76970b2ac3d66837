import type { JWTPayload } from 'jose'
import {
  authorizationRequest,
  claimsOf,
  codeOf,
  discover,
  redeem,
  type TokenAnswer,
  verifyIdToken,
} from './application.ts'
import { SignInFailed, type SignInOptions } from './step.ts'
import { walkPages } from './walk-pages.ts'

export { SignInFailed, type SignInOptions } from './step.ts'

export interface SignedIn {
  /** What the token endpoint answered. */
  tokens: TokenAnswer
  /** Verified claims of the ID token. */
  idToken: JWTPayload | undefined
  /** Of the access token where it is a JWT; not verified, since that is for the resource to do. */
  accessToken: JWTPayload | undefined
}

/**
 * Signs a person in as a browser without scripts and an application together do: OpenID Connect's code flow with PKCE,
 * over the issuer's own pages. Throws `SignInFailed` where it cannot go on.
 */
export const signIn = async (options: SignInOptions): Promise<SignedIn> => {
  const metadata = await discover(options)
  const request = authorizationRequest(options, metadata)
  const answer = await walkPages(options, await options.browser.open(request.url))
  const code = codeOf(answer, { state: request.state, metadata })
  const tokens = await redeem(options, metadata, { code, verifier: request.verifier })
  const idToken =
    tokens.id_token === undefined ? undefined : await verifyIdToken(options, metadata, tokens.id_token, request.nonce)
  if (idToken === undefined && options.scope.split(' ').includes('openid'))
    throw new SignInFailed('The answer of the token endpoint holds no ID token, although openid was asked for.')
  return { tokens, idToken, accessToken: claimsOf(tokens.access_token) }
}
