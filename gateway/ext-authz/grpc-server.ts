import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'

/** Calls of one message and one answer, as gRPC sends them over HTTP/2, on connections that others accept. */
export interface GrpcServer {
  /** Speaks HTTP/2 on a connection that nobody has read from. */
  serve(socket: Socket): void
  /** No further calls on the connections that are open now; breaks off what is left after `graceMs`. */
  drain(graceMs: number): void
}

export interface UnaryMethod {
  /** `/package.Service/Method`. */
  readonly path: string
  /** Of one message, in bytes. */
  readonly largestMessage: number
  /**
   * Whether messages of this peer are read; of others an empty one is handled at once, so that they fill no memory.
   * Default: everybody's.
   */
  mayAsk?(peer: string | undefined): boolean
  /** Throws for bytes that are no message. */
  requestDeserialize(bytes: Buffer): unknown
  responseSerialize(answer: unknown): Buffer
  handle(message: unknown, call: UnaryCall): void
}

export interface UnaryCall {
  /** Address of the other side of the connection. */
  readonly peer: string | undefined
  reply(answer: unknown): void
  fail(status: GrpcStatus, message: string): void
  /** Calls `listener` when the call is over; before an answer, because the other side has given it up. */
  whenOver(listener: () => void): void
}

/** Of <https://grpc.github.io/grpc/core/md_doc_statuscodes.html>. */
export const grpcStatus = { NOT_FOUND: 5, RESOURCE_EXHAUSTED: 8, UNIMPLEMENTED: 12, INTERNAL: 13 } as const
export type GrpcStatus = (typeof grpcStatus)[keyof typeof grpcStatus]

export interface GrpcServerSettings {
  /** At the same time on one connection. */
  maxConcurrentStreams: number
  /** Of one connection, in MB; its calls are refused beyond. */
  maxSessionMemory: number
  /** In ms: the other side is asked whether it is there every `interval`, and gone without an answer in `timeout`. */
  keepAlive: { interval: number; timeout: number }
}

/** Compressed or not, and the length (gRPC over HTTP/2, Length-Prefixed-Message). */
const prefixLength = 5
const nothing = Buffer.alloc(0)

const answerHead = { ':status': 200, 'content-type': 'application/grpc', 'grpc-accept-encoding': 'identity' }
const answerEnd = { 'grpc-status': '0' }
const withTrailers = { waitForTrailers: true }

export const createGrpcServer = (methods: readonly UnaryMethod[], settings: GrpcServerSettings): GrpcServer => {
  const { maxConcurrentStreams, maxSessionMemory, keepAlive } = settings
  const byPath = new Map(methods.map((method) => [method.path, method]))
  const sessions = new Set<ServerHttp2Session>()

  const begin = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, peer: string | undefined): void => {
    // Without a listener for it, a call that is given up would end the process.
    stream.on('error', () => {})
    const method = byPath.get(headers[':path'] ?? '')
    const { 'grpc-encoding': encoding = 'identity' } = headers
    if (!isGrpc(headers)) refuse(stream, { ':status': constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE })
    else if (!method) fail(stream, grpcStatus.UNIMPLEMENTED, 'unknown method')
    else if (encoding !== 'identity') fail(stream, grpcStatus.UNIMPLEMENTED, 'compressed messages are not served')
    else if (method.mayAsk?.(peer) === false) call(stream, method, nothing, peer)
    else readMessage(stream, method.largestMessage, (bytes) => call(stream, method, bytes, peer))
  }

  return {
    serve(socket) {
      const session = performServerHandshake(socket, {
        maxSessionMemory,
        settings: { maxConcurrentStreams, enablePush: false },
      })
      sessions.add(session)
      const stopAsking = askWhetherThere(session, keepAlive)
      session.on('stream', (stream, headers) => begin(stream, headers, socket.remoteAddress))
      session.on('error', () => session.destroy())
      session.once('close', () => {
        sessions.delete(session)
        stopAsking()
        // Settings that the client never acknowledged keep the session, and these would keep its socket with it.
        session.removeAllListeners()
      })
    },
    drain(graceMs) {
      const left = [...sessions]
      for (const session of left) session.close()
      setTimeout(() => {
        for (const session of left) session.destroy()
      }, graceMs).unref()
    },
  }
}

