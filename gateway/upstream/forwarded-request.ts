import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { problem } from '../refusals/problems.ts'
import type { DecidedRequest, RequestContext, UpstreamRequest } from '../request/request-context.ts'
import type { ActiveRequest } from './active-requests.ts'
import { addAnswerFields, answerHeaders } from './answer-headers.ts'
import { ClientRate } from './client-rate.ts'
import { chunksOf, type RequestBody, streamed } from './request-body.ts'
import { causeOf, isIdempotent, type RetryCause } from './retries.ts'
import { anyTarget, nextTarget } from './target-choice.ts'
import type { Outcome, Target } from './targets/target.ts'
import type { Choice } from './targets/targets.ts'
import { answerTrailers } from './trailers.ts'
import type { Upstream } from './upstream.ts'
import { isUpstreamFailure, upstreamError } from './upstream-error.ts'
import { upstreamHeaders, upstreamPath } from './upstream-request.ts'

/** Longer bodies are not worth copying. */
const asTextBytes = 16_384

const flushHead = (forwarded: ForwardedRequest): void => forwarded.flushHead()
const expire = (forwarded: ForwardedRequest): void => forwarded.expire()
const sendAgain = (forwarded: ForwardedRequest): void => forwarded.sendAgain()

const clientGone = new Error('the client went away')
const discarded = new Error('another target is asked')

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * A request that holds a slot of its upstream, from its admission to the end of the upstream's answer, through all of
 * its attempts. A class, unlike elsewhere: undici calls its methods on every chunk, and a prototype is cheaper than
 * five closures a request.
 */
export class ForwardedRequest implements Dispatcher.DispatchHandler, ActiveRequest, UpstreamRequest {
  place = -1
  retries = 0
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
  #timer: NodeJS.Timeout | undefined
  #body: RequestBody = null
  #headers: string[] | undefined
  #choice: Choice = anyTarget
  #tried: Target[] | undefined
  /** The one that has it. */
  #target: Target | undefined
  /** Which gets it once the attempt that failed has ended. */
  #next: Target | undefined
  /** Of the attempt under way; undefined = nothing of it was sent. */
  #controller: Dispatcher.DispatchController | undefined
  #dispatched = false
  #cancelled = false
  #expired = false
  /** The status of the answer that goes to the client; 0 = there is none yet. */
  #status = 0
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
    upstream.retries?.request(upstream.now)
    const { timeout } = context.route
    if (timeout !== undefined) this.#timer = setTimeout(expire, timeout, this)
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

  get target(): string | undefined {
    return this.#target?.name
  }

  dispatch(body: RequestBody): void {
    this.#body = body
    const choice = this.#upstream.choose(this.#context)
    const target = this.#upstream.targets.pick(choice)
    if (!target) return void this.#endWithout(problem('server.unavailable'))
    this.#choice = choice
    this.#headers = upstreamHeaders(this.#context)
    this.#dispatched = true
    this.#target = target
    target.begin()
    this.#send(target)
  }

