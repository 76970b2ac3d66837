/**
 * Which headers a policy may set on the upstream request: none that says who the caller is or where it comes from, none
 * that frames, routes or authenticates the message, none that changes its method or path after they were decided on.
 */
export const isPermittedHeader = ([name, value]: readonly [string, string]): boolean => {
  const lower = name.toLowerCase()
  return (
    // Stricter than a token of RFC 9110 §5.6.2: some upstreams read `x_auth_sub` as `x-auth-sub`.
    /^[a-z][a-z0-9-]{0,63}$/.test(lower) &&
    !forbidden.has(lower) &&
    !forbiddenPrefixes.some((prefix) => lower.startsWith(prefix)) &&
    value.length <= 4096 &&
    // RFC 9110 §5.5, ASCII only, no blank at either end.
    /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/.test(value)
  )
}

const forbiddenPrefixes = ['x-auth-', 'x-forwarded-', 'x-original-', 'x-rewrite-', 'x-envoy-', 'proxy-', 'sec-', ':']

const forbidden = new Set([
  // framing (RFC 9112) and hop-by-hop (RFC 9110 §7.6.1)
  ...['host', 'content-length', 'transfer-encoding', 'trailer', 'te', 'expect', 'upgrade', 'http2-settings'],
  ...['connection', 'keep-alive', 'content-encoding', 'content-type', 'content-range'],
  // credentials
  ...['authorization', 'cookie', 'cookie2', 'set-cookie', 'www-authenticate', 'authentication-info', 'x-api-key'],
  // names of who forwarded the request
  ...['forwarded', 'via', 'x-forwarded', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip'],
  ...['cf-connecting-ip', 'fastly-client-ip', 'client-ip', 'x-request-id', 'x-remote-user', 'remote-user'],
  // another method or target than the decided one
  'proxy',
  ...['x-http-method', 'x-http-method-override', 'x-method-override', 'x-rewrite', 'x-original'],
])
