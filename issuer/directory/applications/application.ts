import { z } from 'zod'
import { importJwks } from '../../../platform/jwt/keys.ts'
import { isLoopbackUri } from '../../base/redirect-uri.ts'
import { id, jsonObject, tenantId, timestamp } from '../../base/schemas.ts'

/** A client as the database holds it. */
export interface ApplicationRow {
  id: string
  name: string
  description: string | null
  type: ApplicationType
  oidc_client_metadata: Partial<OidcClientMetadata>
  custom_client_metadata: CustomClientMetadata
  custom_data: Record<string, unknown>
  is_third_party: boolean
  created_at: Date
}

export const applicationType = z.enum(['Native', 'SPA', 'Traditional', 'MachineToMachine', 'Protected', 'SAML'])
export type ApplicationType = z.output<typeof applicationType>

/** Those that can keep a secret (RFC 6749 §2.1, confidential clients); they get a first one when they are made. */
export const confidentialTypes: ReadonlySet<ApplicationType> = new Set(['Traditional', 'MachineToMachine', 'Protected'])

/** What is wrong with a URI that a browser is sent to; undefined when it is one that every parser reads alike. */
const redirectUriFault = (text: string): string | undefined => {
  if (!URL.canParse(text) || text.includes('#')) return 'must be an absolute URI without fragment'
  const { protocol, username, password, origin, href } = new URL(text)
  if (text.includes('*')) return 'has no wildcards: register every address'
  if (username !== '' || password !== '') return 'must not name a user'
  if (protocol !== 'https:' && protocol !== 'http:')
    // RFC 8252 §7.1. Nor can it be `javascript:`, `data:` or `file:` then.
    return protocol.includes('.') ? undefined : 'has a scheme that is not allowed: use a domain in reverse'
  if (protocol === 'http:' && !isLoopbackUri(text)) return 'must be https, unless it is on this machine'
  // Without a path, browsers add a slash. Nothing else may be there to add or take away.
  return text === href || text === origin ? undefined : `must be written as ${href}`
}

// RFC 6749 §3.1.2: an absolute URI without fragment, spelt with the characters of URIs (RFC 3986 §2): no white space,
// no backslash, host names in ASCII. A custom scheme is for native applications (`operations.ts`).
const redirectUri = z
  .string()
  .max(2048, { abort: true })
  .regex(/^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/, { message: 'must consist of the characters of a URI', abort: true })
  .superRefine((text, { addIssue }) => {
    const message = redirectUriFault(text)
    if (message !== undefined) addIssue({ code: 'custom', message })
  })

const webUrl = z.url({ protocol: /^https?$/ }).max(2048)
// Back-Channel Logout §2.2. Whether it may be reached: `operations.ts`.
const backchannelLogoutUri = webUrl.refine((text) => !text.includes('#'), 'must have no fragment')
const origin = webUrl.refine((text) => URL.canParse(text) && new URL(text).origin === text, 'must be an origin')

// RFC 7518 §6.2.2, §6.3.2, §6.4: what only the holder of a key may know.
const maxKeysBytes = 65_536
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** The public keys an application proves itself with (RFC 7517 §5), each with a `kid` of its own. */
const clientKeys = z
  .object({
    keys: z
      .array(z.looseObject({ kid: z.string() }))
      .min(1)
      .max(10),
  })
  // Every request of the application reads them.
  .refine((jwks) => JSON.stringify(jwks).length <= maxKeysBytes, {
    message: `must be at most ${maxKeysBytes} bytes of JSON`,
    abort: true,
  })
  .refine(
    ({ keys }) => keys.every((key) => privateMembers.every((member) => !(member in key))),
    'must hold public keys only: keep the private part to yourself',
  )
  .refine(
    (jwks) => importJwks(jwks).size === jwks.keys.length,
    'must be EC, RSA (2048 bits or more) or Ed25519 signature keys, each with a kid of its own',
  )

