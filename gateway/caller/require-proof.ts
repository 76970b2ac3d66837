import { hash } from 'node:crypto'
import { type Clock, toSeconds } from '../../platform/clock.ts'
import { proofSeconds, verifyProof } from '../../platform/dpop/proof.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { invalidProof, invalidToken, proofNeedsNonce } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'
import { accessTokenOf } from './access-token.ts'
import { createProofKeys } from './dpop/proof-keys.ts'
import type { ProofRecords } from './dpop/proof-records.ts'
import { namesTarget, targetUriOf } from './dpop/target-uri.ts'
import type { ProofUse } from './dpop/used-proofs.ts'

export interface RequireProofParts {
  /** Undefined when no route takes the scheme DPoP. */
  proofs: ProofRecords | undefined
  now: Clock
}

/** What a token is bound to (RFC 7800 §3.1): to be shown by whoever sends it. */
interface Confirmation {
  /** Thumbprint of a key (RFC 9449 §6.1). */
  jkt?: string | undefined
  /** Thumbprint of a client certificate (RFC 8705 §3.1). */
  x5t?: string | undefined
}

/**
 * All known methods of the claim `cnf` must be satisfied. Throws 401 when there is none: a token that is bound to
 * something is no bearer token.
 */
const confirmationOf = (cnf: unknown): Confirmation => {
  if (cnf === undefined) return {}
  if (typeof cnf === 'object' && cnf !== null && !Array.isArray(cnf)) {
    const { jkt, 'x5t#S256': x5t } = cnf as { jkt?: unknown; 'x5t#S256'?: unknown }
    const isReadable = [jkt, x5t].every((value) => value === undefined || typeof value === 'string')
    if (isReadable && (jkt !== undefined || x5t !== undefined)) return { jkt, x5t } as Confirmation
  }
  throw invalidToken('The token is bound to something that cannot be verified here.')
}

/** Beyond the time for which a proof is good: it may wait for its turn to be looked up. In ms. */
const graceMs = 10_000

/**
 * A token that is bound to a key or a certificate is good only with a proof of it, on every route: by a DPoP proof (RFC
 * 9449 §7) or by the certificate of the connection (RFC 8705 §3). Nonces are mandatory, so that proofs are not made in
 * advance, and each proof is good once.
 */
export const createRequireProof = ({ proofs, now }: RequireProofParts): Stage<RoutedRequest> => {
  const importKey = createProofKeys()
  const proveKey = (context: RoutedRequest, records: ProofRecords, token: string, thumbprint: string) => {
    const { request, headers, incoming } = context
    const { nonces, passed } = records
    const time = now().getTime()
    const nonce = nonces.current(time)
    if (headers.dpop === undefined) throw invalidProof('The request has no DPoP proof.', nonce)
    const { jti, iat } = verified(headers.dpop, nonce, {
      method: request.method,
      target: targetUriOf(request),
      namesTarget,
      accessToken: token,
      thumbprint,
      nowSeconds: toSeconds(new Date(time)),
      importKey,
      checkNonce(given) {
        const good = nonces.check(given, time)
        if (good === undefined) throw proofNeedsNonce(nonce)
        if (good === 'late') context.answerFields = { ...context.answerFields, 'dpop-nonce': nonce }
      },
    })
    // By `jti`, since one proof may be spelt in several ways: of an ECDSA signature there are two.
    const id = hash('sha256', `${thumbprint} ${jti}`, 'base64url').slice(0, 22)
    if (context.next && passed.get(incoming) === id) return
    const accept = (use: ProofUse) => {
      if (use === 'again') throw invalidProof('The DPoP proof was used before.', nonce)
      if (use === 'full') throw proofNeedsNonce(nonce)
      if (context.next) passed.set(incoming, id)
    }
    const use = records.use({ id, until: (iat + proofSeconds + 1) * 1_000 + graceMs }, time)
    if (!(use instanceof Promise)) return accept(use)
    return use.then(accept, (cause: unknown) => {
      throw problem('dpop_unavailable', { cause, headers: { 'retry-after': '1' } })
    })
  }

  return (context) => {
    const { principal, route, headers, tls } = context
    const cnf = principal?.claims['cnf']
    if (cnf === undefined && route.dpop === undefined) return
    if (!principal) return
    const { jkt, x5t } = confirmationOf(cnf)
    if (x5t !== undefined && x5t !== tls?.clientCertificate.thumbprint) {
      throw invalidToken('The token is bound to a client certificate, which the connection does not have.')
    }
    const { scheme, token } = accessTokenOf(headers.authorization, route)
    if (jkt === undefined) {
      if (scheme === 'dpop') throw invalidToken('The token is not bound to a key, as the scheme DPoP needs it.')
      return
    }
    if (scheme !== 'dpop' || !proofs) throw invalidToken('The token is bound to a key, and no bearer token.')
    return proveKey(context, proofs, token, jkt)
  }
}

const verified = (proof: string, nonce: string, demand: Parameters<typeof verifyProof>[1]) => {
  try {
    return verifyProof(proof, demand)
  } catch (error) {
    if (error instanceof JwtError) throw invalidProof(error.message, nonce)
    throw error
  }
}
