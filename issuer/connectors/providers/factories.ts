import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'
import { endpoint, factory, line, secret } from '../../../deliveries/messages/factories.ts'

/**
 * The kinds of identity providers there are. Names and members of configurations are those that existing clients know,
 * where they know one.
 */

/** ES256 needs this curve (RFC 7518 §3.4). */
const isAppleKey = (text: string): boolean => {
  if (!text.startsWith('-----BEGIN PRIVATE KEY-----')) return false
  try {
    return createPrivateKey(text).asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}

const credentials = { clientId: line(), clientSecret: secret() }

const scope = line(1_024).optional()
const openIdScope = line(1_024)
  .refine((text) => text.split(' ').includes('openid'), 'must contain openid')
  .optional()
/** `prompt` of the request. */
const prompts = z
  .array(line(64).regex(/^[a-z_]+$/))
  .max(8)
  .optional()
/** Of the token endpoint. Default: what the provider's document says, Basic first. */
const tokenEndpointAuthMethod = z.enum(['client_secret_basic', 'client_secret_post']).optional()

const issuer = endpoint.refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')

export const openIdConfig = z.object({ ...credentials, issuer, scope: openIdScope, tokenEndpointAuthMethod })
export const googleConfig = z.object({ ...credentials, scope: openIdScope, prompts, endpoint: endpoint.optional() })
export const microsoftConfig = z.object({
  ...credentials,
  /** `common`, `organizations`, `consumers`, or the id of one tenant. */
  tenantId: z.union([z.enum(['common', 'organizations', 'consumers']), z.guid().toLowerCase()]),
  /** Of a national cloud. */
  cloudInstance: endpoint.optional(),
  scope: openIdScope,
  prompts,
})
export const appleConfig = z.object({
  clientId: line(),
  teamId: line(64),
  keyId: line(64),
  /** The text of the `.p8` file. */
  privateKey: z.string().max(4_096).refine(isAppleKey, 'must be the text of a .p8 file: a P-256 key, PKCS #8 in PEM'),
  scope,
  endpoint: endpoint.optional(),
})
export const gitHubConfig = z.object({
  ...credentials,
  scope,
  /** Of a GitHub Enterprise Server. */
  endpoint: endpoint.optional(),
})

const social = 'Social' as const
const clientSecret = ['clientSecret']

export const socialFactories = [
  factory({
    id: 'oidc',
    type: social,
    name: 'OpenID Connect',
    description: 'Any provider that publishes a discovery document.',
    config: openIdConfig,
    secrets: clientSecret,
  }),
  factory({
    id: 'google-universal',
    type: social,
    name: 'Google',
    description: 'People with a Google account.',
    config: googleConfig,
    secrets: clientSecret,
    target: 'google',
  }),
  factory({
    id: 'azuread-universal',
    type: social,
    name: 'Microsoft',
    description: 'People with a Microsoft account, of any organization or of one.',
    config: microsoftConfig,
    secrets: clientSecret,
    target: 'azuread',
  }),
  factory({
    id: 'apple-universal',
    type: social,
    name: 'Apple',
    description: 'People with an Apple account.',
    config: appleConfig,
    secrets: ['privateKey'],
    target: 'apple',
  }),
  factory({
    id: 'github-universal',
    type: social,
    name: 'GitHub',
    description: 'People with a GitHub account.',
    config: gitHubConfig,
    secrets: clientSecret,
    target: 'github',
  }),
  factory({
    id: 'mock-social-connector',
    type: social,
    name: 'Mock social',
    description: 'Knows whoever it is told.',
    config: z.object(credentials),
    secrets: clientSecret,
    mock: true,
    target: 'mock-social',
  }),
] as const

/** The operator answers for the addresses of its domains, where the provider does not say that they are verified. */
const trustUnverifiedEmail = z.boolean().optional()
const enterprise = openIdConfig.extend({ trustUnverifiedEmail })

export const ssoProviders = {
  OIDC: { name: 'OpenID Connect', config: enterprise },
  GoogleWorkspace: { name: 'Google Workspace', config: googleConfig },
  AzureAdOidc: { name: 'Microsoft Entra ID (OIDC)', config: enterprise },
  Okta: { name: 'Okta', config: enterprise },
} as const satisfies Record<string, { name: string; config: z.ZodObject }>
export type SsoProviderName = keyof typeof ssoProviders
export const ssoSecrets = { secrets: clientSecret }
