import { z } from 'zod'
import { type Acr, acrs } from '../tokens/sessions/session.ts'

/** What a person can prove, as rows. A kind says what it adds to `amr` (RFC 8176) and what sort of factor it is. */
interface ProofKind {
  amr: readonly string[]
  /** Two of different categories are multi-factor authentication. */
  category: 'knowledge' | 'possession'
  /** Resists phishing. */
  resistsPhishing?: true
  /** It tells who the person is. The others only add to one that does. */
  identifies: boolean
  /** Its name in the record that custom claims scripts see. */
  recordType: string
}

export const proofKinds = {
  password: { amr: ['pwd'], category: 'knowledge', identifies: true, recordType: 'Password' },
} as const satisfies Record<string, ProofKind>

export type ProofKindName = keyof typeof proofKinds

/** Verified, not used yet, for signing in. */
export interface Proof {
  id: string
  kind: ProofKindName
  userId: string
  data: ProofData
}

export const proofData = z.object({
  identifier: z.object({ type: z.enum(['username', 'email', 'phone']), value: z.string() }).optional(),
  /** Of the password's digest that it was held against: it proves nothing once there is another. */
  digest: z.string().optional(),
})
export type ProofData = z.output<typeof proofData>
export type IdentifierType = NonNullable<ProofData['identifier']>['type']

const kindOf = ({ kind }: Pick<Proof, 'kind'>): ProofKind => proofKinds[kind]

export const identifies = (proof: Pick<Proof, 'kind'>): boolean => kindOf(proof).identifies

/** How somebody with these proofs is authenticated. At least one. */
export const authenticationBy = (proofs: readonly Pick<Proof, 'kind'>[]): { amr: string[]; acr: Acr } => {
  const kinds = proofs.map(kindOf)
  const isMultiFactor = new Set(kinds.map(({ category }) => category)).size > 1
  const [basic, mfa, phr] = acrs
  const strong = kinds.some(({ resistsPhishing }) => resistsPhishing) ? phr : mfa
  return {
    amr: [...new Set([...kinds.flatMap(({ amr }) => amr), ...(isMultiFactor ? ['mfa'] : [])])],
    acr: isMultiFactor ? strong : basic,
  }
}

/** The strongest class that these kinds reach together. */
export const reachableAcr = (kinds: readonly ProofKindName[]): Acr =>
  authenticationBy(kinds.map((kind) => ({ kind }))).acr

/** Whether `acr` is one of those asked for, or stronger than one. Nothing known asked for: yes. */
export const satisfiesAcr = (acr: Acr, asked: readonly string[]): boolean => {
  const known = asked.filter((name): name is Acr => acrs.some((one) => one === name))
  return known.length === 0 || known.some((name) => acrs.indexOf(acr) >= acrs.indexOf(name))
}
