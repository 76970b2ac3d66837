import { EventEmitter } from 'node:events'
import { type OutgoingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Http2Request } from '../request/http2-request.ts'

const { NGHTTP2_NO_ERROR } = constants

/** Resets the stream with INTERNAL_ERROR. */
const brokenOff = new Error('the answer was broken off')

/**
 * An answer over HTTP/2, with what the pipeline uses of Node's `ServerResponse` and the same meaning. The head is kept
 * until the first piece of the body, so that an answer without one is a single frame.
 */
export class Http2Response extends EventEmitter {
  readonly req: Http2Request
  readonly socket: Socket
  statusCode = 200
  headersSent = false
  writableEnded = false
  /** Of no meaning: an answer does not end its connection. */
  shouldKeepAlive = true
  readonly #stream: ServerHttp2Stream
  #head: OutgoingHttpHeaders = {}
  #flushed = false
  #trailers: OutgoingHttpHeaders | undefined
  #abandoned = false

  constructor(stream: ServerHttp2Stream, request: Http2Request, socket: Socket) {
    super()
    this.req = request
    this.socket = socket
    this.#stream = stream
    stream.on('drain', () => this.emit('drain'))
    stream.once('finish', () => this.#finished())
    stream.once('close', () => this.emit('close'))
    // What went wrong is told by `close`, as of a connection of HTTP/1.1.
    stream.on('error', () => {})
  }

  get destroyed(): boolean {
    return this.#stream.destroyed || (this.#stream.closed && !this.writableEnded)
  }

  /** Whether all of it was handed to the connection. */
  get writableFinished(): boolean {
    const { writableFinished, rstCode } = this.#stream
    return this.writableEnded && !this.#abandoned && writableFinished && rstCode === NGHTTP2_NO_ERROR
  }

  /** Bytes that the client has not taken yet. */
  get waiting(): number {
    return this.#stream.writableLength + this.#stream.bufferSize
  }

  writeContinue(): void {
    if (!this.destroyed && !this.#flushed) this.#stream.additionalHeaders({ ':status': 100 })
  }

  /** Throws for what cannot be sent, as `ServerResponse` does. `connection: close` is for HTTP/1.1 only. */
  writeHead(status: number, fields: readonly string[] | OutgoingHttpHeaders = {}): this {
    const head: OutgoingHttpHeaders = Object.create(null)
    const pairs = Array.isArray(fields) ? pairsOf(fields) : Object.entries(fields as OutgoingHttpHeaders)
    for (const [name, value] of pairs) {
      if (value === undefined || name === 'connection') continue
      validateHeaderName(name)
      validateHeaderValue(name, value as string)
      const earlier = head[name]
      head[name] = earlier === undefined ? value : [earlier, value].flat().map(String)
    }
    this.statusCode = status
    this.headersSent = true
    this.#head = head
    return this
  }

  flushHeaders(): void {
    this.#flush(false)
  }

  /** Whether more may be written at once. */
  write(chunk: Buffer | string, encoding?: BufferEncoding): boolean {
    this.#flush(false)
    if (this.#stream.writableEnded || this.#stream.destroyed) return true
    return this.#stream.write(chunk, encoding ?? 'utf8')
  }

  end(chunk?: Buffer | string, encoding?: BufferEncoding): this {
    if (this.writableEnded) return this
    this.writableEnded = true
    this.#flush((chunk === undefined || chunk.length === 0) && this.#trailers === undefined)
    if (this.#stream.writableFinished) this.#finished()
    if (this.#stream.writableEnded || this.#stream.destroyed) return this
    if (chunk === undefined) this.#stream.end()
    else this.#stream.end(chunk, encoding ?? 'utf8')
    return this
  }

  addTrailers(trailers: OutgoingHttpHeaders): void {
    for (const [name, value] of Object.entries(trailers)) validateHeaderValue(name, String(value))
    this.#trailers = trailers
  }

  /** The client gets this answer, and whoever works on the request is told that the client is gone. */
  abandon(answer: (response: this) => void): void {
    this.#abandoned = true
    if (this.headersSent) this.destroy()
    else answer(this)
  }

  /** Breaks the answer off so that nobody takes it for whole. */
  destroy(): void {
    // `close` would end the stream as if the answer were whole, before it resets it.
    this.#stream.destroy(brokenOff)
  }

  #flush(endStream: boolean): void {
    if (this.#flushed || this.#stream.destroyed || this.#stream.closed) return
    this.#flushed = true
    this.headersSent = true
    const bodyless = endStream || this.req.method === 'HEAD' || this.statusCode === 204 || this.statusCode === 304
    // Only clients that ask for trailers get them, and they alone pay for the wait.
    const waitForTrailers = !bodyless && this.req.headers.te !== undefined
    if (waitForTrailers) this.#stream.once('wantTrailers', () => this.#stream.sendTrailers(this.#trailers ?? {}))
    this.#stream.respond({ ...this.#head, ':status': this.statusCode }, { endStream: bodyless, waitForTrailers })
  }

  /** RFC 9113 §8.1: the client need not send the rest of a request that is answered. */
  #finished(): void {
    if (this.req.complete || !this.writableEnded) return
    setImmediate(() => {
      if (!this.#stream.destroyed && !this.req.complete) this.#stream.close(NGHTTP2_NO_ERROR)
      this.req.leaveUnread()
    })
  }
}

function* pairsOf(flat: readonly string[]): Generator<[string, string]> {
  for (let index = 0; index + 1 < flat.length; index += 2) yield [flat[index]!, flat[index + 1]!]
}
