import { randomUUID } from 'node:crypto'
import type { Decision, PolicyInput } from '../../policies/decide.ts'
import type { DecisionLogSettings, Mask } from '../config/settings/logs.ts'
import type { RequestContext } from '../request/request-context.ts'
import { traceFields } from '../request/request-trace.ts'
import { createMasks, withoutCredentials } from './mask.ts'

/** A finished request in the event format of OPA's decision logs. */
export interface DecisionEvent {
  /** JSON. */
  line: string
  /** The same; parts of it belong to the request and others with its token. */
  members: Readonly<Record<string, unknown>>
}

export interface DecisionEventsOptions {
  settings: Pick<DecisionLogSettings, 'mask' | 'labels' | 'body'>
  labels: Record<string, string>
  /** Of the policies in force. */
  revision: () => string
}

/** Makes the events, masked: whatever keeps or sends them is given no more than may be known. */
export const createDecisionEvents = ({ settings, revision, ...options }: DecisionEventsOptions) => {
  const labels = { ...settings.labels, ...options.labels, id: instance }
  const shown: Shown = { body: settings.body === 'keep', address: !settings.mask.some(hidesAddress) }
  const applyMasks = settings.mask.length > 0 ? createMasks(settings.mask) : undefined
  return (context: RequestContext): DecisionEvent => {
    const event = written({ labels, bundles: { policies: { revision: revision() } }, ...eventOf(context, shown) })
    if (!applyMasks) return event
    // A copy: the parts of the event that come from a token are shared by all requests with it.
    const copy = JSON.parse(event.line)
    const { erased = [], masked = [] } = applyMasks(copy)
    const all = { erased: [...(copy.erased ?? []), ...erased], masked: [...(copy.masked ?? []), ...masked] }
    const present = Object.entries(all).filter(([, pointers]) => pointers.length > 0)
    const members = { ...copy, ...Object.fromEntries(present) }
    return { line: JSON.stringify(members), members }
  }
}

/** What events have of requests beside what masks can reach. */
interface Shown {
  body: boolean
  /** `requested_by`, which says the same as `/input/request/clientIp`. */
  address: boolean
}

const hidesAddress = (mask: Mask): boolean =>
  '/input/request/clientIp/'.startsWith(`${typeof mask === 'string' ? mask : mask.path}/`)

export type DecisionEvents = ReturnType<typeof createDecisionEvents>

/** Of this process, as OPA names its instances. */
const instance = randomUUID()

/** Members that cannot be written (too deep, say) are left out and named: a request without a line would be worse. */
const written = (members: Readonly<Record<string, unknown>>): DecisionEvent => {
  try {
    return { line: JSON.stringify(members), members }
  } catch {
    const unwritable = Object.keys(members).filter((name) => !isWritable(members[name]))
    const rest = Object.entries(members).filter(([name]) => !unwritable.includes(name))
    const writable = { ...Object.fromEntries(rest), unwritable }
    return { line: JSON.stringify(writable), members: writable }
  }
}

const isWritable = (value: unknown): boolean => {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

const eventOf = (context: RequestContext, shown: Shown) => {
  const { id, route, request, response, checked, startedAt } = context
  return {
    decision_id: id,
    ...traceFields(context),
    timestamp: new Date().toISOString(),
    ...(route && { path: route.entrypoint }),
    ...inputOf(context, shown.body),
    ...resultOf(context),
    ...(request && shown.address && { requested_by: request.clientIp }),
    http: {
      status: response.headersSent ? response.statusCode : 0,
      ...(route && { route: route.id }),
      ...(checked && { protocol: 'ext_authz' }),
    },
    metrics: { timer_server_handler_ns: Math.round((performance.now() - startedAt) * 1e6) },
  }
}

interface LoggedInput {
  input: unknown
  masked?: string[]
  erased?: string[]
}

/** Requests that ended before the policy was asked still say what they were, and whose, if their token was good. */
const inputOf = (context: RequestContext, keepBody: boolean): LoggedInput => {
  const { id, input, request, principal } = context
  if (!input) {
    const { method, host, path } = request ?? {}
    return { input: { request: { id, method, host, path }, ...principal?.input } }
  }
  const body = bodyOf(context)
  if (body === undefined) return withoutCredentialsOf(input)
  if (!keepBody) return { ...withoutCredentialsOf(input), erased: ['/input/request/body'] }
  return withoutCredentialsOf({ ...input, request: { ...input.request, body: JSON.parse(body.toString()) } })
}

/** What the policy saw as `input.request.body`. */
const bodyOf = ({ route, body }: RequestContext): Buffer | undefined =>
  route?.policyBody && body && body.length > 0 ? body : undefined

const withoutCredentialsOf = (input: PolicyInput): LoggedInput => {
  const { query, headers } = input.request
  const cleanQuery = withoutCredentials(query, '/input/request/query')
  const cleanHeaders = withoutCredentials(headers, '/input/request/headers')
  if (!cleanQuery && !cleanHeaders) return { input }
  const clean = { query: cleanQuery?.fields ?? query, headers: cleanHeaders?.fields ?? headers }
  return {
    input: { ...input, request: { ...input.request, ...clean } },
    masked: [...(cleanQuery?.masked ?? []), ...(cleanHeaders?.masked ?? [])],
  }
}

const resultOf = ({ decision, error, response }: RequestContext): { result: unknown; error?: { message: string } } => {
  if (decision) {
    const { error: message, ...result } = decision as Decision & { error?: string }
    return { result, ...(message !== undefined && { error: { message } }) }
  }
  if (error) return { result: { allow: false, reason: error.code } }
  // Our own documents are answered without a decision; a client may leave before there is one.
  return { result: response.writableFinished ? { allow: true } : { allow: false, reason: 'client_gone' } }
}
