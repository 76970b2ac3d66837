/**
 * Why an identity provider's answer tells nobody. `denied`: the person, or the provider, said no · `provider_error`: it
 * answered with another error · `invalid_response`: state, issuer (RFC 9207) or code are not those of the request ·
 * `invalid_id_token`: its signature, issuer, audience, nonce or times · `subject_mismatch`: userinfo is of somebody
 * else · `unavailable`: it cannot be reached, is too slow, or says too much · `target_not_allowed`: one of its
 * addresses may not be reached from here · `misconfigured`: what it publishes does not fit the connector, or it refuses
 * our credentials.
 */
export type FederationFault =
  | 'connector_not_found'
  | 'denied'
  | 'provider_error'
  | 'invalid_response'
  | 'invalid_id_token'
  | 'subject_mismatch'
  | 'unavailable'
  | 'target_not_allowed'
  | 'misconfigured'

/** The message is for operators' logs: it holds nothing that a provider or a browser sent. */
export class FederationError extends Error {
  override readonly name = 'FederationError'
  readonly reason: FederationFault

  constructor(reason: FederationFault, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.reason = reason
  }
}
