import type { Socket } from 'node:net'
import { type Logger, throttledLevel } from '../platform/logger.ts'
import { AppError } from '../platform/problem.ts'
import { type AuthorizeParts, createAuthorize } from './authorize/authorize.ts'
import { createLimitRate, type LimitRateParts } from './authorize/rate-limit.ts'
import type { RefusalThrottle } from './authorize/refusal-throttle.ts'
import { createRequireSignIn } from './authorize/step-up.ts'
import { type AuthenticateParts, createAuthenticate } from './caller/authenticate.ts'
import {
  createExchangePersonalAccessTokens,
  type ExchangePersonalAccessTokensParts,
} from './caller/personal-access-tokens.ts'
import { createRequireProof, type RequireProofParts } from './caller/require-proof.ts'
import { type CheckRevokedParts, createCheckRevoked } from './caller/revocations.ts'
import type { ForwardAuthSettings } from './config/settings/file.ts'
import { createAllowCheck } from './ext-authz/allow-check.ts'
import { checkedRequestLine, createReadCheck } from './ext-authz/read-check.ts'
import { createAnswerDecision, originalRequest } from './forward-auth.ts'
import { challengeFields } from './refusals/challenges.ts'
import { sendProblem } from './refusals/problem-response.ts'
import { problem } from './refusals/problems.ts'
import { createReadRequest, type ReadRequestParts } from './request/canonical-request.ts'
import { createMatchRoute, type MatchRouteParts } from './request/match-route.ts'
import { createServeOwnDocuments, type ServeOwnDocumentsParts } from './request/own-documents.ts'
import { createReadPolicyBody, createRequireBody, type ReadPolicyBodyParts } from './request/policy-body.ts'
import { createAnswerPreflight } from './request/preflight.ts'
import {
  afterDeciding,
  afterReading,
  afterRouting,
  answered,
  type RequestContext,
  type RoutedRequest,
  type Stage,
} from './request/request-context.ts'
import { type Period, traceFields } from './request/request-trace.ts'
import { createForward, type ForwardParts } from './upstream/forward.ts'
import { type AssertIdentityParts, createAssertIdentity } from './upstream/identity-assertion.ts'
import { createRequireUpstream } from './upstream/require-upstream.ts'
import { createUpgrade, type UpgradeParts } from './upstream/upgrade.ts'

/**
 * What every way of using the gateway shares, in order: the decision about one canonical request. Each stage is one
 * file; it passes, or throws an `AppError`, or answers itself and returns `answered`.
 * @param obtainBody makes sure of the body, where the policy of the route is to see it.
 */
const decisionStages = (
  parts: DecisionParts & ReadRequestParts,
  obtainBody: Stage<RoutedRequest>,
): readonly Stage[] => [
  ...afterReading(
    createMatchRoute(parts), //   404
  ),
  ...afterRouting(
    createLimitRate(parts, 'early'), // by address: 429
    ...enter('verify', parts),
    createExchangePersonalAccessTokens(parts), // 401, 503
    createAuthenticate(parts), // token, keys, audience: 401, 503
    createRequireProof(parts), // DPoP, client certificates: 401, 503
    createCheckRevoked(parts), // 401, 503
    ...leave(parts),
    createLimitRate(parts, 'late'), // by who asks: 429
    createRequireSignIn(parts), // step-up: 401
    obtainBody, //                400, 408, 413, 415, 503
    ...enter('decide', parts),
    createAuthorize(parts), //    policy: 401 for a missing scope, else 403
    ...leave(parts),
  ),
]

/** With telemetry, the stages up to `leave` are one span of a sampled request. */
const enter = (name: Period['name'], { tracing }: ReadRequestParts): readonly Stage[] =>
  tracing ? [({ trace }) => trace?.times?.enter(name)] : []

const leave = ({ tracing }: ReadRequestParts): readonly Stage[] =>
  tracing ? [({ trace }) => trace?.times?.leave()] : []

/** A request through the gateway as a proxy. */
export const proxyStages = (parts: StageParts): readonly Stage[] => [
  createReadRequest(parts), //  one canonical request, untrusted headers gone: 400, 414, 431
  ...afterReading(
    createServeOwnDocuments(parts), // 200 at /.well-known/…
    createAnswerPreflight(parts), // CORS: 204
  ),
  ...decisionStages(parts, createReadPolicyBody(parts)),
  ...afterDeciding(
    createRequireUpstream(parts), // 404 on routes for forward-auth only
    createAssertIdentity(parts), // x-auth-assertion
    createUpgrade(parts), //      101 for WebSockets
    createForward(parts), //      413, 502, 503, 504
  ),
]

/** The same for another proxy, which asks about its request and forwards it itself. */
export const forwardAuthStages = (settings: ForwardAuthSettings, parts: StageParts): readonly Stage[] => [
  createReadRequest(parts, originalRequest(settings)),
  ...decisionStages(parts, createRequireBody()),
  ...afterDeciding(
    createAssertIdentity(parts),
    createAnswerDecision(), //     200
  ),
]

/** The same for Envoy, which asks by gRPC and brings all that it asks about in one message. */
export const extAuthzStages = (parts: StageParts): readonly Stage[] => [
  createReadCheck(parts),
  createReadRequest(parts, checkedRequestLine),
  ...decisionStages(parts, createRequireBody()),
  ...afterDeciding(
    createAssertIdentity(parts),
    createAllowCheck(), //         OK
  ),
]

