/**
 * Values of `grant_type` (RFC 6749 §4.1.3, §4.4.2, §6, RFC 8628 §3.4, RFC 8693 §2.1), as requests, scripts and the
 * audit trail say them.
 */
export const grantTypes = {
  authorizationCode: 'authorization_code',
  deviceCode: 'urn:ietf:params:oauth:grant-type:device_code',
  refreshToken: 'refresh_token',
  clientCredentials: 'client_credentials',
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
} as const
export type GrantType = (typeof grantTypes)[keyof typeof grantTypes]
