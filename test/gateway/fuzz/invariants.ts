import { parse as parseYaml } from 'yaml'
import type { PolicyInput } from '../../../policies/decide.ts'
import type { StrictRequest } from '../../support/strict-upstream.ts'

/** Header fields that the routes of the fuzzed gateway hand to the policy. */
export const policyHeaders = ['x-policy', 'accept-language']

const neverUpstream = new Set([
  ...[
    'keep-alive',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'http2-settings',
    'proxy-connection',
    'proxy-authorization',
    'proxy',
  ],
  ...['forwarded', 'x-original-url', 'x-rewrite-url', 'x-http-method-override'],
])

/** One spelling for what careless upstreams read as one name. */
const folded = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '-')

/** A query taken apart as `input.request.query` must have it, by other means than the gateway's. */
const queryOf = (target: string): Record<string, string[]> => {
  const found: Record<string, string[]> = Object.create(null)
  const question = target.indexOf('?')
  if (question < 0) return found
  for (const [name, value] of new URLSearchParams(target.slice(question))) found[name] = [...(found[name] ?? []), value]
  return found
}

/** A body of a route whose policy sees it, by a reader that has nothing in common with the gateway's. */
const bodyOf = ({ target, body }: StrictRequest): unknown => {
  if (!target.startsWith('/json/') || body === '') return undefined
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(body, 'latin1'))
    // Refuses a name that stands twice; whether it is JSON at all only JSON.parse can say.
    parseYaml(text, { schema: 'json' })
    return JSON.parse(text)
  } catch (error) {
    return `${body}: ${error}`
  }
}

/**
 * "The upstream sees the request that the policy saw": what differs between one and the other, in words. A well-behaved
 * gateway gives an empty list.
 */
export const differences = (seen: StrictRequest, input: PolicyInput): string[] => {
  const found: string[] = []
  const expect = (what: string, actual: unknown, wanted: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(wanted)) {
      found.push(`${what}: upstream ${JSON.stringify(actual)}, policy ${JSON.stringify(wanted)}`)
    }
  }
  const values = (name: string) => seen.fields.filter(([one]) => folded(one) === name).map(([, value]) => value)
  const [path = ''] = seen.target.split('?', 1)

  expect('method', seen.method, input.request.method)
  expect('path', path, input.request.path)
  expect('segments', path === '/' ? [] : path.slice(1).split('/').map(decodeURIComponent), input.request.segments)
  // Nothing is folded here, and parameters of segments are no part of a name.
  expect(
    'folded',
    input.request.segments.map((one) => one.split(';', 1)[0]),
    input.request.folded.segments,
  )
  expect('query', Object.entries(queryOf(seen.target)), Object.entries(input.request.query))
  expect('host', values('x-forwarded-host'), [input.request.host])
  expect('scheme', values('x-forwarded-proto'), [input.request.scheme])
  expect('address', values('x-forwarded-for'), [input.request.clientIp])
  for (const name of policyHeaders) expect(name, values(name), input.request.headers[name] ?? [])
  expect('body', bodyOf(seen), input.request.body)
  expect('subject', values('x-auth-sub'), input.subject ? [input.subject.id] : [])
  expect('actor', values('x-auth-act'), input.actor ? [input.actor.id] : [])
  expect('assertion', values('x-auth-assertion'), [])

  if (/access.?token/i.test(decodeURIComponent(seen.target)))
    found.push(`an access token went upstream: ${seen.target}`)
  for (const [name, value] of seen.fields) {
    if (/^cookie$/i.test(name) && /surrogate_/i.test(value)) found.push(`the cookie ${value} went upstream`)
    if (neverUpstream.has(folded(name))) found.push(`the field ${name} went upstream`)
    // undici closes after HEAD, since some servers send a body there.
    const own = seen.method === 'HEAD' ? 'close' : 'keep-alive'
    if (name.toLowerCase() === 'connection' && value !== own) found.push(`connection: ${value} went upstream`)
  }
  if (/\/\/|\\|[^\x21-\x7e]|%(?![0-9A-F]{2})|#/.test(path)) found.push(`the path ${path} is not canonical`)
  if (input.request.segments.some((segment) => /^\.\.?$/.test(segment)))
    found.push(`the path ${path} has a dot segment`)
  return found
}
