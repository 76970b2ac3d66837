export type ApplicationType = 'Native' | 'SPA' | 'Traditional' | 'MachineToMachine' | 'Protected' | 'SAML'

/** The client of a token request, after it proved who it is. */
export interface Client {
  id: string
  name: string
  type: ApplicationType
  isThirdParty: boolean
  /** `customClientMetadata.allowTokenExchange`; absent counts as allowed for first-party clients. */
  allowTokenExchange: boolean | null
}

/** Public clients cannot keep a secret and have none (RFC 6749 §2.1). */
export const isPublic = ({ type }: Pick<Client, 'type'>): boolean => type === 'Native' || type === 'SPA'
