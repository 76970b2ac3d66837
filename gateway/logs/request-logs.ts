import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { UnparsedRequest } from '../request/unparsed.ts'
import { createAccessLog } from './access-log.ts'
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
  logger: Logger
  metrics: Metrics
}): RequestLogs => {
  const { config, policyRevision, ...parts } = options
  const { decisionLog, accessLog } = config
  requireLogs(config)
  const labels = { app: 'surrogate-gateway', config: config.revision }
  const access = accessLog && createAccessLog({ settings: accessLog, ...parts })
  const logs = [
    ...(decisionLog ? [createDecisionLog({ settings: decisionLog, labels, revision: policyRevision, ...parts })] : []),
    ...(access ? [access] : []),
  ]
  return {
    write(context) {
      for (const log of logs) log.write(context)
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
