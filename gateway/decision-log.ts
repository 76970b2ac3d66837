import { pino } from 'pino'
import type { Logger } from '../platform/logger.ts'
import type { Exchange } from './exchange.ts'

/** One line a request in the event format of OPA's decision logs, so that tools for those read ours. */
export interface DecisionLog {
  write(exchange: Exchange): void
  close(): Promise<void>
}

export interface DecisionLogSettings {
  /** `stdout` or a file that lines are appended to. */
  to: string
  /** JSON pointers (RFC 6901) into the event that are left out, and listed under `erased`. */
  mask: readonly string[]
}

/** Bytes waiting to be written beyond which lines are dropped, and counted, rather than slowing requests down. */
const maxWaiting = 16 * 1024 * 1024

export const createDecisionLog = (options: {
  settings: DecisionLogSettings
  labels: Record<string, string>
  revision: () => string
  logger: Logger
}): DecisionLog => {
  const { settings, labels, revision, logger } = options
  const pointers = settings.mask.map((text) => ({ text, path: pointerPath(text) }))
  const dest = settings.to === 'stdout' ? 1 : settings.to
  const out = pino.destination({ dest, sync: false, mkdir: true, append: true, maxLength: maxWaiting })
  let dropped = 0
  let opened = false
  let unusable = false
  let closed = false
  out.once('ready', () => {
    opened = true
  })
  out.on('drop', () => {
    if (dropped++ % 10_000 === 0)
      logger.error({ dropped }, 'decision log lines are dropped: they cannot be written fast enough')
  })
  out.on('error', (error: Error) => {
    unusable = !opened
    logger.error({ err: error }, 'the decision log cannot be written')
  })

  return {
    write(exchange) {
      if (closed) return
      const event = { labels, bundles: { policies: { revision: revision() } }, ...eventOf(exchange) }
      const line = lineOf(event)
      if (pointers.length === 0) return void out.write(`${line}\n`)
      // A copy: the parts of the event that come from a token are shared by all requests with it.
      const copy = JSON.parse(line)
      const erased = pointers.filter(({ path }) => erase(copy, path)).map(({ text }) => text)
      out.write(`${JSON.stringify(erased.length > 0 ? { ...copy, erased } : copy)}\n`)
    },
    close: () =>
      new Promise((resolve) => {
        closed = true
        if (unusable) return resolve()
        out.once('close', () => resolve())
        out.once('error', () => resolve())
        out.end()
      }),
  }
}

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

const eventOf = ({ id, route, request, input, decision, error, response, startedAt }: Exchange) => ({
  decision_id: id,
  timestamp: new Date().toISOString(),
  ...(route && { path: route.entrypoint }),
  // Requests that ended before the policy was asked still say what they were.
  input: input ?? { request: { id, method: request?.method, host: request?.host, path: request?.path } },
  result: decision ?? { allow: error === undefined, ...(error && { reason: error.code }) },
  ...(request && { requested_by: request.clientIp }),
  http: { status: response.headersSent ? response.statusCode : 0, ...(route && { route: route.id }) },
  metrics: { timer_server_handler_ns: Math.round((performance.now() - startedAt) * 1e6) },
})

/** RFC 6901 §4. */
const pointerPath = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))

const erase = (event: unknown, path: readonly string[]): boolean => {
  let parent = event
  for (const name of path.slice(0, -1)) {
    if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name)) return false
    parent = (parent as Record<string, unknown>)[name]
  }
  const last = path.at(-1)
  if (last === undefined || typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, last)) return false
  delete (parent as Record<string, unknown>)[last]
  return true
}
