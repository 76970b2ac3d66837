import { refuse } from '../request/canonical-target.ts'
import { eachField, valuesOf } from '../request/field-list.ts'
import { connectionOptions, foldedName } from '../request/headers.ts'
import { identityFields } from '../request/principal.ts'
import { answered, type DecidedRequest, type Stage } from '../request/request-context.ts'
import type { CheckAnswer } from './check-answer.ts'
import { headerToSet } from './messages.ts'
import { checkedOf } from './read-check.ts'

/** The last stage: a yes, with what Envoy changes of the request so that its upstream gets what the gateway's would. */
export const createAllowCheck = (): Stage<DecidedRequest> => (context) => {
  const answer = context.response as unknown as CheckAnswer
  if (answer.destroyed) return answered
  const set = fieldsToSet(context)
  answer.allow({
    headers: Object.entries(set).map(([name, value]) => headerToSet(name, value)),
    headersToRemove: fieldsToRemove(context, set),
    queryParametersToRemove: parametersToRemove(context),
  })
  return answered
}

const fieldsToSet = (context: DecidedRequest): Record<string, string> => {
  const { decision, principal, assertion, headers, route, id } = context
  const set: Record<string, string> = { ...decision.headers }
  eachField(principal?.identityHeaders ?? [], (name, value) => {
    set[name] = value
  })
  if (assertion !== undefined) set['x-auth-assertion'] = assertion
  // The access token in place of a personal one; nothing where the route keeps it from the upstream.
  if (headers.authorization !== undefined && route.forwardAuthorization) set['authorization'] = headers.authorization
  set['x-request-id'] = id
  const cookies = headers.issuerCookies ? valuesOf(headers.forwardable, 'cookie') : []
  if (cookies.length > 0) set['cookie'] = cookies.join('; ')
  return set
}

/**
 * Everything that the gateway as a proxy would not have passed on. Envoy removes after it has set, so nothing is in
 * both.
 */
const fieldsToRemove = (context: DecidedRequest, set: Readonly<Record<string, string>>): string[] => {
  const { headers, decision } = context
  const { rawHeaders } = checkedOf(context)
  const removed = new Set(identityFields)
  const kept = new Set<string>()
  eachField(headers.forwardable, (name) => kept.add(name))
  const ours = Object.keys(decision.headers).map(foldedName)
  eachField(rawHeaders, (name, value) => {
    const lower = name.toLowerCase()
    if (lower === 'connection') refuseNominations(value, rawHeaders)
    if (kept.has(lower) ? ours.includes(foldedName(lower)) : !isEnvoys(lower)) removed.add(lower)
  })
  removed.add('authorization')
  for (const name in set) removed.delete(name)
  return [...removed]
}

/**
 * Envoy keeps the field `Connection` of a request that asks for another protocol, and whoever is behind it may drop the
 * fields that are listed there: those that say who asks, too.
 */
const refuseNominations = (connection: string, rawHeaders: readonly string[]): void => {
  const options = connectionOptions(connection)
  if (!options || !rawHeaders.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'upgrade')) return
  for (const option of options) {
    if (!ofConnection.has(option)) throw refuse('The Connection field of an upgrade lists a header field.')
  }
}
const ofConnection: ReadonlySet<string> = new Set(['upgrade', 'keep-alive', 'close', 'te', ''])

/** What Envoy itself writes, or needs to forward the request. */
const isEnvoys = (lower: string): boolean => envoys.has(lower) || lower.startsWith('x-envoy-')
const envoys: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'transfer-encoding', 'expect', 'upgrade', 'te', 'trailer', 'http2-settings'],
  ...['keep-alive', 'proxy-connection', 'via', 'x-request-id'],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-client-cert'],
])

/** Of an access token: in the one spelling that Envoy can be told, which is the one of RFC 6750 §2.3. */
const parametersToRemove = (context: DecidedRequest): string[] => {
  const { request } = context
  if (!request.accessToken) return []
  const { url } = checkedOf(context)
  const query = url.slice(url.indexOf('?') + 1)
  const rest = query.split('&').filter((pair) => !pair.startsWith('access_token='))
  const left = rest.length > 0 ? `?${rest.join('&')}` : ''
  if (left !== request.query) throw refuse('The query holds an access token in a spelling that is not served.')
  return ['access_token']
}
