import { textAt } from '../live/decision-row.ts'

/** A request as its decision keeps it. */
export interface KeptRequest {
  input?: unknown
  erased?: readonly string[] | undefined
  masked?: readonly string[] | undefined
}

/** The same request for a shell, with a token from `$TOKEN`; undefined where not even its address is known. */
export const curlOfDecision = ({ input, erased = [], masked = [] }: KeptRequest): string | undefined => {
  const request = Object(input).request as unknown
  const [method, host, path] = ['method', 'host', 'path'].map((name) => textAt(request, name))
  if (method === undefined || host === undefined || path === undefined) return undefined
  const { query, headers, body } = Object(request) as Record<string, unknown>
  const search = new URLSearchParams(pairsOf(query)).toString()
  const url = `${textAt(request, 'scheme') ?? schemeOf(host)}://${host}${path}${search && `?${search}`}`
  const fields = pairsOf(headers).filter(([name]) => name !== 'authorization')
  const isGlob = /[[\]{}]/.test(url)
  const lines = [
    `curl ${isGlob ? '-g ' : ''}${method === 'GET' ? '' : method === 'HEAD' ? '-I ' : `-X ${method} `}${quoted(url)}`,
    ...(Object(input).token === undefined ? [] : ['  -H "Authorization: Bearer $TOKEN"']),
    ...fields.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d ${quoted(JSON.stringify(body))}`]),
  ]
  const hidden = [...erased, ...masked].filter((pointer) => pointer.startsWith('/input/request/'))
  const missing = hidden.length > 0 ? `# Not kept by the gateway, put yours: ${hidden.join(', ')}\n` : ''
  return missing + lines.join(' \\\n')
}

/** Until a route is known the scheme is not in the record. */
const schemeOf = (host: string): string => (/^(localhost|127\.|\[::1\])/.test(host) ? 'http' : 'https')

const pairsOf = (fields: unknown): [string, string][] =>
  Object.entries(Object(fields)).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, String(value)]),
  )

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
