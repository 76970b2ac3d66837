import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { TestIssuer } from '../../../support/issuer.ts'

/** What a client verifies ID tokens with. */
export const createRelyingKeys = ({ issuer }: Pick<TestIssuer, 'issuer'>) => {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  return {
    verify: async (idToken: string, audience: string): Promise<JWTPayload> =>
      (await jwtVerify(idToken, keys, { issuer, audience })).payload,
  }
}
