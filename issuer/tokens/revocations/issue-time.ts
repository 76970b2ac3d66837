/** Beyond this the clocks of issuer and database differ too much for a later time to help, in ms. */
const mostMs = 5_000

/**
 * When a token is issued, as it will say itself: `now`, or the first second that is not revoked. `iat` counts whole
 * seconds, so a client that asks with its new secret in the second in which the old one was removed would else get a
 * token that is revoked already.
 */
export const issueTime = (now: Date, revokedUntil: number | null): Date => {
  const earliest = revokedUntil === null ? 0 : (revokedUntil + 1) * 1000
  return earliest > now.getTime() && earliest - now.getTime() <= mostMs ? new Date(earliest) : now
}
