/**
 * Cookies by the origin that set them. Ours are host-only with `Path=/` (RFC 6265bis §4.1.3.2): nothing else is needed.
 */
export interface CookieJar {
  /** Lines of `Set-Cookie`. */
  store(url: URL, lines: readonly string[]): void
  /** For `Cookie`; empty when there are none. */
  header(url: URL): string
}

export const createCookieJar = ({ now = Date.now }: { now?: () => number } = {}): CookieJar => {
  const origins = new Map<string, Map<string, string>>()
  return {
    store({ origin }, lines) {
      const cookies = origins.get(origin) ?? new Map<string, string>()
      origins.set(origin, cookies)
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
        const equals = pair.indexOf('=')
        if (equals <= 0) continue
        const name = pair.slice(0, equals)
        if (isOver(attributes, now())) cookies.delete(name)
        else cookies.set(name, pair.slice(equals + 1))
      }
    },
    header: ({ origin }) => [...(origins.get(origin) ?? [])].map(([name, value]) => `${name}=${value}`).join('; '),
  }
}

/** RFC 6265bis §5.7: `Max-Age` wins over `Expires`. */
const isOver = (attributes: readonly string[], now: number): boolean => {
  const attribute = (name: string) =>
    attributes.findLast((one) => one.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1)
  const maxAge = attribute('max-age')
  if (maxAge !== undefined) return Number(maxAge) <= 0
  const expires = attribute('expires')
  return expires !== undefined && Date.parse(expires) <= now
}
