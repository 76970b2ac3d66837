import type { ServerResponse } from 'node:http'
import type { AppError } from '../platform/problem.ts'
import type { ForwardAuthSettings } from './config/settings/file.ts'
import { sendProblem } from './refusals/problem-response.ts'
import { problem } from './refusals/problems.ts'
import { refuse } from './request/canonical-target.ts'
import { eachField, lowerCaseNames, valuesOf } from './request/field-list.ts'
import type { RequestHeaders } from './request/headers.ts'
import { identityFields } from './request/principal.ts'
import { answered, type DecidedRequest, type RequestContext, type Stage } from './request/request-context.ts'

/**
 * Forward-auth: another proxy asks about each request and forwards it itself. It is asked at one path of the public
 * listener, answers only to `trustedProxies`, and decides with the same stages as the proxy. What the proxies do
 * differently is a row of `dialects`.
 */

/** The request that is asked about, as the proxy received it. */
export interface OriginalRequest {
  method: string
  target: string
  host: string | undefined
}

interface DialectRow {
  original(context: RequestContext, headers: RequestHeaders, path: string): OriginalRequest
  /** Whether the proxy knows only yes (2xx), 401 and 403, and takes everything else for a failure of its own. */
  knowsOnlyDenials: boolean
}

/** A field must come exactly once: of two, one could be the client's own. */
const onlyField = ({ incoming }: RequestContext, name: string): string => {
  const [found, ...others] = valuesOf(lowerCaseNames(incoming.rawHeaders), name)
  if (others.length > 0) throw refuse(`The proxy sent more than one ${name} field.`)
  if (found === undefined) throw refuse(`The proxy sent no ${name} field.`)
  return found
}

/** Traefik and Caddy say in `X-Forwarded-*` everything that they asked about. */
const forwardedFields = (context: RequestContext): OriginalRequest => {
  onlyField(context, 'x-forwarded-proto')
  return {
    method: onlyField(context, 'x-forwarded-method'),
    target: onlyField(context, 'x-forwarded-uri'),
    host: onlyField(context, 'x-forwarded-host'),
  }
}

const dialects = {
  // `auth_request` sends what its location says: method and target in fields of their own. The host is the Host that it
  // was told to keep, never X-Forwarded-Host, which nginx would pass on from the client.
  nginx: {
    original: (context, { host }) => {
      onlyField(context, 'x-forwarded-proto')
      const method = onlyField(context, 'x-original-method')
      return { method, target: onlyField(context, 'x-original-uri'), host }
    },
    knowsOnlyDenials: true,
  },
  traefik: { original: forwardedFields, knowsOnlyDenials: false },
  caddy: { original: forwardedFields, knowsOnlyDenials: false },
  // ext_authz over HTTP sends the request's own method and Host, and its target behind `path_prefix`.
  envoy: {
    original: ({ incoming, target }, { host }, path) => ({
      method: incoming.method ?? '',
      target: target.slice(path.length),
      host,
    }),
    knowsOnlyDenials: false,
  },
} satisfies Record<ForwardAuthSettings['dialect'], DialectRow>

/** Whether a request target asks for a decision. Compared as received: another spelling of the path does not ask. */
export const asksForDecision =
  ({ path, dialect }: ForwardAuthSettings) =>
  (target: string): boolean => {
    if (!target.startsWith(path)) return false
    const next = target[path.length]
    return dialect === 'envoy' ? next === '/' : next === undefined || next === '?'
  }

/** For `createReadRequest`: the decision is about the request that the proxy describes. */
export const originalRequest =
  ({ path, dialect }: ForwardAuthSettings) =>
  (context: RequestContext, headers: RequestHeaders, trusted: boolean): OriginalRequest => {
    if (!trusted) throw problem('not_found', { detail: 'Decisions are given to trusted proxies only.' })
    // The certificate of the connection is the proxy's own.
    context.tls = undefined
    const row: DialectRow = dialects[dialect]
    const original = row.original(context, headers, path)
    if (!/^[A-Z][A-Z-]{0,31}$/.test(original.method)) throw refuse('The method is not one in capital letters.')
    return original
  }

/** The last stage, instead of forwarding: 200 with the fields that the proxy puts on the request. */
export const createAnswerDecision = (): Stage<DecidedRequest> => (context) => {
  const { principal, decision, assertion, headers, request, route, response, id } = context
  // The proxy forwards the target as it received it: whoever is behind it would get the token.
  if (request.accessToken) throw refuse('The query holds an access token.')
  const fields: Record<string, string> = { ...decision.headers }
  // Those without a value are sent empty, so that a proxy does not keep the client's.
  for (const name of identityFields) fields[name] = ''
  eachField(principal?.identityHeaders ?? [], (name, value) => {
    fields[name] = value
  })
  if (assertion !== undefined) fields['x-auth-assertion'] = assertion
  // The access token in place of a personal one; nothing where the route keeps it from the upstream.
  fields['authorization'] = route.forwardAuthorization ? (headers.authorization ?? '') : ''
  const nonce = context.answerFields?.['dpop-nonce']
  if (nonce !== undefined) fields['dpop-nonce'] = nonce
  response.writeHead(200, { ...fields, 'content-length': 0, 'cache-control': 'no-store', 'x-request-id': id }).end()
  return answered
}

/**
 * How refusals are sent. Where only 401 and 403 are understood the real status is told in a field beside the reason.
 */
export const sendRefusal = ({ dialect }: ForwardAuthSettings): typeof sendProblem => {
  if (!dialects[dialect].knowsOnlyDenials) return sendProblem
  return (response: ServerResponse, error: AppError, id: string, closing: boolean, fields = error.headers) => {
    const { reason = error.code } = (error.data ?? {}) as { reason?: string }
    const status = error.status === 401 ? 401 : 403
    const told = { ...fields, 'x-auth-status': String(error.status), 'x-auth-reason': reason }
    sendProblem(response, error, id, closing, told, status)
  }
}
