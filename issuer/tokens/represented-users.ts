import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import type { Act } from './access-token.ts'

/**
 * The users a token speaks for: its subject, unless that is the client itself (RFC 9068 §2.2), and everybody in its
 * `act` chain.
 */
export const representedUsers = ({
  sub,
  client_id,
  act,
}: Pick<VerifiedClaims, 'sub' | 'client_id' | 'act'>): string[] => [
  ...(sub === client_id ? [] : [sub]),
  ...actorsOf(act),
]

/** The ids of an `act` chain, the present actor first. */
export const actorsOf = (act: Act | undefined): string[] => (act ? [act.sub, ...actorsOf(act.act)] : [])