/** The same as middleware: what is behind the guard takes the place of the upstream. */
export const guardStages = (parts: DecisionParts & ReadRequestParts): readonly Stage[] => [
  createReadRequest(parts),
  ...decisionStages(parts, createRequireBody()),
  ...afterDeciding((request) => void request.next?.(request)),
]

type DecisionParts = MatchRouteParts &
  ExchangePersonalAccessTokensParts &
  AuthenticateParts &
  RequireProofParts &
  CheckRevokedParts &
  LimitRateParts &
  AuthorizeParts

export type StageParts = ReadRequestParts &
  DecisionParts &
  ReadPolicyBodyParts &
  ServeOwnDocumentsParts &
  AssertIdentityParts &
  UpgradeParts &
  ForwardParts

export interface PipelineParts {
  logger: Logger
  /** Called once for every request, whatever ended it, when its answer is out or its client is gone. */
  onFinish: (context: RequestContext) => void
  /** How refusals are answered. */
  send?: typeof sendProblem
  /** Default: at once. */
  refusals?: RefusalThrottle
}

/**
 * Bodies up to this many bytes are read and dropped to keep the connection of a refused request; for longer ones it is
 * closed.
 */
const worthDraining = 65_536

/**
 * Ends a request with a problem document, or, when the answer has begun, by breaking the connection so that nobody
 * takes it for whole.
 */
export const createFail =
  ({ logger, send = sendProblem, refusals }: Pick<PipelineParts, 'logger' | 'send' | 'refusals'>) =>
  (context: RequestContext, thrown: unknown): void => {
    const error = thrown instanceof AppError ? thrown : problem('server.error', { cause: thrown })
    context.error = error
    context.trace?.times?.leave()
    // A refusal with Retry-After comes from a limit of ours that worked as meant; logging each would make a flood
    // worse.
    if (error.status >= 500 && error.headers['retry-after'] === undefined) {
      const { id: requestId, route } = context
      const level = throttledLevel(logger, 'warn', `${error.code} ${route?.id}`)
      const fields = { requestId, ...traceFields(context), route: route?.id, code: error.code, err: error.cause }
      logger[level](fields, 'a request failed on our side')
    }
    if (refusals) refusals.throttle(context, error.code, () => refuseWith(context, error, send))
    else refuseWith(context, error, send)
  }

const refuseWith = (context: RequestContext, error: AppError, send: typeof sendProblem): void => {
  const { response, incoming, id } = context
  if (response.destroyed) return
  if (response.headersSent) return void response.destroy()
  const length = context.request ? context.request.bodyLength : 0
  const closing =
    !incoming.complete &&
    (context.request === undefined || length === undefined || length > worthDraining || error.status === 408)
  send(response, error, id, closing, {
    ...context.route?.responseHeaders?.set,
    ...context.answerFields,
    ...challengeFields(error, context.route, context.headers?.authorization),
  })
}

/** Runs requests through `stages`. Stages that need not wait run in one go, without a promise in between. */
export const createPipeline = (stages: readonly Stage[], { logger, onFinish, ...answering }: PipelineParts) => {
  const fail = createFail({ logger, ...answering })

  const run = (context: RequestContext, from: number): void => {
    try {
      let next = from
      for (const stage of from === 0 ? stages : stages.slice(from)) {
        next++
        const waiting = stage(context)
        if (!waiting) continue
        if (waiting !== answered) {
          waiting.then(
            (outcome) => outcome === answered || context.response.destroyed || run(context, next),
            (error: unknown) => fail(context, error),
          )
        }
        return
      }
    } catch (error) {
      fail(context, error)
    }
  }

  return (context: RequestContext): void => {
    const { incoming, response } = context
    // RFC 9112 §9.6: behind an answer that says `close` nothing is processed. Node goes on parsing what was sent ahead.
    if (incoming.socket.writableEnded) return
    response.on('close', () => {
      if (!response.writableFinished) context.upstreamRequest?.cancel()
      onFinish(context)
    })
    // RFC 9112 §9.3.2: a pipelined request begins when the answers before it are out. Upstream the requests would
    // overtake each other.
    if (response.socket) run(context, 0)
    // Otherwise a handler before a guard has answered already, and nothing is left to do.
    else if (!response.writableEnded) waitForEarlierAnswers(context, () => run(context, 0))
  }
}

/** The number of requests of a connection that wait for the answers to earlier ones. */
const queues = new WeakMap<Socket, number>()

/**
 * The connection is not read meanwhile: everything that a client sends ahead would be parsed and kept in memory.
 */
const waitForEarlierAnswers = ({ incoming: { socket }, response }: RequestContext, begin: () => void): void => {
  queues.set(socket, (queues.get(socket) ?? 0) + 1)
  // In the next tick, since Node resumes the socket with every request that it has parsed.
  process.nextTick(() => (queues.get(socket) ?? 0) > 0 && socket.pause())
  response.once('socket', () => {
    const left = (queues.get(socket) ?? 1) - 1
    queues.set(socket, left)
    if (left === 0) socket.resume()
    begin()
  })
}
