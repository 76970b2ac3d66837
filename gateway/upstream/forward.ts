import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { problem } from '../refusals/problems.ts'
import type { DecidedRequest, RequestContext, Stage } from '../request/request-context.ts'
import type { ActiveRequest } from './active-requests.ts'
import { addAnswerFields, answerHeaders } from './answer-headers.ts'
import { ClientRate } from './client-rate.ts'
import { type Upstreams, upstreamOf } from './require-upstream.ts'
import { answerTrailers } from './trailers.ts'
import type { Upstream } from './upstream.ts'
import { upstreamError } from './upstream-error.ts'
import { upstreamHeaders, upstreamPath } from './upstream-request.ts'

/**
 * Bodies up to this many bytes are read before the upstream is asked: one write there, and a slow client holds no
 * upstream connection.
 */
const readAheadBytes = 16_384

/** Longer bodies are not worth copying. */
const asTextBytes = 16_384

export interface ForwardParts {
  upstreams: Upstreams
  /** Ends a request whose upstream failed after the stage had returned. */
  fail: (context: RequestContext, error: unknown) => void
}

/**
 * The last stage: one request upstream, re-framed, streaming both ways with back-pressure. The path is the canonical
 * one, the header fields are those that the first stage let through plus our own. A request takes its slot here, before
 * its body has come.
 */
export const createForward =
  ({ upstreams, fail }: ForwardParts): Stage<DecidedRequest> =>
  (context) => {
    const { request, route } = context
    const { bodyLength } = request
    const upstream = upstreamOf(upstreams, route)
    if (bodyLength !== undefined && bodyLength > route.bodySize) throw tooLarge()
    if (upstream.activeRequests.size >= upstream.maxRequests) throw problem('server.unavailable')
    const forwarded = new ForwardedRequest(context, upstream, fail)
    context.upstreamRequest = forwarded
    if (context.headers.expect !== undefined) context.response.writeContinue()
    if (bodyLength === 0) forwarded.dispatch(null)
    else if (bodyLength !== undefined && bodyLength <= readAheadBytes) readAhead(context.incoming, forwarded)
    else forwarded.dispatch(chunksOf(context.incoming, route.bodySize, forwarded))
  }

const readAhead = (incoming: IncomingMessage, forwarded: ForwardedRequest): void => {
  const chunks: Buffer[] = []
  forwarded.waitsForClient = true
  incoming.on('data', (chunk: Buffer) => {
    forwarded.clientRate.moved(chunk.length)
    chunks.push(chunk)
  })
  incoming.once('end', () => {
    forwarded.waitsForClient = false
    // The client may have left in between, or have been too slow.
    if (!forwarded.ended) forwarded.dispatch(wholeOf(chunks))
  })
}

/** Without a copy of the only one. */
const wholeOf = (chunks: readonly Buffer[]): Buffer => {
  const [first, ...others] = chunks
  return first && others.length === 0 ? first : Buffer.concat(chunks)
}

const tooLarge = () => problem('content_too_large')

/**
 * The body as it arrives. Leaves the connection to the client open when the upstream stops reading: its answer must
 * still get there.
 */
async function* chunksOf(
  incoming: IncomingMessage,
  limit: number,
  forwarded: ForwardedRequest,
): AsyncGenerator<Buffer> {
  let size = 0
  forwarded.waitsForClient = true
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    forwarded.clientRate.moved(chunk.length)
    if (size > limit) throw tooLarge()
    forwarded.waitsForClient = false
    yield chunk
    forwarded.waitsForClient = true
  }
  forwarded.waitsForClient = false
}

const flushHead = (forwarded: ForwardedRequest): void => forwarded.flushHead()

const clientGone = new Error('the client went away')

/**
 * A request that holds a slot of its upstream, from its admission to the end of the upstream's answer. A class, unlike
 * elsewhere: undici calls its methods on every chunk, and a prototype is cheaper than five closures a request.
 */
class ForwardedRequest implements Dispatcher.DispatchHandler, ActiveRequest {
  place = -1
  /**
   * Whether the rest of its body is awaited. While it reads the answer too slowly, the controller is paused instead.
   */
  waitsForClient = false
  #clientRate: ClientRate | undefined
  /** When the upstream last did something. */
  #since: number
  readonly #context: DecidedRequest
  readonly #response: ServerResponse
  readonly #upstream: Upstream
  readonly #fail: (context: RequestContext, error: unknown) => void
  #controller: Dispatcher.DispatchController | undefined
  #dispatched = false
  #cancelled = false
  #begun = false
  #bodyBegun = false
  /** Of the answer, as announced, in bytes. */
  #length = Number.NaN
  /** Bytes given to the client since it last had taken all of them. */
  #given = 0

