import { matchesRedirectUri } from '../base/redirect-uri.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { authorizationResponse } from './authorization-response.ts'

/** Where somebody goes on whose sign-in has ended: to the same request again, else to the application. */
export const wayOnAfter = (
  request: AuthorizationRequest,
  client: Pick<AuthorizationClient, 'type' | 'redirectUris'>,
  issuer: string,
): { href: string; kind: 'start_again' | 'application' } | undefined => {
  if (request.device) return { href: devicePath, kind: 'start_again' }
  const again = startAgainLink(request)
  if (again !== undefined) return { href: again, kind: 'start_again' }
  const home = applicationLink(request) ?? refusalLink(request, client, issuer)
  return home === undefined ? undefined : { href: home, kind: 'application' }
}

/** Where a person enters the code of a device. */
export const devicePath = '/device'

/**
 * The request of an interaction as a link of ours, so that nobody is stuck whose time was over. Undefined when it
 * cannot be made again from what is kept.
 */
const startAgainLink = (request: AuthorizationRequest): string | undefined => {
  if (request.responseType === 'none') return request.redirectUri
  // Without the hint somebody else could sign in than the one whom the client expects.
  if (request.expectedUserId !== undefined) return undefined
  // What was sent ahead was not to stand in a URL.
  if (request.pushedRequest !== undefined) return undefined
  const { codeChallenge, maxAge } = request
  const parameters = new URLSearchParams({
    client_id: request.clientId,
    redirect_uri: request.redirectUri,
    response_type: 'code',
    response_mode: request.responseMode,
  })
  const optional: Record<string, string | undefined> = {
    scope: request.scopes.join(' '),
    state: request.state,
    nonce: request.nonce,
    code_challenge: codeChallenge,
    code_challenge_method: codeChallenge && 'S256',
    prompt: request.prompts.join(' '),
    max_age: maxAge?.toString(),
    organization_id: request.organizationId,
    login_hint: request.loginHint,
    ui_locales: request.uiLocales.join(' '),
    acr_values: request.acrValues.join(' '),
    first_screen: request.firstScreen,
    direct_sign_in: request.directSignIn && `${request.directSignIn.method}:${request.directSignIn.target}`,
  }
  for (const [name, value] of Object.entries(optional)) if (value) parameters.append(name, value)
  for (const resource of request.resources) parameters.append('resource', resource)
  return `/oidc/auth?${parameters}`
}

/** Where an application may be found: its redirect URI's origin. A native one, or one of a device, has no address. */
export const applicationLink = ({
  redirectUri,
  device,
}: Pick<AuthorizationRequest, 'redirectUri' | 'device'>): string | undefined => {
  if (device) return undefined
  // A page of ours.
  if (redirectUri.startsWith('/')) return redirectUri
  const { protocol, origin } = new URL(redirectUri)
  return protocol === 'https:' || protocol === 'http:' ? `${origin}/` : undefined
}

/**
 * Where an application is told that nobody signs in: the way back to a native one, whose only address is its redirect
 * URI. Undefined when that is no longer registered, or takes no link.
 */
const refusalLink = (
  request: AuthorizationRequest,
  client: Pick<AuthorizationClient, 'type' | 'redirectUris'>,
  issuer: string,
): string | undefined => {
  if (!matchesRedirectUri(client.redirectUris, request.redirectUri, { native: client.type === 'Native' })) return
  const ended = { error: 'access_denied', description: 'The sign-in has ended.' }
  const response = authorizationResponse(request, ended, issuer)
  return 'location' in response ? response.location : undefined
}
