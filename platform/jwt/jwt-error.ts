export type JwtErrorReason =
  | 'malformed'
  | 'algorithm'
  | 'type'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'expired'
  | 'not_yet_valid'
  | 'claims'
  | 'unknown_key'

/**
 * A token that is not accepted. `reason` is stable; the message is a sentence that may be shown to the caller and never
 * quotes the token.
 */
export class JwtError extends Error {
  override readonly name = 'JwtError'
  readonly reason: JwtErrorReason

  constructor(reason: JwtErrorReason, message: string) {
    super(message)
    this.reason = reason
  }
}
