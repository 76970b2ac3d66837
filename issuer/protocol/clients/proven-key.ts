import { OAuthError } from '../../base/errors/problems.ts'
import { fapi2Algorithms } from '../../base/fapi2.ts'
import type { Proof } from '../../tokens/dpop/proofs.ts'
import type { Client } from './client.ts'

/**
 * The thumbprint of the key that a client's request proved, whose proof is used up by that; undefined when it sent no
 * proof. Throws `invalid_dpop_proof`.
 */
export const provenKey = async (
  { securityProfile }: Pick<Client, 'securityProfile'>,
  proof: Proof | undefined,
): Promise<string | undefined> => {
  if (!proof) return undefined
  if (securityProfile === 'fapi2' && !fapi2Algorithms.includes(proof.alg))
    throw new OAuthError('invalid_dpop_proof', 'The algorithm of the DPoP proof is none of the FAPI 2.0 profile.')
  await proof.use()
  return proof.thumbprint
}

/** The same where an access token is asked for: some clients get only those that are bound to a key. */
export const provenKeyOfToken = async (
  client: Pick<Client, 'securityProfile' | 'dpopBoundAccessTokens'>,
  proof: Proof | undefined,
): Promise<string | undefined> => {
  // RFC 9449 §5.2: "MUST reject token requests from the client that do not contain the DPoP header".
  if (client.dpopBoundAccessTokens && !proof)
    throw new OAuthError('invalid_dpop_proof', 'This client must send a DPoP proof with its token requests.')
  return provenKey(client, proof)
}
