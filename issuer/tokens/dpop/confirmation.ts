/** What a token is bound to (RFC 7800 §3.1): the thumbprint of a key (RFC 9449 §6.1). */
export interface Confirmation {
  jkt: string
}

/** Whether who proved to hold the key `jkt`, or none, may use a token with this `cnf`. One without is anybody's. */
export const isConfirmedBy = (cnf: unknown, jkt: string | undefined): boolean =>
  cnf === undefined || cnf === null || (jkt !== undefined && (cnf as { jkt?: unknown }).jkt === jkt)

/**
 * The same where the token stands in `Authorization` (RFC 9449 §7.1): one that is bound to no key is a bearer token,
 * and not sent by the scheme `DPoP`, with which comes a `jkt`.
 */
export const fitsScheme = (cnf: unknown, jkt: string | undefined): boolean =>
  isConfirmedBy(cnf, jkt) && (jkt === undefined || (cnf !== undefined && cnf !== null))
