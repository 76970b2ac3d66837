import { FederationError } from './federation-error.ts'

/** Who somebody is elsewhere, as an identity provider says and as we have checked. */
export interface FederatedAssertion {
  connectorId: string
  kind: 'social' | 'sso'
  /** How identities name the provider: `google`. Of an enterprise connector its id. */
  target: string
  /** Unique and never given anew within the connector. */
  subject: string
  /** Of the ID token; absent without one. */
  issuer?: string
  email?: string
  /**
   * The provider says that the address is the person's. Of an enterprise connector besides: its domain is one of the
   * connector's. Nothing may be linked by an address without it.
   */
  emailVerified: boolean
  phone?: string
  phoneVerified: boolean
  name?: string
  /** `https:` only. */
  avatar?: string
  /** All claims, for `details.rawData`. No tokens. */
  raw: Record<string, unknown>
}

/** What pages show of a connector. */
export interface OfferedConnector {
  id: string
  kind: 'social' | 'sso'
  target: string
  /** In English, or as the operator named it. */
  name: string
  /** `https:` only. */
  logo?: string
  darkLogo?: string
  /** Of an enterprise connector, in lower case. */
  domains: readonly string[]
  /** The profile is taken over at every sign-in, not only at the first. */
  syncProfile: boolean
}

export interface BeginFederation {
  /** `BASE_URL/callback/<connectorId>`: every connector has one of its own (RFC 9700 §4.4.2.1). */
  redirectUri: string
  /** Unguessable, bound to the browser by the caller. */
  state: string
  loginHint?: string | undefined
}

export interface CompleteFederation {
  /** As `begin` answered it. */
  kept: unknown
  /** Of the callback: query, or the form of a provider that posts. */
  parameters: URLSearchParams
  /** That of `begin`. */
  redirectUri: string
}

/** People whom identity providers know. Every method throws `FederationError`, with `connector_not_found` among others. */
export interface Federation {
  /** Where the browser goes, and what `complete` needs again: JSON, secret, good for one answer. */
  begin(connectorId: string, request: BeginFederation): Promise<{ url: string; kept: Record<string, unknown> }>
  complete(connectorId: string, answer: CompleteFederation): Promise<FederatedAssertion>
  /** The social connectors of the sign-in page of an application, in the order of the settings. */
  offered(page: { clientId?: string | undefined }): Promise<OfferedConnector[]>
  /** The enterprise connector that owns a domain (the part of an address behind the `@`). */
  byDomain(domain: string): Promise<OfferedConnector | undefined>
  get(connectorId: string): Promise<OfferedConnector | undefined>
}

export { FederationError }
