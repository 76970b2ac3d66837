import { randomUUID } from 'node:crypto'
import { openLines } from '../../platform/line-writer.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'

/** One decision, for the log. */
export interface DecisionEvent {
  decisionId: string
  revision: string
  path: string
  input: unknown
  /** Undefined when no rule gave one, and where there is an error. */
  result?: unknown
  error?: string
  requestedBy: string | undefined
  metrics: Readonly<Record<string, number>>
}

export interface DecisionLog {
  write(event: DecisionEvent): void
  /** Opens the file of that name anew, after the old one was moved away. */
  reopen(): void
  close(): Promise<void>
}

/** Bytes that may wait to be written; beyond it lines are dropped and counted. */
const bufferSize = 16_777_216

/** Lines in the event format of OPA's decision logs. Throws the file system's error when a file cannot be opened. */
export const openDecisionLog = (options: {
  /** `stdout` or a file. */
  to: string
  /** Changes an event; returns what it left out and replaced, for the event. */
  mask?: ((event: object) => { erased?: string[]; masked?: string[] }) | undefined
  logger: Logger
  metrics: Metrics
}): DecisionLog => {
  const { to, mask, logger, metrics } = options
  const dropped = metrics.counter(
    'surrogate_policy_server_log_dropped_total',
    'Lines of the decision log of policy serve that could not be kept',
  )
  dropped.inc(0)
  let failing = false
  const lines = openLines({
    to,
    bufferSize,
    onError: (err) => {
      if (!failing)
        logger.error({ err }, 'the decision log cannot be written; its lines are kept as long as there is room')
      failing = true
    },
    onWritten: () => {
      failing = false
    },
  })
  const labels = { id: randomUUID() }
  return {
    write(decision) {
      const { decisionId, revision, path, input, result, error, requestedBy, metrics: measured } = decision
      const line = lineOf({
        labels,
        decision_id: decisionId,
        bundles: { policies: { revision } },
        timestamp: new Date().toISOString(),
        path,
        ...(input !== undefined && { input }),
        ...(result !== undefined && { result }),
        ...(error !== undefined && { error: { message: error } }),
        ...(requestedBy !== undefined && { requested_by: requestedBy }),
        metrics: measured,
      })
      if (!lines.write(`${mask ? masked(line, mask) : line}\n`)) dropped.inc()
    },
    reopen() {
      try {
        lines.reopen()
      } catch (err) {
        logger.error({ file: to, err }, 'the decision log cannot be opened anew; the file that was open stays in use')
      }
    },
    close: lines.close,
  }
}

/** An input that cannot be written (too deep) is left out and named, as the gateway does. */
const lineOf = (event: Record<string, unknown>): string => {
  try {
    return JSON.stringify(event)
  } catch {
    const { input: _, result: __, ...rest } = event
    return JSON.stringify({ ...rest, unwritable: ['input', 'result'] })
  }
}

/** On a copy: the answer is made of the same values. */
const masked = (line: string, mask: (event: object) => object): string => {
  const copy = JSON.parse(line) as object
  return JSON.stringify({ ...copy, ...mask(copy) })
}
