import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { UnparsedRequest } from '../request/unparsed.ts'
import { createAccessLog } from './access-log.ts'
import { createDecisionEvents, type DecisionEvent } from './decision-event.ts'
import { createDecisionLog } from './decision-log.ts'
import { requireLog } from './output.ts'

/** The logs of requests that the configuration asks for. */
export interface RequestLogs {
  /** For every finished request. */
  write(context: RequestContext): void
  /** For every one that could not be read: in the access log only, since nothing was decided about it. */
  writeUnparsed(unparsed: UnparsedRequest): void
  /** Opens files anew, after logrotate or the like has moved the old ones away. */
  reopen(): void
  close(): Promise<void>
}

export type KeepDecision = (event: DecisionEvent, context: RequestContext) => void

/** Throws `StartupError` for a file that could not be opened now, and makes nothing. */
export const requireLogs = ({ decisionLog, accessLog }: Pick<GatewayConfig, 'decisionLog' | 'accessLog'>): void => {
  if (decisionLog) requireLog('decision', decisionLog)
  if (accessLog) requireLog('access', accessLog)
}

/** Throws `StartupError` when a file cannot be opened. */
export const createRequestLogs = (options: {
  config: Pick<GatewayConfig, 'decisionLog' | 'accessLog' | 'revision'>
  /** Of the policies in force. */
  policyRevision: () => string
  /** Gets the event of each finished request that was decided about or refused. */
  keep?: KeepDecision | undefined
  logger: Logger
  metrics: Metrics
}): RequestLogs => {
  const { config, policyRevision: revision, keep, ...parts } = options
  const { decisionLog, accessLog } = config
  requireLogs(config)
  const labels = { app: 'surrogate-gateway', config: config.revision }
  const access = accessLog && createAccessLog({ settings: accessLog, ...parts })
  const decisions = decisionLog && createDecisionLog({ settings: decisionLog, labels, revision, ...parts })
  const events =
    keep && createDecisionEvents({ settings: decisionLog ?? { mask: [], labels: {}, body: 'erase' }, labels, revision })
  const logs = [decisions, access].filter((log) => log !== undefined)
  return {
    write(context) {
      const kept = events && (context.decision ?? context.error) ? events(context) : undefined
      decisions?.write(context, kept)
      access?.write(context)
      if (kept) keep?.(kept, context)
    },
    writeUnparsed: (unparsed) => access?.writeUnparsed(unparsed),
    reopen() {
      for (const log of logs) log.reopen()
    },
    async close() {
      await Promise.all(logs.map((log) => log.close()))
    },
  }
}
