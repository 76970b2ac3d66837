import { isIP } from 'node:net'
import { uuidv7 } from '../../platform/ids.ts'
import { problem } from '../refusals/problems.ts'
import { refuse } from '../request/canonical-target.ts'
import type { CheckedRequest, HttpAttributes } from '../request/checked-request.ts'
import { type ProxyTrust, plainAddress } from '../request/client-address.ts'
import { rememberForwardedCertificate } from '../request/client-certificate.ts'
import type { RequestHeaders } from '../request/headers.ts'
import type { RequestContext, Stage } from '../request/request-context.ts'
import { checkedBody } from './checked-body.ts'
import { type CheckedFields, checkedFields } from './checked-fields.ts'

/**
 * Before `readRequest`: turns what Envoy says into a request, or refuses it where it says too little or two things.
 * `readRequest` then reads that as it reads every other one.
 */
export const createReadCheck = ({ trust }: { trust: ProxyTrust }): Stage => {
  return (context) => {
    // For refusals here; `readRequest` gives the request its own.
    context.id = uuidv7()
    const checked = checkedOf(context)
    if (!trust.trusts(checked.asker)) {
      throw problem('not_found', { detail: 'Decisions are given to trusted proxies only.' })
    }
    const { source, request, tlsSession } = checked.message.attributes ?? {}
    const http = request?.http
    if (!http) throw refuse('The check is not about an HTTP request.')
    const fields = checkedFields(http)
    requireOneReading(http, fields)
    checked.method = http.method!
    checked.url = http.path!
    checked.host = http.host!
    checked.rawHeaders = fields.list
    checked.socket.encrypted = schemeOf(http.scheme) === 'https'
    Object.defineProperty(checked.socket, 'remoteAddress', {
      value: addressOf(source?.address?.socketAddress?.address),
    })
    checked.body = checkedBody(http, fields)
    if (fields.userAgent !== undefined) checked.headers['user-agent'] = fields.userAgent
    if (source?.certificate) rememberForwardedCertificate(checked.socket, source.certificate, tlsSession?.sni)
  }
}

export const checkedOf = ({ checked }: RequestContext): CheckedRequest => {
  if (!checked) throw new Error('a check without a request to be checked')
  return checked
}

/** For `createReadRequest`. The id of Envoy, which asks, is kept: its logs and ours then name the request alike. */
export const checkedRequestLine = (context: RequestContext, { requestId }: RequestHeaders) => {
  const { method, url, host, body } = checkedOf(context)
  context.body = body
  if (requestId !== undefined && /^[\w.:-]{1,128}$/.test(requestId)) context.id = requestId
  return { method, target: url, host }
}

/** Members that say the same, and ones that Envoy leaves empty: whatever else they say, somebody else could read. */
const requireOneReading = ({ method, path, host, scheme, query, fragment }: HttpAttributes, fields: CheckedFields) => {
  if (!/^[A-Z][A-Z-]{0,31}$/.test(method ?? '')) throw refuse('The method is not one in capital letters.')
  if (!path || query || fragment) throw refuse('The check does not say the target of the request in its path alone.')
  if (!host) throw refuse('The check names no host.')
  const { pseudo, hosts } = fields
  if (differs(pseudo.get(':method'), method)) throw refuse('The method and the field :method differ.')
  if (differs(pseudo.get(':path'), path)) throw refuse('The path and the field :path differ.')
  if (differs(pseudo.get(':scheme'), scheme)) throw refuse('The scheme and the field :scheme differ.')
  for (const other of [pseudo.get(':authority'), ...hosts]) {
    if (differs(other?.toLowerCase(), host.toLowerCase())) throw refuse('The check names two hosts.')
  }
}

const differs = (field: string | undefined, told: string | undefined): boolean => field !== undefined && field !== told

const schemeOf = (scheme: string | undefined): 'http' | 'https' => {
  if (scheme === 'http' || scheme === 'https') return scheme
  throw refuse('The scheme must be http or https.')
}

/** Not the address of a socket in the file system, nor of a listener within Envoy: clients would have none. */
const addressOf = (told: string | undefined): string => {
  const address = plainAddress(told)
  if (isIP(address) === 0) throw refuse('The check does not name the address of the client.')
  return address
}
