import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { uuidv7 } from '../../platform/ids.ts'
import type { AppError } from '../../platform/problem.ts'
import { rawProblem } from '../refusals/problem-response.ts'
import { problem } from '../refusals/problems.ts'
import { refuse } from './canonical-target.ts'
import { plainAddress } from './client-address.ts'

/** What logs say about a request that could not be parsed. */
export interface UnparsedRequest {
  /** As the client was told. */
  id: string
  /** 0: the client was told nothing. */
  status: number
  code: string
  /** The peer of the connection. */
  address: string
}

/** By the code of Node's error; everything else is a request that is not HTTP. */
const problems: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: problem('header_fields_too_large'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: problem('content_too_large'),
  ERR_HTTP_REQUEST_TIMEOUT: problem('request_timeout'),
}

/**
 * Node's parser gave up, or the request did not arrive in time: there is a socket and no request. Returns what to log,
 * unless another part logs it.
 */
export const refuseUnparsed = (error: NodeJS.ErrnoException, socket: Socket): UnparsedRequest | undefined => {
  if (error.code === 'ECONNRESET') return void socket.destroy()
  return refuseOn(socket, problems[error.code ?? ''] ?? refuse('The request is not HTTP as RFC 9112 has it.'))
}

/**
 * Node hands CONNECT over as a bare socket, and takes its own listeners away: an error that nobody listens to would end
 * the process.
 */
export const refuseConnect = (socket: Socket): UnparsedRequest | undefined => {
  socket.on('error', () => socket.destroy())
  return refuseOn(socket, refuse('The method CONNECT is not served.'))
}

/** The same for an upgrade that cannot be a request of ours. */
export const refuseUpgrade = (socket: Socket): UnparsedRequest | undefined => {
  socket.on('error', () => socket.destroy())
  return refuseOn(socket, refuse('Another protocol cannot be spoken from here on.'))
}

/** Whether an answer to an earlier request of the connection is still to come. */
export const isAnswering = (socket: Socket): boolean =>
  Boolean((socket as Socket & { _httpMessage?: unknown })._httpMessage)

/** How long a client may take to read its last answer before the connection is cut, in ms. */
const lingerMs = 1_000

/** The last answer on this connection. */
const refuseOn = (socket: Socket, error: AppError): UnparsedRequest | undefined => {
  // Refused before; what comes behind is of no interest.
  if (socket.writableEnded) return
  const unread = { id: uuidv7(), status: 0, code: error.code, address: plainAddress(socket.remoteAddress) }
  if (!socket.writable) return void socket.destroy()
  // Node keeps the answer in progress there and documents no other way to it.
  const answer = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage
  if (answer?.req.complete) {
    // The error came after that request: its client must not take our refusal for the answer to it.
    answer.shouldKeepAlive = false
    answer.once('finish', () => endSoon(socket))
    return unread
  }
  // A second head within a body would be smuggling by ourselves.
  if (answer?.headersSent) return void socket.destroy()
  endSoon(socket, rawProblem(error, unread.id))
  // A connection without a byte has asked nothing, and a request whose body did not come is logged as a request.
  if (answer || socket.bytesRead === 0) return
  return { ...unread, status: error.status }
}

/**
 * Reads on for a while: closing with unread bytes would reset the connection, and the client could lose the answer.
 */
const endSoon = (socket: Socket, text = ''): void => {
  socket.end(text)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}
