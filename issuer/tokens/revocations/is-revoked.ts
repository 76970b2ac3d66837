/** What a token carries that may be revoked. `iat` in seconds, with a fraction where it is known. */
export interface RevocableToken {
  jti?: string | null | undefined
  sid?: string | null | undefined
  /** The subject and everybody in the `act` chain. */
  people: readonly string[]
  clientId: string | null | undefined
  iat: number
}

/** A revocation as `revocationsOf` reads it. `issuedBefore` in seconds, with its fraction. */
export interface FoundRevocation {
  kind: 'jti' | 'sid' | 'sub' | 'client'
  value: string
  issuedBefore: number | null
}

const concerns: Record<FoundRevocation['kind'], (token: RevocableToken, value: string) => boolean> = {
  jti: ({ jti }, value) => jti === value,
  sid: ({ sid }, value) => sid === value,
  sub: ({ people }, value) => people.includes(value),
  client: ({ clientId }, value) => clientId === value,
}

/** Whether one of these revocations, found by any of its values, concerns the token. */
export const isRevokedBy = (revocations: readonly FoundRevocation[], token: RevocableToken): boolean =>
  revocations.some(
    ({ kind, value, issuedBefore }) =>
      concerns[kind](token, value) && (issuedBefore === null || token.iat <= issuedBefore),
  )

/** The last second whose tokens are revoked for somebody among those found; see `issueTime`. */
export const peopleRevokedUntil = (revocations: readonly FoundRevocation[]): number | null => {
  const times = revocations.flatMap(({ kind, issuedBefore }) => (kind === 'sub' ? [Math.floor(issuedBefore ?? 0)] : []))
  return times.length === 0 ? null : Math.max(...times)
}
