/** Values of `grant_type` (RFC 6749 §4.4.2, RFC 8693 §2.1), as requests, scripts and the audit trail say them. */
export const grantTypes = {
  clientCredentials: 'client_credentials',
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
} as const
