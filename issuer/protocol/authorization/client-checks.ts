import { OAuthError } from '../../base/errors/problems.ts'
import { matchesRedirectUri } from '../../base/redirect-uri.ts'
import { type Asked, invalid } from './asked.ts'
import type { AskingClient } from './authorization-facts-store.ts'
import { onlyValueOf } from './authorization-parameters.ts'

/** Whose request it is, and whether its answer may go where it asks for. */

/** Stands for a client that is not registered. */
export const unknownClient: AskingClient = {
  id: '',
  name: '',
  description: null,
  type: 'SAML',
  isThirdParty: true,
  logoUri: undefined,
  alwaysIssueRefreshToken: false,
  refreshTokenTtlInDays: 0,
  redirectUris: [],
  requirePkce: true,
  requirePar: true,
  isDeviceFlow: false,
}

export const oneClientId = ({ parameters }: Asked) => {
  if (onlyValueOf(parameters, 'client_id') === undefined) throw invalid('Exactly one client_id is needed.')
  return {}
}

export const registeredClient = ({ client }: Asked) => {
  if (client === unknownClient) throw new OAuthError('invalid_client', 'There is no such client.')
  return { clientId: client.id }
}

/** A machine has nobody who could sign in. */
const typesOfPeople: readonly string[] = ['Native', 'SPA', 'Traditional', 'Protected']

export const clientOfPeople = ({ client }: Asked) => {
  if (!typesOfPeople.includes(client.type))
    throw new OAuthError('unauthorized_client', 'People do not sign in to an application of this type.')
  return {}
}

export const clientWithBrowser = ({ client }: Asked) => {
  if (client.isDeviceFlow)
    throw new OAuthError('unauthorized_client', 'People sign in to this application on another device.')
  return {}
}

export const clientOfDevices = ({ client }: Asked) => {
  if (!client.isDeviceFlow)
    throw new OAuthError('unauthorized_client', 'This client may not use the device flow; see isDeviceFlow.')
  return {}
}

export const sentAheadWhereRequired = ({ client, isPushed }: Asked) => {
  if (client.requirePar && !isPushed)
    throw new OAuthError('invalid_request_uri', 'This client must send its authorization requests ahead.')
  return {}
}

export const registeredRedirectUri = ({ parameters, client }: Asked) => {
  const redirectUri = onlyValueOf(parameters, 'redirect_uri')
  if (redirectUri === undefined) throw invalid('Exactly one redirect_uri is needed.')
  if (!matchesRedirectUri(client.redirectUris, redirectUri, { native: client.type === 'Native' }))
    throw invalid('The redirect_uri is not registered for this client; it must match exactly.')
  return { redirectUri }
}
