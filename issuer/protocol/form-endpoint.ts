import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../platform/logger.ts'
import { OAuthError } from '../base/errors/problems.ts'
import { sendError, sendJson } from './answers.ts'
import { type Parameters, parseParameters, refuseParametersInUrl } from './requests/parameters.ts'
import { readBody } from './requests/request-body.ts'

export interface FormEndpointOptions {
  logger: Logger
  /** What an unforeseen failure is answered with. Default: 500 `server_error`. */
  failure?: (cause: unknown) => OAuthError
  /** Called with the OAuth error code of every refusal. */
  refused?: (error: string) => void
}

/**
 * A POST of form parameters that is answered with JSON: what the endpoints beside the token endpoint have in common.
 */
export const formEndpoint =
  (
    { logger, failure, refused }: FormEndpointOptions,
    handle: (request: IncomingMessage, parameters: Parameters) => Promise<object>,
  ) =>
  async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    try {
      refuseParametersInUrl(request.url ?? '')
      const parameters = parseParameters(await readBody(request), request.headers['content-type'])
      sendJson(response, 200, await handle(request, parameters))
    } catch (cause) {
      const known = cause instanceof OAuthError || !failure ? cause : failure(cause)
      const { error } = sendError(response, known, logger, requestId)
      refused?.(error)
    }
  }

/** The `token` of RFC 7662 §2.1 and RFC 7009 §2.1. A `token_type_hint` is not needed: the token tells what it is. */
export const requiredToken = (parameters: Parameters): string => {
  const token = parameters.get('token')
  if (token === undefined) throw new OAuthError('invalid_request', 'Missing required parameter: token.')
  return token
}
