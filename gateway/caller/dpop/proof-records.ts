import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createNonces, type Nonces } from '../../../platform/dpop/nonces.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { countedUsedProofs, type ProofUse, type UsedProof } from './used-proofs.ts'

/**
 * What is known of proofs. Nonces and used proofs begin and end together: after a restart no proof of before is good,
 * so none needs to be remembered.
 */
export interface ProofRecords {
  readonly nonces: Nonces
  /** Rejects when it cannot be known. `now` in ms. */
  use(proof: UsedProof, now: number): ProofUse | Promise<ProofUse>
  /** For requests that pass several guards of an application: the proof that is already known to be good. */
  readonly passed: WeakMap<IncomingMessage, string>
  close(): void
}

export const newNonceKey = () => randomBytes(32)

/** Those of a process of its own. */
export const openProofRecords = ({ metrics }: { metrics: Metrics }): ProofRecords => ({
  ...countedUsedProofs(metrics),
  nonces: createNonces(newNonceKey()),
  passed: new WeakMap(),
})
