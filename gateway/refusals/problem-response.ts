import type { ServerResponse } from 'node:http'
import { type AppError, problemJson, statusText } from '../../platform/problem.ts'

/** The problem document (RFC 9457) of an error; a policy's own reason stands in `reason`. */
const body = (error: AppError, id: string): string => {
  const { reason } = (error.data ?? {}) as { reason?: string }
  return JSON.stringify({ ...problemJson(error, id), ...(reason === undefined ? {} : { reason }) })
}

/**
 * @param closing no further request is read from this connection. @param fields in place of the error's own header
 * fields.
 * @param status in place of the error's own, on the wire only.
 */
export const sendProblem = (
  response: ServerResponse,
  error: AppError,
  id: string,
  closing: boolean,
  fields: Readonly<Record<string, string>> = error.headers,
  status: number = error.status,
): void => {
  const text = body(error, id)
  response
    .writeHead(status, {
      ...fields,
      'content-type': 'application/problem+json',
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      'x-request-id': id,
      ...(closing && { connection: 'close' }),
    })
    .end(text)
}

/** The same as bytes, for requests that never became one: Node's parser gave up on them. */
export const rawProblem = (error: AppError, id: string): string => {
  const text = body(error, id)
  return [
    `HTTP/1.1 ${error.status} ${statusText(error.status)}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(text)}`,
    'cache-control: no-store',
    `x-request-id: ${id}`,
    'connection: close',
    '',
    text,
  ].join('\r\n')
}
