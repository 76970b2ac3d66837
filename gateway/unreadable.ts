import type { Socket } from 'node:net'
import { uuidv7 } from '../platform/ids.ts'
import { AppError } from '../platform/problem.ts'
import { refuse } from './canonical-target.ts'
import { rawProblem } from './problem-response.ts'

/** By the code of Node's error; everything else is a request that is not HTTP. */
const problems: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: new AppError('header_fields_too_large'),
  ERR_HTTP_REQUEST_TIMEOUT: new AppError('request_timeout'),
}

/** Node's parser gave up, or the request did not arrive in time: there is a socket and no request. */
export const refuseUnreadable = (error: NodeJS.ErrnoException, socket: Socket): void => {
  // Node keeps the answer in progress there and documents no other way to it; a second head within a body would be smuggling by ourselves.
  const begun = (socket as Socket & { _httpMessage?: { headersSent: boolean } })._httpMessage?.headersSent
  if (error.code === 'ECONNRESET' || !socket.writable || begun) socket.destroy()
  else {
    const problem = problems[error.code ?? ''] ?? refuse('The request is not HTTP as RFC 9112 has it.')
    socket.end(rawProblem(problem, uuidv7()))
  }
}

/** Node hands CONNECT over as a bare socket. */
export const refuseConnect = (socket: Socket): void => {
  socket.end(rawProblem(refuse('The method CONNECT is not served.'), uuidv7()))
}
