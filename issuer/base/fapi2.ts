/**
 * What the FAPI 2.0 Security Profile asks of a client beyond what everybody must do (§5.3.2, §5.4):
 * `customClientMetadata.securityProfile: 'fapi2'`. It authenticates by `private_key_jwt`, sends its requests ahead with
 * PKCE, and gets only tokens that are bound to a key.
 */

/** §5.4.1, RFC 9864: of client assertions, DPoP proofs and ID tokens. */
export const fapi2Algorithms: readonly string[] = ['PS256', 'ES256', 'EdDSA', 'Ed25519']
