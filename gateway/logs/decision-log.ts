import { randomUUID } from 'node:crypto'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Decision, PolicyInput } from '../../policies/decide.ts'
import type { DecisionLogSettings } from '../config/settings/logs.ts'
import type { RequestContext } from '../request/request-context.ts'
import { createMasks, withoutCredentials } from './mask.ts'
import { openLog } from './output.ts'

/** One line a request in the event format of OPA's decision logs, so that tools for those read ours. */
export interface DecisionLog {
  write(context: RequestContext): void
  reopen(): void
  close(): Promise<void>
}

export const createDecisionLog = (options: {
  settings: DecisionLogSettings
  labels: Record<string, string>
  revision: () => string
  logger: Logger
  metrics: Metrics
}): DecisionLog => {
  const { settings, revision, logger, metrics } = options
  const labels = { ...settings.labels, ...options.labels, id: instance }
  const keepBody = settings.body === 'keep'
  const applyMasks = settings.mask.length > 0 ? createMasks(settings.mask) : undefined
  const { write, reopen, close } = openLog({ name: 'decision', settings, logger, metrics })
  return {
    reopen,
    close,
    write(context) {
      const line = lineOf({ labels, bundles: { policies: { revision: revision() } }, ...eventOf(context, keepBody) })
      if (!applyMasks) return write(line)
      // A copy: the parts of the event that come from a token are shared by all requests with it.
      const copy = JSON.parse(line)
      const { erased = [], masked = [] } = applyMasks(copy)
      const all = { erased: [...(copy.erased ?? []), ...erased], masked: [...(copy.masked ?? []), ...masked] }
      const told = Object.entries(all).filter(([, pointers]) => pointers.length > 0)
      write(JSON.stringify({ ...copy, ...Object.fromEntries(told) }))
    },
  }
}

/** Of this process, as OPA names its instances. */
const instance = randomUUID()

/** Members that cannot be written (too deep, say) are left out and named: a request without a line would be worse. */
const lineOf = (event: Readonly<Record<string, unknown>>): string => {
  try {
    return JSON.stringify(event)
  } catch {
    const unwritable = Object.keys(event).filter((name) => !isWritable(event[name]))
    const rest = Object.entries(event).filter(([name]) => !unwritable.includes(name))
    return JSON.stringify({ ...Object.fromEntries(rest), unwritable })
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

const eventOf = (context: RequestContext, keepBody: boolean) => {
  const { id, route, request, response, checked, startedAt } = context
  return {
    decision_id: id,
    timestamp: new Date().toISOString(),
    ...(route && { path: route.entrypoint }),
    ...inputOf(context, keepBody),
    ...resultOf(context),
    ...(request && { requested_by: request.clientIp }),
    http: {
      status: response.headersSent ? response.statusCode : 0,
      ...(route && { route: route.id }),
      ...(checked && { protocol: 'ext_authz' }),
    },
    metrics: { timer_server_handler_ns: Math.round((performance.now() - startedAt) * 1e6) },
  }
}

/** Requests that ended before the policy was asked still say what they were. */
const inputOf = (
  context: RequestContext,
  keepBody: boolean,
): { input: unknown; masked?: string[]; erased?: string[] } => {
  const { id, input, request } = context
  if (!input) return { input: { request: { id, method: request?.method, host: request?.host, path: request?.path } } }
  const body = bodyOf(context)
  if (body === undefined) return withoutCredentialsOf(input)
  if (!keepBody) return { ...withoutCredentialsOf(input), erased: ['/input/request/body'] }
  return withoutCredentialsOf({ ...input, request: { ...input.request, body: JSON.parse(body.toString()) } })
}

/** What the policy saw as `input.request.body`. */
const bodyOf = ({ route, body }: RequestContext): Buffer | undefined =>
  route?.policyBody && body && body.length > 0 ? body : undefined

const withoutCredentialsOf = (input: PolicyInput): { input: PolicyInput; masked?: string[] } => {
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