const oidcClientMetadata = z.object({
  redirectUris: z.array(redirectUri).max(100).default([]),
  postLogoutRedirectUris: z.array(redirectUri).max(100).default([]),
  /** Where a logout token is posted when what the application got of a person ends. */
  backchannelLogoutUri: backchannelLogoutUri.optional(),
  /** Logout tokens always say the `sid`. */
  backchannelLogoutSessionRequired: z.boolean().optional(),
  logoUri: webUrl.optional(),
  /** With `private_key_jwt` no secret is accepted. Absent: what the application has, secrets or keys. */
  tokenEndpointAuthMethod: z.enum(['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none']).optional(),
  jwks: clientKeys.optional(),
  /** Of its ID tokens. Absent: what the issuer signs with. */
  idTokenSignedResponseAlg: z.enum(['ES256', 'RS256']).optional(),
  // The issuer opens no connection to addresses that applications name.
  jwksUri: z.never('is not supported: register the keys themselves as jwks').optional(),
})
export type OidcClientMetadata = z.output<typeof oidcClientMetadata>

const customClientMetadata = z
  .object({
    corsAllowedOrigins: z.array(origin).max(100),
    /** Seconds. */
    idTokenTtl: z.number().int().min(1).max(31_536_000),
    refreshTokenTtlInDays: z.number().int().min(1).max(180),
    alwaysIssueRefreshToken: z.boolean(),
    rotateRefreshToken: z.boolean(),
    allowTokenExchange: z.boolean(),
    isDeviceFlow: z.boolean(),
    maxAllowedGrants: z.number().int().min(1),
    /** Of those that can keep a secret: `false` lets them ask for a code without PKCE. */
    requirePkce: z.boolean(),
    /** Authorization requests are accepted only when they were sent ahead (RFC 9126). */
    requirePar: z.boolean(),
    /** It gets only access tokens that are bound to a key (RFC 9449 §5.2). */
    dpopBoundAccessTokens: z.boolean(),
    /** Holds it to the FAPI 2.0 Security Profile: `private_key_jwt`, PAR, PKCE and DPoP, whatever else is set. */
    securityProfile: z.enum(['fapi2']),
  })
  .partial()
export type CustomClientMetadata = z.output<typeof customClientMetadata>

export const application = z.strictObject({
  tenantId,
  id,
  name: z.string(),
  description: z.string().nullable(),
  type: applicationType,
  oidcClientMetadata,
  customClientMetadata,
  protectedAppMetadata: z.null(),
  customData: jsonObject,
  isThirdParty: z.boolean(),
  appLevelAccessControlEnabled: z.literal(false),
  createdAt: timestamp,
})
export type Application = z.output<typeof application>

/** `secret` is the value of the first secret, shown here and never again. */
export const createdApplication = application.extend({ secret: z.string().optional() })

/** `isAdmin`: it holds the management scope `all`. */
export const applicationDetails = application.extend({ isAdmin: z.boolean() })

export const toApplication = (row: ApplicationRow): Application => ({
  tenantId: 'default',
  id: row.id,
  name: row.name,
  description: row.description,
  type: row.type,
  oidcClientMetadata: { redirectUris: [], postLogoutRedirectUris: [], ...row.oidc_client_metadata },
  customClientMetadata: row.custom_client_metadata,
  protectedAppMetadata: null,
  customData: row.custom_data,
  isThirdParty: row.is_third_party,
  appLevelAccessControlEnabled: false,
  createdAt: row.created_at.getTime(),
})

export const applicationSearchFields = ['id', 'name', 'description'] as const

const fields = {
  name: z.string().min(1).max(256),
  description: z.string().max(2048).nullable(),
  oidcClientMetadata,
  customClientMetadata,
  customData: jsonObject,
}

export const newApplication = z.object({
  ...z.object(fields).partial().shape,
  name: fields.name,
  type: applicationType,
  isThirdParty: z.boolean().default(false),
})
export type NewApplication = z.output<typeof newApplication>

/** Objects are replaced as a whole; type and third-party status never change. */
export const applicationPatch = z.object(fields).partial()
export type ApplicationPatch = z.output<typeof applicationPatch>
