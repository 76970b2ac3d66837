/**
 * The query without `access_token` (RFC 6750 §2.3), everything else as it was: queries end up in logs, so nothing
 * behind the gateway gets its token from there. In every spelling that some server reads as that name: escaped; in
 * capitals (ASP.NET); `access.token`, `access token`, `access[token`, or with anything behind a NUL (PHP); in brackets
 * (qs, Rack); after a second `?` (URLSearchParams); or behind a semicolon, which some take for `&`.
 */
export const withoutAccessToken = (query: string, decode: (text: string) => string): string => {
  if (!/token|%/i.test(query)) return query
  const isToken = (part: string) => tokenName.test(decode(part))
  const pairs = query.slice(1).split('&')
  const kept = pairs.flatMap((pair) => {
    const parts = pair.split(';')
    const others = parts.filter((part) => !isToken(part))
    return others.length === 0 ? [] : [others.length < parts.length ? others.join(';') : pair]
  })
  if (kept.join('&').length === query.length - 1) return query
  return kept.length === 0 ? '' : `?${kept.join('&')}`
}

/** With `u`, letters that other servers fold to ASCII are folded here too (U+017F, U+212A). */
const tokenName = /^[ ?[\]]*access[_. []token *(?:[=[\]\0]|$)/iu
