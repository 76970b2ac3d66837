/** What a person allowed a third-party application, until it is revoked or was not used for `consentDays`. */
export interface Consent {
  /** Those of no resource: OIDC scopes and organization permissions. */
  scopes: readonly string[]
  /** Scopes by indicator. */
  resources: Readonly<Record<string, readonly string[]>>
  /** Ids of the organizations that the application may act in. */
  organizations: readonly string[]
}

export const consentDays = 180
