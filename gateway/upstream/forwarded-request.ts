import type { Dispatcher } from 'undici'
import { problem } from '../refusals/problems.ts'
import type { DecidedRequest, RequestContext, UpstreamRequest } from '../request/request-context.ts'
import { type Attempt, beginAttempt, endAttempt } from '../request/request-trace.ts'
import type { ActiveRequest } from './active-requests.ts'
import { type AnswerFields, AnswerToClient } from './answer-to-client.ts'
import { clientGone, discarded, type FailedAttempt, outcomeOf } from './attempt-outcome.ts'
import { chunksOf, type RequestBody, streamed } from './request-body.ts'
import { causeOf, isIdempotent, type RetryCause } from './retries.ts'
import { anyTarget, nextTarget } from './target-choice.ts'
import type { Target } from './targets/target.ts'
import type { Choice } from './targets/targets.ts'
import type { Upstream } from './upstream.ts'
import { upstreamError } from './upstream-error.ts'
import { upstreamHeaders, upstreamPath } from './upstream-request.ts'

const expire = (forwarded: ForwardedRequest): void => forwarded.expire()
const sendAgain = (forwarded: ForwardedRequest): void => forwarded.sendAgain()

/**
 * A request that holds a slot of its upstream, from its admission to the end of the upstream's answer, through all of
 * its attempts. A class, unlike elsewhere: undici calls its methods on every chunk, and a prototype is cheaper than
 * five closures a request.
 */
export class ForwardedRequest
  extends AnswerToClient
  implements Dispatcher.DispatchHandler, ActiveRequest, UpstreamRequest
{
  place = -1
  retries = 0
  /**
   * Whether the rest of its body is awaited. While it reads the answer too slowly, the controller is paused instead.
   */
  waitsForClient = false
  /** When the upstream last did something. */
  #since: number
  readonly #context: DecidedRequest
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
  /** For the trace. */
  #attempt: Attempt | undefined
  #dispatched = false
  #cancelled = false
  #expired = false

  constructor(context: DecidedRequest, upstream: Upstream, fail: (context: RequestContext, error: unknown) => void) {
    super(context, upstream.clientTimeout)
    this.#context = context
    this.#upstream = upstream
    this.#fail = fail
    this.#since = upstream.now
    upstream.activeRequests.add(this)
    upstream.retries?.request(upstream.now)
    const { timeout } = context.route
    if (timeout !== undefined) this.#timer = setTimeout(expire, timeout, this)
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
    this.#attempt = beginAttempt(this.#context, target, this.#headers!)
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

  /**
   * The client went away: nobody waits for the answer. Keeps its slot while undici connects, or clients that come and
   * go would open connections without a limit.
   */
  cancel(): void {
    this.#cancelled = true
    this.#end(clientGone)
  }

  /** The time of the route is up. */
  expire(): void {
    if (this.ended || this.#cancelled) return
    this.#expired = true
    const waitsForClient = this.waitsForClient || (this.#controller?.paused ?? false)
    const late = this.status > 0 ? 'client_too_slow' : 'request_timeout'
    const reason = problem(waitsForClient ? late : 'upstream_timeout')
    if (this.#controller || !this.#dispatched) return void this.#end(reason)
    // undici cannot be called off while it connects, which `connectTimeout` ends: the target has it until then.
    this.#endWithout(reason)
    this.#cancelled = true
  }

  check(): void {
    const { now, checkInterval, headersTimeout, idleTimeout } = this.#upstream
    const begun = this.status > 0
    if (this.waitsForClient || this.#controller?.paused) {
      this.#since = now
      if (this.clientRate.isTooSlow(now, checkInterval))
        this.#end(problem(begun ? 'client_too_slow' : 'request_timeout'))
      return
    }
    this.restClientRate()
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
    // A connection that ends without a head looks like one on which nothing was answered, and clients ask again.
    if (this.status > 0) this.flushHead()
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

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: AnswerFields): void {
    // Interim answers (RFC 9110 §15.2) concern this hop, and are no answer however many come.
    if (status < 200) return
    if (this.#attempt) this.#attempt.status = status
    if (this.#upstream.retries?.on.has(status)) {
      // A server that says when to come back is not asked again before.
      this.#next = this.#nextTarget(status as RetryCause, headers['retry-after'] === undefined)
      // Reading an answer that nobody gets could take for ever.
      if (this.#next) return void controller.abort(discarded)
    }
    this.#since = this.#upstream.now
    this.beginAnswer(status, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#since = this.#upstream.now
    this.passOn(controller, chunk)
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: AnswerFields | undefined): void {
    this.#release()
    this.#target?.end(this.status >= 502 && this.status <= 504 ? 'failed' : 'answered')
    endAttempt(this.#attempt, {})
    this.endAnswer(trailers)
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, thrown: Error): void {
    const error = upstreamError(thrown)
    // Of an attempt that was given up for its answer, the status says why.
    if (thrown === discarded) endAttempt(this.#attempt, {})
    else endAttempt(this.#attempt, { error: thrown === clientGone ? 'client_gone' : error.code })
    this.#target?.end(outcomeOf(thrown, this.#failedAttempt))
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

  get #failedAttempt(): FailedAttempt {
    const { incoming, request } = this.#context
    return {
      answered: this.status > 0,
      clientBroke: this.#body === streamed && !incoming.complete && incoming.destroyed,
      expired: this.#expired,
      alone: this.retries === 0 && request.bodyLength === 0,
    }
  }

  get #triedTargets(): Target[] {
    return this.#target ? [...(this.#tried ?? []), this.#target] : []
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
    if (this.#cancelled || this.#expired || this.status > 0 || this.retries + 1 >= retries.attempts) return undefined
    const sent = this.#controller !== undefined
    if (sent && (this.#body === streamed || !isIdempotent(request.method))) return undefined
    const next = nextTarget(targets, this.#choice, this.#triedTargets, again)
    return next && retries.take(cause, now) ? next : undefined
  }
}
