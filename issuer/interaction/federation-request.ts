import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Envelope } from '../../platform/envelope.ts'
import { randomToken } from '../../platform/ids.ts'

/**
 * What a request to a provider leaves until its answer comes: secret (the verifier of PKCE is in it), and sealed for
 * the one proof that waits.
 */
const federationRequest = z.object({
  connectorId: z.string(),
  redirectUri: z.string(),
  state: z.string(),
  kept: z.record(z.string(), z.unknown()),
})
export type FederationRequest = z.output<typeof federationRequest>

const contextOf = (proofId: string) => `federation:${proofId}`

export const sealRequest = (envelope: Envelope, proofId: string, request: FederationRequest): Buffer =>
  envelope.seal(Buffer.from(JSON.stringify(request)), contextOf(proofId))

export const openRequest = (envelope: Envelope, proofId: string, sealed: Buffer): FederationRequest =>
  federationRequest.parse(JSON.parse(envelope.open(sealed, contextOf(proofId)).toString()))

/** RFC 6749 §10.12: names the proof that waits, and nobody can guess it. */
export const newState = (proofId: string): string => `${proofId}.${randomToken()}`

/** The proof that a `state` names; undefined for one that we never made. */
export const proofIdOf = (state: string | undefined): string | undefined =>
  /^([0-9a-z]{21})\.[\w-]{43}$/.exec(state ?? '')?.[1]

export const isSameText = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}
