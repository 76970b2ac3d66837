import type { ProofKey } from '../../../platform/dpop/proof-key.ts'
import type { VerificationKey } from '../../../platform/jwt/keys.ts'

/** The key of a proof, imported. Undefined: it is no key on its curve, or too weak. */
export type ImportProofKey = (key: ProofKey, alg: string) => VerificationKey | undefined

/**
 * Remembers what it has imported: a client uses its key for every proof, and importing takes more than half as long as
 * the signature. Only for keys that a good token is bound to, so that nobody else can push them out.
 * @param most some 2 kB each; the oldest goes first.
 */
export const createProofKeys = ({ most = 5_000 } = {}): ImportProofKey => {
  const known = new Map<string, VerificationKey>()
  return (key, alg) => {
    // One key of RSA may be used with several algorithms.
    const id = `${alg} ${key.thumbprint}`
    const before = known.get(id)
    if (before) return before
    const imported = key.import()
    if (!imported) return undefined
    known.set(id, imported)
    if (known.size > most) known.delete(known.keys().next().value!)
    return imported
  }
}
