import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, toSeconds } from '../../../platform/clock.ts'
import type { Query } from '../../../platform/database/database.ts'
import { createNonces } from '../../../platform/dpop/nonces.ts'
import { proofSeconds, verifyProof } from '../../../platform/dpop/proof.ts'
import { proofAlgorithms } from '../../../platform/jwt/algorithms.ts'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import { namesTarget } from './names-target.ts'
import { useProof } from './proof-store.ts'

/** What a request proved: that who sent it holds a key (RFC 9449). */
export interface Proof {
  /** Of the key: `jkt` (RFC 7638, SHA-256). */
  thumbprint: string
  alg: string
  /** Uses it up, when everything else is right. Throws `invalid_dpop_proof` when somebody did before. */
  use(): Promise<void>
}

/**
 * Reads and verifies the proof in the field `DPoP` of a request (RFC 9449 §4.3), with no effect but the field
 * `DPoP-Nonce` of the answer. `path` is that of the request, without its query. Both throw `invalid_dpop_proof` and
 * `use_dpop_nonce`.
 */
export interface Proofs {
  /** Where a token is asked for (§5, §8: refused with 400). Undefined: none was sent. */
  forNewToken(request: IncomingMessage, response: ServerResponse, path: string): Proof | undefined
  /** Where a token is used, by the scheme `DPoP` (§7.1, §9: refused with 401 and a challenge). */
  forToken(request: IncomingMessage, response: ServerResponse, path: string, accessToken: string): Proof
}

/** The challenge of a resource that takes tokens which are bound to a key (RFC 9449 §7.1). */
export const dpopChallenge = `DPoP algs="${proofAlgorithms.join(' ')}"`

/** For how long a used proof is remembered after it has become too old, in seconds: clocks of instances differ. */
const graceSeconds = 240

export interface ProofsDependencies {
  query: Query
  hmac: Hmac
  baseUrl: string
  now: Clock
}

type Refuse = (error: 'invalid_dpop_proof' | 'use_dpop_nonce', description: string) => OAuthError

export const createProofs = ({ query, hmac, baseUrl, now }: ProofsDependencies): Proofs => {
  // The same in all instances, so that a nonce of one is good at the others.
  const nonces = createNonces(hmac('dpop-nonces', 'key'))

  const read = (
    request: IncomingMessage,
    response: ServerResponse,
    { path, accessToken }: { path: string; accessToken?: string },
    refuse: Refuse,
  ): Proof => {
    const time = now().getTime()
    const tellNonce = () => response.setHeader('DPoP-Nonce', nonces.current(time))
    const refusal: Refuse = (error, description) => {
      tellNonce()
      return refuse(error, description)
    }
    const verified = () => {
      const { dpop } = request.headers
      if (dpop === undefined) throw refusal('invalid_dpop_proof', 'The request has no DPoP proof.')
      try {
        return verifyProof(String(dpop), {
          method: request.method ?? '',
          target: baseUrl + path,
          namesTarget,
          accessToken,
          thumbprint: undefined,
          checkNonce(nonce) {
            const good = nonces.check(nonce, time)
            if (good === undefined) throw refusal('use_dpop_nonce', 'The proof needs the nonce of this answer.')
            if (good === 'late') tellNonce()
          },
          importKey: (key) => key.import(),
          nowSeconds: toSeconds(new Date(time)),
        })
      } catch (error) {
        throw error instanceof JwtError ? refusal('invalid_dpop_proof', error.message) : error
      }
    }
    const { thumbprint, alg, jti, iat } = verified()
    const expiresAt = new Date((iat + proofSeconds + graceSeconds) * 1000)
    return {
      thumbprint,
      alg,
      async use() {
        if (!(await useProof(query, { thumbprint, jti, expiresAt })))
          throw refusal('invalid_dpop_proof', 'The DPoP proof was used before.')
      },
    }
  }

  return {
    forNewToken: (request, response, path) =>
      request.headers['dpop'] === undefined
        ? undefined
        : read(request, response, { path }, (error, description) => new OAuthError(error, description)),
    forToken: (request, response, path, accessToken) =>
      read(request, response, { path, accessToken }, (error, description) => {
        const challenge = `${dpopChallenge}, error="${error}", error_description="${description}"`
        return new OAuthError(error, description, { status: 401, headers: { 'WWW-Authenticate': challenge } })
      }),
  }
}
