import { type SecondFactor, secondFactorNames, secondFactors } from '../../interaction/person-facts.ts'
import type { ProofKindName } from '../../interaction/proofs.ts'

/** The factors of the settings that these kinds of proof are of. */
export const factorsOf = (kinds: readonly ProofKindName[]): SecondFactor[] =>
  secondFactorNames.filter((name) => kinds.includes(secondFactors[name].proof))

/** `ada@example.com` → `a**@example.com`; `+4917012345678` → `*********5678`. */
export const masked = (address: string): string => {
  const at = address.lastIndexOf('@')
  if (at === -1) return '*'.repeat(Math.max(address.length - 4, 0)) + address.slice(-4)
  return address.slice(0, 1) + '*'.repeat(Math.max(at - 1, 2)) + address.slice(at)
}
