import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type CloseReason, closeFrame, followFrames } from './websocket-frames.ts'

/** How long the two sides get to finish once one of them, or we, ended the connection. In ms. */
const graceMs = 3_000

/**
 * Stands in the place of the client's socket towards the library that carries the frames. What it writes reaches the
 * client only after `open` (until then the answer is an ordinary one of ours), and `close` can say why the connection
 * ends: a close frame to both sides, put between two frames, and then the end, whether they agree or not.
 */
export class WebSocketBridge extends Duplex {
  /** `performance.now()` when something last came from either side. */
  lastMoved = performance.now()
  readonly #client: Socket
  readonly #fromClient = followFrames()
  readonly #toClient = followFrames()
  #open = false
  #headDue = false
  #closing: CloseReason | undefined
  #clientTold = false
  #upstreamTold = false
  #grace: NodeJS.Timeout | undefined

  constructor(client: Socket) {
    super({ allowHalfOpen: true })
    this.#client = client
    client.on('data', (chunk) => this.#receive(chunk))
    client.on('end', () => {
      if (!this.#open) {
        this.#abandon()
        return
      }
      if (!this.#upstreamTold) this.push(null)
      this.#upstreamTold = true
      this.#endSoon()
    })
    client.on('error', () => this.destroy())
    client.on('close', () => this.destroy())
  }

  /**
   * The gateway has answered 101: from now on what is written goes to the client, but for the library's own answer,
   * which comes first.
   */
  open(): void {
    this.#open = true
    this.#headDue = true
  }

  /** Ends the connection with a reason. Once; what is still under way is lost. */
  close(reason: CloseReason): void {
    if (this.#closing || this.destroyed) return
    this.#closing = reason
    if (this.#toClient.atBoundary) this.#tellClient()
    if (this.#fromClient.atBoundary) this.#tellUpstream()
    this.#client.resume()
    this.#endSoon()
  }

  // Asked for by the library, as of a socket.
  setTimeout(): this {
    return this
  }
  setNoDelay(on: boolean): this {
    this.#client.setNoDelay(on)
    return this
  }
  setKeepAlive(on: boolean, delay: number): this {
    this.#client.setKeepAlive(on, delay)
    return this
  }

  override _read(): void {
    this.#client.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#toTheClient(chunk)) done()
    else this.#client.once('drain', done)
  }

  override _final(done: () => void): void {
    if (this.#open) this.#client.end()
    this.#endSoon()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#grace)
    if (this.#open) this.#client.destroy()
    // The answer goes on without the bridge; a client that leaves must still be noticed.
    else this.#client.resume()
    done(error)
  }

  /** Returns whether more may come at once. */
  #toTheClient(chunk: Buffer): boolean {
    if (!this.#open || this.#clientTold) return true
    if (this.#headDue) {
      this.#headDue = false
      return true
    }
    this.lastMoved = performance.now()
    const taken = this.#toClient.follow(chunk, this.#closing !== undefined)
    const flowing = this.#client.write(taken === chunk.length ? chunk : chunk.subarray(0, taken))
    if (!this.#closing || !this.#toClient.atBoundary) return flowing
    this.#tellClient()
    return true
  }

  #receive(chunk: Buffer): void {
    if (this.#upstreamTold || this.destroyed) return
    // RFC 6455 §4.1: a client sends nothing before the answer. Earlier bytes may be an attempt to smuggle a request.
    if (!this.#open) {
      this.#abandon()
      return
    }
    this.lastMoved = performance.now()
    const taken = this.#fromClient.follow(chunk, this.#closing !== undefined)
    const flowing = this.push(taken === chunk.length ? chunk : chunk.subarray(0, taken))
    if (this.#closing && this.#fromClient.atBoundary) this.#tellUpstream()
    else if (!flowing) this.#client.pause()
  }

  #abandon(): void {
    this.#client.destroy()
    this.destroy()
  }

  #tellClient(): void {
    this.#clientTold = true
    this.#client.end(closeFrame(this.#closing!, { masked: false }))
  }

  #tellUpstream(): void {
    if (this.#upstreamTold) return
    this.#upstreamTold = true
    this.push(closeFrame(this.#closing!, { masked: true }))
    this.push(null)
  }

  #endSoon(): void {
    this.#grace ??= setTimeout(() => this.destroy(), graceMs).unref()
  }
}