  #send(target: Target): void {
    const body =
      this.#body === streamed ? chunksOf(this.#context.incoming, this.#context.route.bodySize, this) : this.#body
    target.pool.dispatch(
      {
        path: upstreamPath(this.#context, target),
        method: this.#context.request.method as Dispatcher.HttpMethod,
        headers: this.#headers!,
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

  /** The time of the route is up. */
  expire(): void {
    if (this.ended || this.#cancelled) return
    this.#expired = true
    const waitsForClient = this.waitsForClient || (this.#controller?.paused ?? false)
    const late = this.#status > 0 ? 'client_too_slow' : 'request_timeout'
    const reason = problem(waitsForClient ? late : 'upstream_timeout')
    if (this.#controller || !this.#dispatched) return void this.#end(reason)
    // undici cannot be called off while it connects; the slot is given back when it has.
    this.#cancelled = true
    this.#fail(this.#context, reason)
  }

  check(): void {
    const { now, checkInterval, headersTimeout, idleTimeout } = this.#upstream
    const begun = this.#status > 0
    if (this.waitsForClient || this.#controller?.paused) {
      this.#since = now
      if (this.clientRate.isTooSlow(now, checkInterval))
        this.#end(problem(begun ? 'client_too_slow' : 'request_timeout'))
      return
    }
    this.#clientRate?.rest()
    // undici has its own timer for connections.
    if (this.#controller === undefined) this.#since = now
    const timeout = begun ? idleTimeout : headersTimeout
    if (timeout > 0 && now - this.#since >= timeout + checkInterval) this.#end(problem('upstream_timeout'))
  }

  #end(reason: Error): void {
    if (this.ended) return
    // Before undici has a connection for it there is no controller; `onRequestStart` looks again.
    if (this.#dispatched) return void this.#controller?.abort(reason)
    this.#endWithout(reason)
  }

  /** Before a target has it, or after the last one had it. */
  #endWithout(reason: Error): void {
    this.#release()
    if (!this.#cancelled) this.#fail(this.#context, reason)
  }

  #release(): void {
    this.#upstream.activeRequests.remove(this)
    if (this.#timer) clearTimeout(this.#timer)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#since = this.#upstream.now
    if (this.#cancelled) controller.abort(clientGone)
  }

  onBodySent(): void {
    this.#since = this.#upstream.now
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // Interim answers (RFC 9110 §15.2) concern this hop, and are no answer however many come.
    if (status < 200) return
    if (this.#upstream.retries?.on.has(status)) {
      // A server that says when to come back is not asked again before.
      this.#next = this.#nextTarget(status as RetryCause, headers['retry-after'] === undefined)
      // Reading an answer that nobody gets could take for ever.
      if (this.#next) return void controller.abort(discarded)
    }
    this.#since = this.#upstream.now
    const flat = addAnswerFields(answerHeaders(status, headers, this.#context.route), this.#context)
    flat.push('x-request-id', this.#context.id)
    // What is still to come of the request will not be read, so nothing can follow it on this connection.
    if (this.#context.request.bodyLength !== 0 && !this.#context.incoming.complete) flat.push('connection', 'close')
    this.#length = Number(headers['content-length'])
    this.#response.writeHead(status, flat)
    this.#status = status
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

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: Headers | undefined): void {
    this.#release()
    this.#target?.end(this.#status >= 502 && this.#status <= 504 ? 'failed' : 'answered')
    this.#bodyBegun = true
    const passed = trailers && answerTrailers(this.#context, trailers)
    if (passed) this.#response.addTrailers(passed)
    if (!this.#response.writableEnded) this.#response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, thrown: Error): void {
    const error = upstreamError(thrown)
    this.#target?.end(this.#outcomeOf(thrown))
    const cause = causeOf(error, this.#controller !== undefined)
    const next = this.#next ?? (cause && this.#nextTarget(cause, true))
    if (!next) return void this.#endWithout(error)
    this.retries++
    this.#tried = this.#triedTargets
    this.#target = next
    this.#next = undefined
    this.#controller = undefined
    this.#since = this.#upstream.now
    next.begin()
    // undici is in the middle of taking the failed attempt off its queue.
    process.nextTick(sendAgain, this)
  }

  sendAgain(): void {
    if (!this.#target) return
    if (!this.#cancelled) return void this.#send(this.#target)
    this.#target.end('neither')
    this.#endWithout(clientGone)
  }

  get #triedTargets(): Target[] {
    return this.#target ? [...(this.#tried ?? []), this.#target] : []
  }

  /** What an attempt without an answer says about its target. */
  #outcomeOf(thrown: Error): Outcome {
    if (thrown === discarded) return 'failed'
    if (thrown === clientGone || this.#status > 0 || this.#clientBroke) return 'neither'
    // Earlier attempts may have used up the time.
    if (this.#expired && this.retries > 0) return 'neither'
    return isUpstreamFailure(upstreamError(thrown)) ? 'failed' : 'neither'
  }

  /** Whether the body ended early, which undici reports like an error of the upstream. */
  get #clientBroke(): boolean {
    const { incoming } = this.#context
    return this.#body === streamed && !incoming.complete && incoming.destroyed
  }

  /**
   * The target for another attempt, counted in the budget; undefined: there is none, or it must not be made. A request
   * of which something was sent is only repeated when it is idempotent and its body was kept.
   *
   * @param again whether the target that failed may have it once more, if there is no other.
   */
  #nextTarget(cause: RetryCause, again: boolean): Target | undefined {
    const { retries, targets, now } = this.#upstream
    const { route, request } = this.#context
    if (!retries?.on.has(cause) || route.retries === false) return undefined
    if (this.#cancelled || this.#expired || this.#status > 0 || this.retries + 1 >= retries.attempts) return undefined
    const sent = this.#controller !== undefined
    if (sent && (this.#body === streamed || !isIdempotent(request.method))) return undefined
    const next = nextTarget(targets, this.#choice, this.#triedTargets, again)
    return next && retries.take(cause, now) ? next : undefined
  }
}
