/**
 * The query without `access_token` (RFC 6750 §2.3), everything else as it was: queries end up in logs, so nothing
 * behind the gateway gets its token from there. In every spelling that servers read as that name: escaped, in capitals,
 * with a dot or a blank, as a list, or behind a semicolon, which some take for `&`.
 */
export const withoutAccessToken = (query: string, decode: (text: string) => string): string => {
  if (!/token|%/i.test(query)) return query
  const isToken = (part: string) => /^ *access[_. ]token *(?:[=[]|$)/i.test(decode(part))
  const pairs = query.slice(1).split('&')
  const kept = pairs.flatMap((pair) => {
    const parts = pair.split(';')
    const others = parts.filter((part) => !isToken(part))
    return others.length === 0 ? [] : [others.length < parts.length ? others.join(';') : pair]
  })
  if (kept.join('&').length === query.length - 1) return query
  return kept.length === 0 ? '' : `?${kept.join('&')}`
}
