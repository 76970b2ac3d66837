import { z } from 'zod'

export const responseModes = ['query', 'form_post', 'fragment'] as const
export const prompts = ['none', 'login', 'consent', 'select_account', 'create'] as const

/** A checked authorization request (OpenID Connect Core §3.1.2.1), as it is stored while a person signs in. */
export const authorizationRequest = z.object({
  clientId: z.string(),
  /** OAuth 2.0 Multiple Response Types §4: no code is wanted; of our own pages only. Default: a code. */
  responseType: z.literal('none').optional(),
  redirectUri: z.string(),
  responseMode: z.enum(responseModes),
  state: z.string().optional(),
  nonce: z.string().optional(),
  /** S256. */
  codeChallenge: z.string().optional(),
  /** The key that the code is for (RFC 9449 §10). */
  dpopJkt: z.string().optional(),
  /** Those that exist, each once, in the order of the request. Whether the person holds them shows with each token. */
  scopes: z.array(z.string()),
  /** Of `scopes`, those of resources, by indicator. What is in none is an OIDC scope or an organization permission. */
  resourceScopes: z.record(z.string(), z.array(z.string())),
  /** Indicators, each registered. The default resource is not among them unless asked for. */
  resources: z.array(z.string()),
  organizationId: z.string().optional(),
  prompts: z.array(z.enum(prompts)),
  /** In seconds. */
  maxAge: z.number().optional(),
  loginHint: z.string().optional(),
  uiLocales: z.array(z.string()),
  acrValues: z.array(z.string()),
  /** The subject of `id_token_hint`. */
  expectedUserId: z.string().optional(),
  /** `offline_access` is asked for; `interaction` decides whether it is granted. */
  wantsOfflineAccess: z.boolean(),
  /** What existing SDKs send for the first page: `signIn`, `register`, `reset_password`, … */
  firstScreen: z.string().optional(),
  /** `direct_sign_in`: the provider that the person is sent to at once; `target` of `sso` is the connector's id. */
  directSignIn: z.object({ method: z.enum(['social', 'sso']), target: z.string() }).optional(),
  /** Of a request that was sent ahead (RFC 9126): the digest of its `request_uri`, in hexadecimal. */
  pushedRequest: z.string().optional(),
  /** Of a request that a device makes (RFC 8628). It has no redirect URI: the device polls. */
  device: z
    .object({
      /** Digest of its device code, in hexadecimal. */
      code: z.string(),
      /** Where it asked from. */
      address: z.string(),
      /** When, in ms since 1970. */
      askedAt: z.number(),
    })
    .optional(),
})
export type AuthorizationRequest = z.output<typeof authorizationRequest>
