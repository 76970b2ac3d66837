import type { Socket } from 'node:net'
import { Agent, buildConnector, Client, type Dispatcher, Pool } from 'undici'

/**
 * HTTP/1.1 clients that limit what a server may send, counted at the connection after TLS. Parsers drop bytes that no
 * handler sees, such as chunk extensions (RFC 9112 §7.1.1); a time limit alone would allow gigabytes.
 */
export interface BoundedOptions {
  /**
   * Of a body with its framing, which may take as much again where chunks are small. With more the body ends as an
   * error; what came before is not taken back.
   */
  maxBodyBytes: number
  /** Default: as undici does, with 10 s to connect. */
  connect?: buildConnector.connector
  keepAliveTimeout?: number
  keepAliveMaxTimeout?: number
}

export interface BoundedAgentOptions extends BoundedOptions {
  /** To one origin. */
  connections: number
  /** How long a client is used, in ms. Default: without end. */
  clientTtl?: number
}

/** What carries one request. */
export interface Connection {
  address: string | undefined
  /** It has carried a request before. */
  reused: boolean
}

/** Among the options of `dispatch`: the caller is told what carries the request. */
export interface Watched {
  onConnection?: (connection: Connection) => void
}

/** Of status lines and header fields, those of interim answers included. With more a request fails. */
const maxHeadBytes = 65_536
/** 1xx (RFC 9110 §15.2). With more a request fails. */
const maxInterimAnswers = 20
/** Where no answer is expected: line ends may be passed over (RFC 9112 §9.2). With more the connection is closed. */
const maxStrayBytes = 16

const messages = {
  head: 'The answer has too many or too large header fields.',
  interim: `The answer comes after more than ${maxInterimAnswers} interim answers.`,
  body: 'The body of the answer is too large.',
}
type Part = keyof typeof messages

/** What requests and bodies end with. The message is for people. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
  readonly code = 'ANSWER_TOO_LARGE'
}

/** One connection at a time, with one request at a time on it. */
export class BoundedClient extends Client {
  readonly #maxBodyBytes: number
  #socket: Socket | undefined
  #connection: Connection = { address: undefined, reused: false }
  /** What comes now, behind the first `#before` bytes of the connection. Undefined: nothing is expected. */
  #part: Part | undefined
  #before = 0
  /** How many bytes of it may come. */
  #most = maxStrayBytes

  constructor(origin: string | URL, options: BoundedOptions) {
    const { maxBodyBytes, connect = buildConnector({ allowH2: false }), ...others } = options
    super(origin, {
      ...others,
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: maxHeadBytes,
      connect: (target, callback) =>
        connect(target, (...result) => {
          const socket = result[1]
          if (socket) {
            this.#socket = socket
            this.#connection = { address: socket.remoteAddress, reused: false }
            this.#expect(undefined, maxStrayBytes)
          }
          callback(...result)
          // After that of the parser, which by then has gone through all that was read.
          socket?.on('readable', () => this.#check(socket))
        }),
    })
    this.#maxBodyBytes = maxBodyBytes
  }

  #expect(part: Part | undefined, most: number, before = this.#socket?.bytesRead ?? 0) {
    this.#part = part
    this.#most = most
    this.#before = before
  }

  #check(socket: Socket) {
    if (socket === this.#socket && socket.bytesRead - this.#before > this.#most) this.#end(this.#part)
  }

  #end(part: Part | undefined) {
    this.#socket?.destroy(part && new AnswerTooLarge(messages[part]))
  }

  override dispatch(options: Dispatcher.DispatchOptions & Watched, handler: Dispatcher.DispatchHandler): boolean {
    const { onRequestStart, onResponseStart, onResponseEnd } = handler
    let interim = 0
    let heads = 0
    // Not assigned where they are written, for the reason that `runStatement` gives.
    const watched: Dispatcher.DispatchHandler = {
      onRequestStart: (controller, context) => {
        options.onConnection?.({ ...this.#connection })
        this.#connection.reused = true
        this.#expect('head', maxHeadBytes)
        onRequestStart?.call(handler, controller, context)
      },
      onResponseStart: (controller, status, headers, message) => {
        heads += usualSize(controller)
        // What was read may hold a piece of the body too: it counts.
        if (status >= 200) this.#expect('body', this.#maxBodyBytes, this.#before + heads)
        else if (++interim > maxInterimAnswers) this.#end('interim')
        onResponseStart?.call(handler, controller, status, headers, message)
      },
      onResponseEnd: (controller, trailers) => {
        this.#expect(undefined, maxStrayBytes)
        onResponseEnd?.call(handler, controller, trailers)
      },
    }
    return super.dispatch(options, Object.assign(handler, watched))
  }
}

/** Of a head, in bytes, as nearly all servers write it: `HTTP/1.1 200 OK`, `name: value`. */
const usualSize = ({ rawHeaders }: Dispatcher.DispatchController): number =>
  (rawHeaders as Buffer[]).reduce((size, part) => size + part.length + 2, 19)

/** An agent of such clients. */
export const createBoundedAgent = ({ connections, clientTtl, ...options }: BoundedAgentOptions): Agent =>
  new Agent({
    connections,
    ...(clientTtl !== undefined && { clientTtl }),
    // Only a pool heeds it; with one connection an agent would do without.
    factory: (origin, own) => new Pool(origin, { ...own, factory: (one) => new BoundedClient(one, options) }),
  })
