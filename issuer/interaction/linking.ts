import { domainOf } from '../directory/organizations/jit/jit.ts'

/** What is known when a provider has said who somebody is. */
export interface LinkingFacts {
  /** Who has this identity. */
  holderId: string | undefined
  assertion: {
    kind: 'social' | 'sso'
    /** See `vouchedEmail`. */
    email: string | undefined
  }
  /** Whose address that is, in any case of its letters. */
  account: AddressedAccount | undefined
  /** `socialSignIn.automaticAccountLinking`. */
  linksAutomatically: boolean
}

export interface AddressedAccount {
  id: string
  isEmailVerified: boolean
  hasSecondFactor: boolean
  /** They are somebody else at this provider: it may have given the address to another person. */
  isElsewhere: boolean
}

/** Whom an identity at a provider stands for. */
export type Linking =
  /** It is theirs already. */
  | { outcome: 'known'; userId: string }
  /** It becomes theirs, by the address. */
  | { outcome: 'by_address'; userId: string }
  /** They have the address: it becomes theirs when they have proven the account here. */
  | { outcome: 'prove_first'; userId: string }
  /** Nobody here. */
  | { outcome: 'new' }

/**
 * Identities name their people; addresses do not, since whoever registers one somewhere else could take over an account
 * here, or wait in one for its owner. But an enterprise speaks for its own domain. And where the operator says so, an
 * address will do that both sides have verified, of an account that nothing more protects.
 */
export const linkingOf = ({ holderId, assertion, account, linksAutomatically }: LinkingFacts): Linking => {
  if (holderId !== undefined) return { outcome: 'known', userId: holderId }
  if (account === undefined || assertion.email === undefined) return { outcome: 'new' }
  const { id: userId, isEmailVerified, hasSecondFactor, isElsewhere } = account
  const isSafe = assertion.kind === 'sso' || (linksAutomatically && isEmailVerified && !hasSecondFactor)
  return { outcome: isSafe && !isElsewhere ? 'by_address' : 'prove_first', userId }
}

/**
 * The address that a provider vouches for: one that it says is the person's, and, of an enterprise connector, in a
 * domain of its own. Any other is nobody's.
 */
export const vouchedEmail = (
  assertion: { kind: 'social' | 'sso'; email?: string | undefined; emailVerified: boolean },
  domains: readonly string[],
): string | undefined => {
  const { kind, email, emailVerified } = assertion
  // Exactly true: a text, such as "false", is no answer.
  if (email === undefined || (emailVerified as unknown) !== true) return undefined
  return kind === 'social' || domains.includes(domainOf(email)) ? email : undefined
}
