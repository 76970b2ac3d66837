import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'

/**
 * A request over HTTP/2, with what the pipeline uses of Node's `IncomingMessage` and the same meaning. Node's own
 * compatibility layer ends the body of a cancelled request as if it were whole. Made by the public listener only, which
 * sets the limits of HTTP/2: requests of another server are refused.
 */
export class Http2Request extends Readable {
  readonly httpVersion = '2.0'
  readonly httpVersionMajor = 2
  readonly httpVersionMinor = 0
  readonly method: string
  /** `:path`. */
  readonly url: string
  /** Without duplicates, as Node joins them. */
  readonly headers: IncomingHttpHeaders
  /** As received: pseudo-header fields first. */
  readonly rawHeaders: string[]
  /** Of the connection. */
  readonly socket: Socket
  /** Whether the message has come to its end. */
  complete: boolean
  readonly #stream: ServerHttp2Stream

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[], socket: Socket) {
    super({ autoDestroy: false })
    this.method = headers[':method'] ?? ''
    this.url = headers[':path'] ?? ''
    this.headers = headers
    this.rawHeaders = rawHeaders
    this.socket = socket
    this.complete = stream.endAfterHeaders
    this.#stream = stream
    if (this.complete) this.push(null)
    stream.once('aborted', () => this.destroy())
    stream.once('close', () => this.destroy())
  }

  override _read(): void {
    if (this.complete) return
    if (this.#stream.listenerCount('data') > 0) return void this.#stream.resume()
    this.#stream.on('data', (chunk: Buffer) => {
      if (!this.destroyed && !this.push(chunk)) this.#stream.pause()
    })
    // Comes in the same tick as `aborted` for a stream that was cut off, and after it.
    this.#stream.once('end', () => {
      if (this.destroyed) return
      this.complete = true
      this.push(null)
    })
  }

  /** Nobody wants the rest of it. */
  leaveUnread(): void {
    this.destroy()
    // A stream closes when all that has arrived is read.
    if (!this.#stream.destroyed) this.#stream.resume()
  }

  /** Whoever reads the body of a request that breaks off gets an error, as over HTTP/1.1. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const cause = error ?? (this.readableEnded ? null : Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))
    callback(cause && this.listenerCount('error') > 0 ? cause : null)
  }
}
