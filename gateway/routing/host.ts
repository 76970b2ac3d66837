const defaultPort = { http: ':80', https: ':443' }

/**
 * The canonical form of a `Host` field: lower-case, without the default port and without the final dot of a full name.
 * `Example.test.:80` → `example.test`. Undefined: it is none as RFC 9110 §7.2 has it, or holds escapes.
 */
export const parseHost = (raw: string, scheme: 'http' | 'https'): string | undefined => {
  const [, plain, bracketed, port] =
    /^(?:([a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_])?)\.?|(\[[0-9a-f:.]{2,45}\]))(:\d{1,5})?$/.exec(raw.toLowerCase()) ??
    []
  const name = plain ?? bracketed
  if (name === undefined || name.includes('..')) return undefined
  if (port === undefined || port === defaultPort[scheme]) return name
  return Number(port.slice(1)) <= 65_535 ? name + port : undefined
}
