import { isDatabaseUnavailable } from '../../../platform/database/database-unavailable.ts'
import { type Logger, throttledLevel } from '../../../platform/logger.ts'

/**
 * Tells operators why a request is answered with 5xx. What clients can cause at will does not fill the log: a 503
 * without a cause is a limit that did its work, and a database that is away is one fault, however many ask meanwhile.
 */
export const logFault = (
  logger: Logger,
  error: Error & { status: number },
  told: Readonly<Record<string, unknown>>,
  message: string,
): void => {
  const { cause } = error
  if (error.status === 503 && cause === undefined) {
    logger.debug(told, message)
    return
  }
  const level = isDatabaseUnavailable(cause) ? throttledLevel(logger, 'error', message) : 'error'
  logger[level]({ err: cause ?? error, ...told }, message)
}
