import { createHash, randomUUID } from 'node:crypto'
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import type { Proofs } from '../../issuer/tokens/dpop/proofs.ts'

/** A client with a key pair, whose proofs are made by `jose`, an implementation that is not ours. */
export interface DpopClient {
  jwk: JWK
  privateKey: CryptoKey
  /** RFC 7638. */
  thumbprint: string
  /** What a token must say to be bound to the key. */
  cnf: { jkt: string }
  /** A good proof; `claims` and `header` replace or, with undefined, remove members. */
  proof(about: ProofAbout, options?: ProofOptions): Promise<string>
  /** The header fields of a request with a new proof. */
  fields(about: ProofAbout, options?: ProofOptions): Promise<{ authorization: string; dpop: string }>
}

export interface ProofAbout {
  method?: string
  url: string
  /** Absent where one is only asked for. */
  token?: string
  nonce?: string | undefined
}

export interface ProofOptions {
  claims?: JWTPayload
  header?: Partial<JWTHeaderParameters>
  by?: CryptoKey
}

export const newDpopClient = async (alg = 'ES256', options: { modulusLength?: number } = {}): Promise<DpopClient> => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true, ...options })
  const jwk = await exportJWK(publicKey)
  const thumbprint = await calculateJwkThumbprint(jwk)
  const proof: DpopClient['proof'] = (about, { claims = {}, header = {}, by = privateKey } = {}) => {
    const good = {
      jti: randomUUID(),
      htm: about.method ?? 'GET',
      htu: about.url,
      iat: Math.floor(Date.now() / 1000),
      ath: about.token && createHash('sha256').update(about.token).digest('base64url'),
      nonce: about.nonce,
    }
    return new SignJWT(JSON.parse(JSON.stringify({ ...good, ...claims })))
      .setProtectedHeader(JSON.parse(JSON.stringify({ typ: 'dpop+jwt', alg, jwk, ...header })))
      .sign(by)
  }
  return {
    jwk,
    privateKey,
    thumbprint,
    cnf: { jkt: thumbprint },
    proof,
    fields: async (about, options) => ({
      authorization: `DPoP ${about.token}`,
      dpop: await proof(about, options),
    }),
  }
}

/** For endpoints that are started without an issuer: no request has a proof there. */
export const noProofs: Proofs = {
  forNewToken: () => undefined,
  forToken() {
    throw new Error('nobody sends a proof here')
  },
}
