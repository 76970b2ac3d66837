import type { Logger } from '../platform/logger.ts'
import { AppError } from '../platform/problem.ts'
import { type AuthenticateParts, createAuthenticate } from './authenticate.ts'
import { type AuthorizeParts, createAuthorize } from './authorize.ts'
import { createReadRequest, type ReadRequestParts } from './canonical-request.ts'
import { challengeFields } from './challenges.ts'
import { answered, type Exchange, type Stage } from './exchange.ts'
import { createForward, type ForwardParts } from './forward.ts'
import { type AssertIdentityParts, createAssertIdentity } from './identity-assertion.ts'
import { createMatchRoute, type MatchRouteParts } from './match-route.ts'
import { createServeOwnDocuments, type ServeOwnDocumentsParts } from './own-documents.ts'
import { createExchangePersonalAccessTokens, type ExchangePersonalAccessTokensParts } from './personal-access-tokens.ts'
import { sendProblem } from './problem-response.ts'
import { type CheckRevokedParts, createCheckRevoked } from './revocations.ts'

/**
 * A request through the gateway, in order. Each stage is one file; it passes, or throws an `AppError`, or answers itself and returns `answered`.
 * Rate limits come before `authorize`.
 */
export const proxyStages = (parts: StageParts): readonly Stage[] => [
  createReadRequest(parts), //  one canonical request, untrusted headers gone: 400, 414, 431
  createServeOwnDocuments(parts), // 200 at /.well-known/…
  createMatchRoute(parts), //   404
  createExchangePersonalAccessTokens(parts), // 401, 503
  createAuthenticate(parts), // token, keys, audience: 401, 503
  createCheckRevoked(parts), // 401, 503
  createAuthorize(parts), //    policy: 401 for a missing scope, else 403
  createAssertIdentity(parts), // x-auth-assertion
  createForward(parts), //      413, 502, 503, 504
]

/** The same as middleware: what is behind the guard takes the place of the upstream. */
export const guardStages = (
  parts: Omit<StageParts, keyof (ForwardParts & ServeOwnDocumentsParts & AssertIdentityParts)>,
): readonly Stage[] => [
  createReadRequest(parts),
  createMatchRoute(parts),
  createAuthenticate(parts),
  createCheckRevoked(parts),
  createAuthorize(parts),
  (exchange) => void exchange.next?.(exchange),
]

export type StageParts = ReadRequestParts &
  MatchRouteParts &
  ExchangePersonalAccessTokensParts &
  AuthenticateParts &
  CheckRevokedParts &
  AuthorizeParts &
  ServeOwnDocumentsParts &
  AssertIdentityParts &
  ForwardParts

export interface PipelineParts {
  logger: Logger
  /** Called once for every request, whatever ended it, when its answer is out or its client is gone. */
  onFinish: (exchange: Exchange) => void
}

/** Bodies up to this many bytes are read and dropped to keep the connection of a refused request; for longer ones it is closed. */
const worthDraining = 65_536

/** Ends an exchange with a problem document, or, when the answer has begun, by breaking the connection so that nobody takes it for whole. */
export const createFail =
  ({ logger }: { logger: Logger }) =>
  (exchange: Exchange, thrown: unknown): void => {
    const { response, incoming, id } = exchange
    const error = thrown instanceof AppError ? thrown : new AppError('server.error', { cause: thrown })
    exchange.error = error
    if (error.status >= 500) {
      const route = exchange.route?.id
      logger.warn({ requestId: id, route, code: error.code, err: error.cause }, 'a request failed on our side')
    }
    if (response.destroyed) return
    if (response.headersSent) return void response.destroy()
    const length = exchange.request ? exchange.request.bodyLength : 0
    const closing =
      !incoming.complete && (exchange.request === undefined || length === undefined || length > worthDraining)
    sendProblem(response, error, id, closing, challengeFields(error, exchange.route?.resourceMetadata))
  }

/** Runs requests through `stages`. Stages that need not wait run in one go, without a promise in between. */
export const createPipeline = (stages: readonly Stage[], { logger, onFinish }: PipelineParts) => {
  const fail = createFail({ logger })

  const run = (exchange: Exchange, from: number): void => {
    try {
      for (let index = from; index < stages.length; index++) {
        const waiting = stages[index]!(exchange)
        if (!waiting) continue
        if (waiting !== answered) {
          waiting.then(
            (outcome) => outcome === answered || exchange.response.destroyed || run(exchange, index + 1),
            (error: unknown) => fail(exchange, error),
          )
        }
        return
      }
    } catch (error) {
      fail(exchange, error)
    }
  }

  return (exchange: Exchange): void => {
    const { response } = exchange
    response.on('close', () => {
      if (!response.writableFinished) exchange.answer?.cancel()
      onFinish(exchange)
    })
    run(exchange, 0)
  }
}
