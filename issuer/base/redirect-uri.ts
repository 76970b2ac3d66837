/**
 * Where a browser may be sent back to: redirect URIs and post-logout redirect URIs. They are compared byte for byte
 * (RFC 9700 §2.1), never normalised: two parsers may read one spelling differently.
 */

// RFC 8252 §7.3. What follows the host can only be a port, a path or a query.
const loopback = /^http:\/\/(?<host>127\.0\.0\.1|\[::1\]|localhost)(?::(?<port>[1-9]\d{0,4}))?(?<rest>(?:[/?].*)?)$/s

const readLoopback = (uri: string) => {
  const { host, port, rest } = loopback.exec(uri)?.groups ?? {}
  return host === undefined || Number(port ?? 80) > 65_535 ? undefined : { host, rest }
}

/** `http` on this machine: what a native application listens on, and what a developer's browser may be sent to. */
export const isLoopbackUri = (uri: string): boolean => readLoopback(uri) !== undefined

/**
 * Whether `presented` is one of those registered. A native application takes a port that is free at the moment, so for
 * it the port of a loopback address does not count (RFC 8252 §7.3); host, path and query do.
 */
export const matchesRedirectUri = (
  registered: readonly string[],
  presented: string,
  { native }: { native: boolean },
): boolean => {
  if (registered.includes(presented)) return true
  const asked = native ? readLoopback(presented) : undefined
  if (!asked) return false
  return registered.some((uri) => {
    const known = readLoopback(uri)
    return known !== undefined && known.host === asked.host && known.rest === asked.rest
  })
}
