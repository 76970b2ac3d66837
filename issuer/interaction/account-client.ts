import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'

/** What rules, audit and events call the account pages; no application can have this id, because it has a hyphen. */
export const accountClientId = 'account-center'

/**
 * The account pages, as what somebody signs in to. They are no application: they have no row, and nobody to give a code
 * to. `path`: the page that was wanted; the account knows its pages, so it never comes from a parameter.
 */
export const accountClient = (path: string): AuthorizationClient => ({
  id: accountClientId,
  name: 'Account',
  description: null,
  type: 'Traditional',
  isThirdParty: false,
  alwaysIssueRefreshToken: false,
  refreshTokenTtlInDays: 0,
  redirectUris: [path],
})

/** A request of ours to sign somebody in, and to come back to `path`. */
export const accountRequest = (path: string): AuthorizationRequest => ({
  clientId: accountClientId,
  responseType: 'none',
  redirectUri: path,
  responseMode: 'query',
  scopes: [],
  resourceScopes: {},
  resources: [],
  prompts: [],
  uiLocales: [],
  acrValues: [],
  wantsOfflineAccess: false,
})
