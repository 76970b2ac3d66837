import { isDatabaseUnavailable } from '../../../platform/database/database-unavailable.ts'
import { type Logger, throttledLevel } from '../../../platform/logger.ts'

/**
 * Tells operators why a request is answered with 5xx. What clients can cause at will does not fill the log: a 503
 * without a cause is a limit that did its work, a database that is away is one fault, however many ask meanwhile, and
 * what somebody else's server did (502) is no fault of ours: a line.
 */
export const logFault = (
  logger: Logger,
  error: Error & { status: number; detail?: string | undefined },
  told: Readonly<Record<string, unknown>>,
  message: string,
): void => {
  const { cause } = error
  if (error.status === 503 && cause === undefined) {
    logger.debug(told, message)
    return
  }
  if (error.status === 502) {
    logger.warn({ ...told, detail: error.detail ?? (cause instanceof Error ? cause.message : undefined) }, message)
    return
  }
  const level = isDatabaseUnavailable(cause) ? throttledLevel(logger, 'error', message) : 'error'
  logger[level]({ err: cause ?? error, ...told }, message)
}
