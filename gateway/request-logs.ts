import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createAccessLog } from './access-log.ts'
import type { GatewayConfig } from './config.ts'
import { createDecisionLog } from './decision-log.ts'
import type { Exchange } from './exchange.ts'

/** The logs of requests that the configuration asks for. */
export interface RequestLogs {
  /** For every finished request. */
  write(exchange: Exchange): void
  /** Opens files anew, after logrotate or the like has moved the old ones away. */
  reopen(): void
  close(): Promise<void>
}

export const createRequestLogs = (options: {
  config: Pick<GatewayConfig, 'decisionLog' | 'accessLog' | 'revision'>
  /** Of the policies in force. */
  policyRevision: () => string
  logger: Logger
  metrics: Metrics
}): RequestLogs => {
  const { config, policyRevision, ...parts } = options
  const { decisionLog, accessLog } = config
  const labels = { app: 'surrogate-gateway', config: config.revision }
  const logs = [
    ...(decisionLog ? [createDecisionLog({ settings: decisionLog, labels, revision: policyRevision, ...parts })] : []),
    ...(accessLog ? [createAccessLog({ settings: accessLog, ...parts })] : []),
  ]
  return {
    write(exchange) {
      for (const log of logs) log.write(exchange)
    },
    reopen() {
      for (const log of logs) log.reopen()
    },
    async close() {
      await Promise.all(logs.map((log) => log.close()))
    },
  }
}
