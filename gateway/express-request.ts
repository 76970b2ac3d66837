import type { IncomingMessage } from 'node:http'
import type { RequestAuth } from './express.ts'
import { canonicalTarget } from './request/canonical-target.ts'
import { foldedName } from './request/headers.ts'
import { nameRecord } from './request/name-record.ts'
import type { Exchange } from './request/request-context.ts'

/** A request on its way through a framework. */
export type GuardedRequest = IncomingMessage & { originalUrl?: string; baseUrl?: string; auth?: RequestAuth }

/**
 * The target that what is behind the guard will act on. Frameworks take the path that a guard is mounted at off `url`, and Express keeps it
 * in `baseUrl`; an earlier middleware may have rewritten `url`, and then it is no part of `originalUrl` any more.
 */
export const targetOf = ({ originalUrl, baseUrl, url }: GuardedRequest): string => {
  const rest = url!
  if (originalUrl === undefined) return rest
  // Of a target without anything behind the mount path Express makes `/`.
  const whole = [rest, rest.slice(1)].map((end) => (baseUrl ?? '') + end)
  const mounted = baseUrl === undefined ? whole.some((end) => originalUrl.endsWith(end)) : whole.includes(originalUrl)
  return mounted ? originalUrl : whole[0]!
}

/** Gives the handlers behind the guard the request that was decided on, whichever way they look at it. */
export const admit = (request: GuardedRequest, exchange: Exchange): void => {
  const { path, query } = exchange.request!
  const { principal, decision, response, answerFields } = exchange
  for (const name in answerFields) response.setHeader(name, answerFields[name]!)
  request.originalUrl = path + query
  const rest = canonicalTarget(request.url!)
  request.url = rest.path + rest.query
  if (principal && decision) {
    request.auth = { ...(principal.input as Required<typeof principal.input>), claims: principal.claims, decision }
  }
  replaceFields(request, exchange)
}

/** Fields that stay although the gateway would make them anew: frameworks and handlers need those of this very request. */
const kept = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'expect', 'upgrade', 'via', 'x-request-id'],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'],
])

const replaceFields = (request: IncomingMessage, { headers, route, principal, decision }: Exchange): void => {
  const ours = new Map(Object.entries(decision?.headers ?? {}))
  const identity = principal?.identityHeaders ?? []
  for (let index = 0; index < identity.length; index += 2) ours.set(identity[index]!, identity[index + 1]!)
  const cookies = headers!.forwardable.filter((_, index, flat) => flat[index - 1] === 'cookie' && index % 2 === 1)
  if (headers!.issuerCookies && cookies.length > 0) ours.set('cookie', cookies.join('; '))
  // The access token in place of a personal one; nothing where it is to be kept from the handlers.
  const { authorization } = headers!
  if (authorization !== undefined && route!.forwardAuthorization) ours.set('authorization', authorization)

  const { rawHeaders, headers: fields } = request
  const connection = ownOptions(fields.connection ?? '')
  if (connection !== '') ours.set('connection', connection)
  const forwardable = new Set(headers!.forwardable.filter((_, index) => index % 2 === 0))
  const raw: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    if ((forwardable.has(name) || kept.has(name)) && !ours.has(name) && !ours.has(foldedName(name)))
      raw.push(rawHeaders[index]!, rawHeaders[index + 1]!)
    else delete fields[name]
  }
  for (const [name, value] of ours) {
    fields[name] = value
    raw.push(name, value)
  }
  request.rawHeaders = raw
  request.headersDistinct = distinct(raw)
}

const options = new Set(['close', 'keep-alive', 'upgrade'])

/** Without the fields that `Connection` lists: a proxy behind the guard would drop them, even those that say who is asking. */
const ownOptions = (connection: string): string =>
  connection
    .split(',')
    .map((option) => option.trim())
    .filter((option) => options.has(option.toLowerCase()))
    .join(', ')

/** Node would make it of as many fields as it received, or has made it before. */
const distinct = (raw: readonly string[]): Record<string, string[]> => {
  const fields = nameRecord<string[]>()
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!.toLowerCase()
    const values = fields[name]
    if (values) values.push(raw[index + 1]!)
    else fields[name] = [raw[index + 1]!]
  }
  return fields
}