  constructor(context: DecidedRequest, upstream: Upstream, fail: (context: RequestContext, error: unknown) => void) {
    this.#context = context
    this.#response = context.response
    this.#upstream = upstream
    this.#fail = fail
    this.#since = upstream.now
    upstream.activeRequests.add(this)
  }

  /** Made when it is needed: most requests never wait for their client. */
  get clientRate(): ClientRate {
    this.#clientRate ??= new ClientRate(this.#upstream.clientTimeout)
    return this.#clientRate
  }

  /** Whether it has given its slot back. */
  get ended(): boolean {
    return this.place < 0
  }

  /** @param body null = none. */
  dispatch(body: Buffer | AsyncGenerator<Buffer> | null): void {
    this.#dispatched = true
    this.#upstream.pool.dispatch(
      {
        path: upstreamPath(this.#context, this.#upstream),
        method: this.#context.request.method as Dispatcher.HttpMethod,
        headers: upstreamHeaders(this.#context),
        // undici takes any iterable of chunks, which its type does not say.
        body: body as Buffer | null,
      },
      this,
    )
  }

  /** The client went away: nobody waits for the answer. */
  cancel(): void {
    this.#cancelled = true
    this.#end(clientGone)
  }

  check(): void {
    const { now, checkInterval, headersTimeout, idleTimeout } = this.#upstream
    if (this.waitsForClient || this.#controller?.paused) {
      this.#since = now
      if (this.clientRate.isTooSlow(now, checkInterval))
        this.#end(problem(this.#begun ? 'client_too_slow' : 'request_timeout'))
      return
    }
    this.#clientRate?.rest()
    // undici has its own timer for connections.
    if (this.#controller === undefined) this.#since = now
    const timeout = this.#begun ? idleTimeout : headersTimeout
    if (timeout > 0 && now - this.#since >= timeout + checkInterval) this.#end(problem('upstream_timeout'))
  }

  #end(reason: Error): void {
    if (this.ended) return
    // Before undici has a connection for it there is no controller; `onRequestStart` looks again.
    if (this.#dispatched) return void this.#controller?.abort(reason)
    this.#upstream.activeRequests.remove(this)
    if (!this.#cancelled) this.#fail(this.#context, reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#since = this.#upstream.now
    if (this.#cancelled) controller.abort(clientGone)
  }

  onBodySent(): void {
    this.#since = this.#upstream.now
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Interim answers (RFC 9110 §15.2) concern this hop, and are no answer however many come.
    if (status < 200) return
    this.#since = this.#upstream.now
    this.#begun = true
    const flat = addAnswerFields(answerHeaders(status, headers, this.#context.route), this.#context)
    flat.push('x-request-id', this.#context.id)
    // What is still to come of the request will not be read, so nothing can follow it on this connection.
    if (this.#context.request.bodyLength !== 0 && !this.#context.incoming.complete) flat.push('connection', 'close')
    this.#length = Number(headers['content-length'])
    this.#response.writeHead(status, flat)
    // Node keeps the head for the first piece of the body, which of a stream of events may come much later.
    if (Number.isNaN(this.#length)) process.nextTick(flushHead, this)
  }

  flushHead(): void {
    if (!this.#bodyBegun && !this.#response.destroyed) this.#response.flushHeaders()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#since = this.#upstream.now
    this.#bodyBegun = true
    if (chunk.length === this.#length) return void this.#endWith(chunk)
    this.#given += chunk.length
    if (this.#response.write(chunk)) return
    controller.pause()
    this.#response.once('drain', () => {
      this.clientRate.moved(this.#given)
      this.#given = 0
      controller.resume()
    })
  }

  /**
   * The whole body at once. As text of bytes it goes into one string with the head: one plain write, ~6 % of a request
   * cheaper than two buffers.
   */
  #endWith(body: Buffer): void {
    if (body.length > asTextBytes) this.#response.end(body)
    else this.#response.end(body.toString('latin1'), 'latin1')
  }

  onResponseEnd(
    _controller: Dispatcher.DispatchController,
    trailers: Readonly<Record<string, string | string[] | undefined>> | undefined,
  ): void {
    this.#upstream.activeRequests.remove(this)
    this.#bodyBegun = true
    const passed = trailers && answerTrailers(this.#context, trailers)
    if (passed) this.#response.addTrailers(passed)
    if (!this.#response.writableEnded) this.#response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#upstream.activeRequests.remove(this)
    if (!this.#cancelled) this.#fail(this.#context, upstreamError(error))
  }
}
