/**
 * Cookies of the issuer and its console are sessions of people. A browser sends them to every port of their host, so an
 * API behind the gateway could take over a session that it is sent, or plant one.
 */
const issuerCookie = /^[\s=]*(?:surrogate_|__(?:host|secure)-surrogate)/i

/** A `Cookie` field without them; undefined when none is left. */
export const withoutIssuerCookies = (field: string): string | undefined => {
  const pairs = field.split(';')
  const kept = pairs.filter((pair) => !issuerCookie.test(pair))
  if (kept.length === pairs.length) return field
  return kept.join(';').trim() || undefined
}

/** The `Cookie` fields that a proxy has joined with commas, as far as cookies of the issuer stand apart. */
export const joinedCookies = (field: string): string[] =>
  field.split(/,(?=[\s=]*(?:surrogate_|__(?:host|secure)-surrogate))/i)

/** Whether a `Set-Cookie` field sets one; one without a name is sent back as its value alone (RFC 6265bis §5.5). */
export const setsIssuerCookie = (field: string): boolean => issuerCookie.test(field)

/**
 * A `Clear-Site-Data` field without what would delete them: browsers then clear every cookie of the registered domain,
 * whoever set it. Undefined when nothing is left.
 */
export const withoutClearedCookies = (field: string): string | undefined => {
  const kept = field.split(',').filter((type) => !/cookies|\*/i.test(type))
  return kept.join(',').trim() || undefined
}
