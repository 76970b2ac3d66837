import type { Knex } from 'knex'
import { queryOf } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { AppError } from '../../platform/problem.ts'
import { sha256 } from '../../platform/secret.ts'
import { createSemaphore } from '../../platform/semaphore.ts'
import { asAppError, problemBody } from './errors/error-answer.ts'
import { overloaded, problem } from './errors/problems.ts'
import { claimKey, findAnswer, idempotencyContext, insertAnswer, type KeptAnswer } from './idempotency-store.ts'
import type { OperationContext, Route, RouteResult } from './route.ts'

/**
 * `Idempotency-Key`: whoever does not know whether a POST was carried out sends it again under the same key, and gets
 * the answer of the first time. The answer is committed with the change itself, so there is no moment at which one
 * exists without the other; a lock that dies with its connection tells the second of two that the first is still
 * running.
 */
export interface Idempotency {
  /**
   * Runs `handle`, or answers what it answered before. Throws 409 `idempotency.in_progress`, and 422
   * `idempotency.mismatch` when the key stands for another request. Refusals (4xx) are kept like successes; our own
   * failures (5xx) are not.
   */
  run<Context extends OperationContext>(
    call: IdempotentCall<Context>,
    handle: (context: Context) => Promise<RouteResult | undefined>,
  ): Promise<RouteResult | undefined>
}

export interface IdempotentCall<Context extends OperationContext> {
  key: string
  route: Pick<Route, 'method' | 'path' | 'status' | 'idempotency'>
  context: Context
  /** As it was sent, defaults not filled in. */
  body: unknown
}

// Each holds a connection of knex' pool (10) and its handler may ask for another one, so they must not be able to hold
// all.
const concurrency = 4
const maxWaiting = 500

const requestDigestBytes = 32
const replayed = { 'Idempotent-Replayed': 'true' }

export const createIdempotency = ({ knex, envelope }: { knex: Knex; envelope: Envelope }): Idempotency => {
  const withPermit = createSemaphore({ permits: concurrency, maxWaiting, full: overloaded })

  const keep = (id: string, request: Buffer, status: number, body: unknown): KeptAnswer => {
    const text = body === undefined ? '' : JSON.stringify(body)
    return { id, status, sealed: envelope.seal(Buffer.concat([request, Buffer.from(text)]), idempotencyContext(id)) }
  }

  const replay = ({ id, status, sealed }: KeptAnswer, request: Buffer): RouteResult => {
    const opened = envelope.open(sealed, idempotencyContext(id))
    if (!request.equals(opened.subarray(0, requestDigestBytes))) throw problem('idempotency.mismatch')
    const text = opened.subarray(requestDigestBytes).toString()
    return { status, headers: replayed, ...(text !== '' && { body: JSON.parse(text) }) }
  }

  return {
    run({ key, route, context, body }, handle) {
      const id = digestOf(callerOf(context), `${route.method} ${route.path}`, checkedKey(key)).toString('hex')
      const request = digestOf(route.method, context.request.path, body ?? null)
      return withPermit(async () => {
        const afterCommit: (() => void | Promise<void>)[] = []
        const outcome = await knex.transaction(async (trx): Promise<Outcome> => {
          const query = queryOf(trx)
          if (!(await claimKey(query, id))) {
            throw problem('idempotency.in_progress', { headers: { 'Retry-After': '1' } })
          }
          const kept = await findAnswer(query, id)
          if (kept !== undefined) return { result: replay(kept, request) }
          const joined = { trx, afterCommit: (work: () => void | Promise<void>) => void afterCommit.push(work) }
          const isAtomic = route.idempotency !== 'deferred'
          const outcome = await settled(() => handle(isAtomic ? { ...context, joined } : context))
          await insertAnswer(query, keep(id, request, ...answerOf(outcome, route)))
          return outcome
        })
        for (const work of afterCommit) await work()
        if (outcome.refusal !== undefined) throw outcome.refusal
        return outcome.result
      })
    },
  }
}

interface Outcome {
  result?: RouteResult | undefined
  refusal?: AppError
}

/** What becomes an answer. Throws what is our fault. */
const settled = async (work: () => Promise<RouteResult | undefined>): Promise<Outcome> => {
  try {
    return { result: await work() }
  } catch (thrown) {
    const refusal = asAppError(thrown)
    if (refusal.status >= 500) throw thrown
    return { refusal }
  }
}

const answerOf = ({ result, refusal }: Outcome, route: Pick<Route, 'status'>): [status: number, body: unknown] =>
  refusal === undefined ? [result?.status ?? route.status, result?.body] : [refusal.status, problemBody(refusal)]

/** People who use one application have keys of their own. */
const callerOf = ({ caller: { clientId, subject } }: OperationContext) =>
  subject === clientId ? clientId : [clientId, subject]

const digestOf = (...parts: unknown[]): Buffer => sha256(JSON.stringify(parts))

const checkedKey = (key: string): string => {
  if (/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) return key
  throw problem('guard.invalid_input', {
    detail: 'Idempotency-Key: must be 1 to 255 printable ASCII characters',
  })
}
