import { ClientSecretBasic, ClientSecretPost } from 'oauth4webapi'
import type { z } from 'zod'
import { appleSecret } from './apple-secret.ts'
import { domainOf } from './assertion.ts'
import type { appleConfig, googleConfig, microsoftConfig, openIdConfig } from './factories.ts'
import { type Claims, type OpenIdProfile, type ProviderMetadata, saysVerified } from './profile.ts'

const defaultScope = 'openid profile email'

/** RFC 8414 §2: a document that names no method means Basic. */
const bySecret =
  (clientSecret: string, method?: z.output<typeof openIdConfig>['tokenEndpointAuthMethod']) =>
  async ({ token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] }: ProviderMetadata) =>
    (method ?? (methods.includes('client_secret_basic') ? 'client_secret_basic' : 'client_secret_post')) ===
    'client_secret_basic'
      ? ClientSecretBasic(clientSecret)
      : ClientSecretPost(clientSecret)

const prompted = (prompts: readonly string[] | undefined) =>
  prompts && prompts.length > 0 ? { parameters: { prompt: prompts.join(' ') } } : {}

export const openId = (config: z.output<typeof openIdConfig>): OpenIdProfile => ({
  discovery: config.issuer,
  clientId: config.clientId,
  clientAuth: bySecret(config.clientSecret, config.tokenEndpointAuthMethod),
  scope: config.scope ?? defaultScope,
  again: { prompt: 'login' },
  isEmailVerified: saysVerified,
})

/** An enterprise's: the operator may answer for addresses of which its provider says nothing. */
export const enterprise = (
  config: z.output<typeof openIdConfig> & { trustUnverifiedEmail?: boolean | undefined },
): OpenIdProfile => ({
  ...openId(config),
  isEmailVerified: (claims) =>
    saysVerified(claims) || (config.trustUnverifiedEmail === true && claims.email_verified === undefined),
})

export const google = (config: z.output<typeof googleConfig>): OpenIdProfile => ({
  discovery: config.endpoint ?? 'https://accounts.google.com',
  clientId: config.clientId,
  clientAuth: bySecret(config.clientSecret),
  scope: config.scope ?? defaultScope,
  ...prompted(config.prompts),
  // Google refuses `login`.
  again: { prompt: 'select_account' },
  isEmailVerified: saysVerified,
  skipsUserinfo: true,
})

/** Anybody may have a Google account with an address of a domain; who belongs to its organization has `hd`. */
export const googleWorkspace = (config: z.output<typeof googleConfig>): OpenIdProfile => ({
  ...google(config),
  isEmailVerified: (claims: Claims) =>
    saysVerified(claims) && typeof claims.email === 'string' && claims.hd === domainOf(claims.email),
})

/** The tenant of personal accounts. */
const personal = '9188040d-6c67-4c5b-b112-36a304b66dad'

export const microsoft = (config: z.output<typeof microsoftConfig>): OpenIdProfile => {
  const { tenantId, cloudInstance = 'https://login.microsoftonline.com' } = config
  const cloud = cloudInstance.replace(/\/$/, '')
  const tenants = { common: '{tenantid}', organizations: '{tenantid}', consumers: personal } as Record<string, string>
  return {
    discovery: `${cloud}/${tenantId}/v2.0`,
    isIssuer: (issuer) => issuer === `${cloud}/${tenants[tenantId] ?? tenantId}/v2.0`,
    isTenant: (tenant) => tenantId !== 'organizations' || tenant !== personal,
    clientId: config.clientId,
    clientAuth: bySecret(config.clientSecret),
    scope: config.scope ?? defaultScope,
    ...prompted(config.prompts),
    again: { prompt: 'login' },
    // Administrators of any tenant write `email` as they like; this says that the domain is the tenant's own.
    isEmailVerified: ({ xms_edov: verified }) => verified === true || verified === 1 || verified === '1',
    skipsUserinfo: true,
  }
}

export const apple = (config: z.output<typeof appleConfig>, now: () => Date): OpenIdProfile => {
  const { endpoint = 'https://appleid.apple.com', clientId, scope = 'openid name email', ...key } = config
  return {
    discovery: endpoint,
    clientId,
    clientAuth: async () => ClientSecretPost(await appleSecret({ ...key, clientId, audience: endpoint }, now())),
    scope: scope.split(' ').includes('openid') ? scope : `openid ${scope}`,
    // Apple demands it with any scope, and posts from its own site.
    parameters: { response_mode: 'form_post' },
    // Documented as "string or boolean".
    isEmailVerified: ({ email_verified: verified }) => verified === true || verified === 'true',
    told: toldByApple,
    skipsUserinfo: true,
  }
}

/** The name comes once, beside the code, at the first sign-in. */
const toldByApple = (parameters: URLSearchParams): { name?: string } => {
  try {
    const { name } = JSON.parse(parameters.get('user') ?? '{}') as { name?: Record<string, unknown> }
    const parts = [name?.firstName, name?.lastName].filter((part) => typeof part === 'string' && part !== '')
    return parts.length > 0 ? { name: parts.join(' ') } : {}
  } catch {
    return {}
  }
}