const call = (stream: ServerHttp2Stream, method: UnaryMethod, bytes: Buffer, peer: string | undefined): void => {
  let message: unknown
  try {
    message = method.requestDeserialize(bytes)
  } catch {
    fail(stream, grpcStatus.INTERNAL, 'the message cannot be read')
    return
  }
  method.handle(message, {
    peer,
    reply: (answer) => reply(stream, method.responseSerialize(answer)),
    fail: (status, text) => fail(stream, status, text),
    whenOver: (listener) => void stream.once('close', listener),
  })
}

const isGrpc = ({ ':method': method, 'content-type': type }: IncomingHttpHeaders): boolean =>
  method === 'POST' && (type === 'application/grpc' || type === 'application/grpc+proto')

/** Calls `take` with the only message of a call, or ends the call. */
const readMessage = (stream: ServerHttp2Stream, most: number, take: (bytes: Buffer) => void): void => {
  const chunks: Buffer[] = []
  let length = 0
  /** With the prefix, as that says. */
  let wanted = -1
  stream.on('data', (chunk: Buffer) => {
    if (stream.headersSent) return
    chunks.push(chunk)
    length += chunk.length
    if (wanted < 0 && length >= prefixLength) {
      const prefix = whole(chunks)
      wanted = prefixLength + prefix.readUInt32BE(1)
      if (prefix[0] !== 0) return fail(stream, grpcStatus.INTERNAL, 'the message is compressed without saying how')
    }
    if (wanted > prefixLength + most) fail(stream, grpcStatus.RESOURCE_EXHAUSTED, 'the message is too large')
    else if (wanted >= 0 && length > wanted) fail(stream, grpcStatus.INTERNAL, 'more than one message')
  })
  stream.once('end', () => {
    if (stream.headersSent || stream.destroyed) return
    if (length !== wanted) return fail(stream, grpcStatus.INTERNAL, 'no whole message')
    take(whole(chunks).subarray(prefixLength))
  })
}

const whole = (chunks: readonly Buffer[]): Buffer => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))

const reply = (stream: ServerHttp2Stream, answer: Buffer): void => {
  if (stream.destroyed || stream.headersSent) return
  const message = Buffer.allocUnsafe(prefixLength + answer.length)
  message[0] = 0
  message.writeUInt32BE(answer.length, 1)
  answer.copy(message, prefixLength)
  stream.respond(answerHead, withTrailers)
  stream.once('wantTrailers', sendEnd)
  stream.end(message)
}

function sendEnd(this: ServerHttp2Stream): void {
  this.sendTrailers(answerEnd)
  // Of a call that was answered before it was read.
  if (!this.readableEnded) setImmediate(() => this.close(constants.NGHTTP2_NO_ERROR))
}

/** Without a message: the status stands in the only fields. `message` is ASCII without a percent sign. */
const fail = (stream: ServerHttp2Stream, status: GrpcStatus, message: string): void =>
  refuse(stream, { ...answerHead, 'grpc-status': String(status), 'grpc-message': message })

/** What is still to come of the call is not wanted (RFC 9113 §8.1). */
const refuse = (stream: ServerHttp2Stream, head: Record<string, string | number>): void => {
  if (stream.destroyed || stream.headersSent) return
  stream.respond(head, { endStream: true })
  stream.close(constants.NGHTTP2_NO_ERROR)
}

/** Ends connections whose other side is gone, or has never spoken. */
const askWhetherThere = (session: ServerHttp2Session, { interval, timeout }: GrpcServerSettings['keepAlive']) => {
  let gone: NodeJS.Timeout | undefined
  const asking = setInterval(() => {
    if (session.destroyed) return
    gone = setTimeout(() => session.destroy(), timeout).unref()
    if (!session.ping(() => clearTimeout(gone))) session.destroy()
  }, interval).unref()
  return () => {
    clearInterval(asking)
    clearTimeout(gone)
  }
}
