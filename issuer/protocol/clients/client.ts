import type { SigningAlgorithmName } from '../../tokens/keys/signing-algorithms.ts'

/** `fapi2`: the client is held to the FAPI 2.0 Security Profile; see `base/fapi2.ts`. */
export type SecurityProfile = 'fapi2'

export type ApplicationType = 'Native' | 'SPA' | 'Traditional' | 'MachineToMachine' | 'Protected' | 'SAML'

/** The client of a token request, after it proved who it is. */
export interface Client {
  id: string
  name: string
  type: ApplicationType
  isThirdParty: boolean
  /** `customClientMetadata.allowTokenExchange`; absent counts as allowed for first-party clients. */
  allowTokenExchange: boolean | null
  /** `customClientMetadata.isDeviceFlow` of a native application: people sign in to it on another device (RFC 8628). */
  isDeviceFlow: boolean
  /** `customClientMetadata.alwaysIssueRefreshToken`; for web applications (SPA, Traditional). */
  alwaysIssueRefreshToken: boolean
  refreshTokenTtlInDays: number
  /** `customClientMetadata.rotateRefreshToken`; a public client always rotates. */
  rotateRefreshToken: boolean
  /** Of ID tokens, in seconds. */
  idTokenTtl: number
  /** Undefined: whatever this issuer signs with. */
  idTokenSignedResponseAlg: SigningAlgorithmName | undefined
  /** It gets no tokens but those bound to a key (RFC 9449 §5.2, `dpop_bound_access_tokens`). */
  dpopBoundAccessTokens: boolean
  securityProfile: SecurityProfile | undefined
  /** Of the secret that proved it, if one did. */
  secretName?: string | undefined
}

/** Public clients cannot keep a secret and have none (RFC 6749 §2.1). */
export const isPublic = ({ type }: Pick<Client, 'type'>): boolean => type === 'Native' || type === 'SPA'
