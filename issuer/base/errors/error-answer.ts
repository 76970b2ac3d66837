import type { Logger } from '../../../platform/logger.ts'
import { AppError } from '../../../platform/problem.ts'
import { constraintError } from './constraint-errors.ts'
import { logFault } from './log-fault.ts'
import { problem } from './problems.ts'

export interface ErrorAnswer {
  status: number
  headers: Record<string, string>
  /** `data` and `details` are left out when there is nothing to say. */
  body: { code: string; message: string; data: unknown; details: string | undefined }
}

/** Existing clients look into the message for what exactly was wrong. */
const detailedMessages: ReadonlySet<string> = new Set(['request.invalid_input'])

const messageOf = ({ code, title, detail }: AppError) =>
  detail !== undefined && detailedMessages.has(code) ? `${title} ${detail}` : title

/** What callers are told of an error. */
export const problemBody = (error: AppError): ErrorAnswer['body'] => ({
  code: error.code,
  message: messageOf(error),
  data: error.data,
  details: error.detail,
})

/** Any thrown thing as an error of the problem table; what nobody foresaw is `server.error`. */
export const asAppError = (thrown: unknown): AppError => {
  const error = constraintError(thrown)
  if (error instanceof AppError) return error
  // The router's word for a path parameter that is not percent-encoded UTF-8.
  if (error instanceof URIError) return problem('guard.invalid_input', { detail: 'The path cannot be decoded.' })
  return problem('server.error', { cause: error })
}

/** Our own faults are logged with their cause and tell the caller nothing but the request id (in the header). */
export const errorAnswer = (thrown: unknown, logger: Logger, requestId: string): ErrorAnswer => {
  const error = asAppError(thrown)
  const { code, detail } = error
  if (error.status >= 500) logFault(logger, error, { requestId, code }, 'a management request failed')
  else logger.debug({ requestId, code, detail }, 'a management request was refused')
  return {
    status: error.status,
    headers: error.headers,
    body: problemBody(error),
  }
}
