import type { IncomingMessage } from 'node:http'
import type { RequestAuth } from './express.ts'
import { canonicalTarget } from './request/canonical-target.ts'
import { eachField, type FieldList, filterFields, lowerCaseNames, valuesOf } from './request/field-list.ts'
import { foldedName } from './request/headers.ts'
import { nameRecord } from './request/name-record.ts'
import type { DecidedRequest } from './request/request-context.ts'

/** A request on its way through a framework. */
export type GuardedRequest = IncomingMessage & { originalUrl?: string; baseUrl?: string; auth?: RequestAuth }

/**
 * The request target that handlers behind the guard will see. Frameworks cut the mount path off `url`; Express keeps it
 * in `baseUrl`. If an earlier middleware rewrote `url`, `originalUrl` no longer ends with it.
 */
export const targetOf = ({ originalUrl, baseUrl, url: rest = '' }: GuardedRequest): string => {
  if (originalUrl === undefined) return rest
  const whole = (baseUrl ?? '') + rest
  // Of a target without anything behind the mount path Express makes `/`.
  const ends = [whole, (baseUrl ?? '') + rest.slice(1)]
  const mounted = baseUrl === undefined ? ends.some((end) => originalUrl.endsWith(end)) : ends.includes(originalUrl)
  return mounted ? originalUrl : whole
}

/** Gives the handlers behind the guard the request that was decided on, whichever way they look at it. */
export const rewriteRequest = (request: GuardedRequest, context: DecidedRequest): void => {
  const { request: canonical, principal, decision, response, answerFields = {} } = context
  for (const [name, value] of Object.entries(answerFields)) response.setHeader(name, value)
  request.originalUrl = canonical.path + canonical.query
  const rest = canonicalTarget(request.url ?? '')
  request.url = rest.path + rest.query
  if (principal) {
    request.auth = { ...(principal.input as Required<typeof principal.input>), claims: principal.claims, decision }
  }
  replaceFields(request, context)
}

/**
 * Fields that stay although the gateway would make them anew: frameworks and handlers need those of this very request.
 */
const kept = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'expect', 'upgrade', 'via', 'x-request-id'],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'],
])

const replaceFields = (request: IncomingMessage, { headers, route, principal, decision }: DecidedRequest): void => {
  const ours = new Map(Object.entries(decision.headers))
  eachField(principal?.identityHeaders ?? [], (name, value) => void ours.set(name, value))
  const { forwardable, issuerCookies, authorization, dpop } = headers
  const cookies = issuerCookies ? valuesOf(forwardable, 'cookie') : []
  if (cookies.length > 0) ours.set('cookie', cookies.join('; '))
  // The access token in place of a personal one; nothing where it is to be kept from the handlers.
  if (route.forwardAuthorization) {
    if (authorization !== undefined) ours.set('authorization', authorization)
    if (dpop !== undefined) ours.set('dpop', dpop)
  }

  const { rawHeaders, headers: fields } = request
  const connection = ownOptions(fields.connection ?? '')
  if (connection !== '') ours.set('connection', connection)
  const names = new Set(kept)
  eachField(forwardable, (name) => void names.add(name))
  const raw = filterFields(rawHeaders, (received) => {
    const name = received.toLowerCase()
    const stays = names.has(name) && !ours.has(name) && !ours.has(foldedName(name))
    if (!stays) delete fields[name]
    return stays
  })
  for (const [name, value] of ours) {
    fields[name] = value
    raw.push(name, value)
  }
  request.rawHeaders = raw
  request.headersDistinct = distinct(raw)
}

const options = new Set(['close', 'keep-alive', 'upgrade'])

/**
 * Without the fields that `Connection` lists: a proxy behind the guard would drop them, even those that say who is
 * asking.
 */
const ownOptions = (connection: string): string =>
  connection
    .split(',')
    .map((option) => option.trim())
    .filter((option) => options.has(option.toLowerCase()))
    .join(', ')

/** Node would make it of as many fields as it received, or has made it before. */
const distinct = (raw: FieldList): Record<string, string[]> => {
  const fields = nameRecord<string[]>()
  eachField(lowerCaseNames(raw), (name, value) => {
    const values = fields[name]
    if (values) values.push(value)
    else fields[name] = [value]
  })
  return fields
}
