import type { IncomingMessage, ServerResponse } from 'node:http'
import { isDatabaseUnavailable } from '../../platform/database/database-unavailable.ts'
import type { Logger } from '../../platform/logger.ts'
import { AppError } from '../../platform/problem.ts'
import { logFault } from '../base/errors/log-fault.ts'
import { OAuthError } from '../base/errors/problems.ts'

export type Endpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => void | Promise<void>

/** How the protocol endpoints answer: JSON that no cache keeps, and every error in the form of RFC 6749 §5.2. */

export const requestIdHeader = 'Logto-Core-Request-Id'

export const sendJson = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    // RFC 6749 §5.1
    'Cache-Control': 'no-store',
    Pragma: 'no-cache',
    ...headers,
  })
  response.end(text)
}

// RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E
const forbiddenInDescription = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/gu

const safeDescription = (text: string): string =>
  text.replace(forbiddenInDescription, (character) =>
    encodeURIComponent(character.isWellFormed() ? character : '\ufffd'),
  )

/** `code` and `message` are what the SDKs read; `reason` tells a program why an exchange was refused. */
const errorBody = ({ error, message, reason, members }: OAuthError) => {
  const description = safeDescription(message)
  return {
    error,
    error_description: description,
    code: `oidc.${error}`,
    message: description,
    ...(reason === undefined ? {} : { reason }),
    ...members,
  }
}

/**
 * What is no error of OAuth is something out of reach, or our fault: logged with its cause, told without it.
 */
const unforeseen = (cause: unknown, requestId: string): OAuthError =>
  isDatabaseUnavailable(cause) || (cause instanceof AppError && cause.status === 503)
    ? new OAuthError('temporarily_unavailable', 'This cannot be done at this moment.', {
        headers: { 'Retry-After': '5' },
        cause,
      })
    : new OAuthError('server_error', `Something went wrong on our side (request ${requestId}).`, { cause })

/** What to answer; see `unforeseen` for what is not an `OAuthError`. Faults of ours are logged. */
export const errorToTell = (cause: unknown, logger: Logger, requestId: string, what: string): OAuthError => {
  const error = cause instanceof OAuthError ? cause : unforeseen(cause, requestId)
  if (error.status >= 500) logFault(logger, error, { requestId, reason: error.reason }, `${what} failed`)
  return error
}

/** Answers with an error. */
export const sendError = (response: ServerResponse, cause: unknown, logger: Logger, requestId: string): OAuthError => {
  const error = errorToTell(cause, logger, requestId, 'a token request')
  if (response.headersSent || response.destroyed) response.destroy()
  else sendJson(response, error.status, errorBody(error), error.headers)
  return error
}
