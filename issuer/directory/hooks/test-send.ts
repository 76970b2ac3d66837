import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import { hookSecrets } from '../../../deliveries/hook-secrets.ts'
import { announceLanes } from '../../../deliveries/lane-notice-store.ts'
import {
  giveTestsUp,
  insertTestSend,
  isRelayAlive,
  type TestAnswer,
  testAnswers,
} from '../../../deliveries/test-send-store.ts'
import { typesMatching } from '../../../events/event-patterns.ts'
import { testPayload } from '../../../events/examples.ts'
import { queryOf } from '../../../platform/database/database.ts'
import { uuidv7 } from '../../../platform/ids.ts'
import type { AppError } from '../../../platform/problem.ts'
import { problem } from '../../base/errors/problems.ts'
import type { OperationContext } from '../../base/route.ts'
import type { eventNames, hookConfig } from './hook.ts'
import type { HookOperations, HookOperationsDependencies } from './operations.ts'

export interface TestRequest {
  /** Types and wildcards; a wildcard stands for its first type. Default: those of the hook. */
  events?: z.output<typeof eventNames> | undefined
  /** Where to, when it is not where the hook points now. */
  config?: Pick<z.output<typeof hookConfig>, 'url' | 'headers'> | undefined
}

export interface TestSendDependencies extends HookOperationsDependencies {
  hooks: HookOperations
  /** For the answers, in ms. Default 20 000. */
  waitMs?: number
}

const pollMs = 50
/** One that is just being started or replaced. In ms. */
const relayWaitMs = 2_000

/**
 * Sends made-up events to a hook's endpoint and says what came of it. The issuer opens no connection to customers'
 * URLs: it commits test deliveries, and a relay sends each of them once.
 */
export const createTestSend = (dependencies: TestSendDependencies) => {
  const { database, mutate, envelope, hooks, waitMs = 20_000 } = dependencies
  const { sealHeaders } = hookSecrets(envelope)

  const until = async (hookId: string, deliveryIds: readonly string[]): Promise<TestAnswer[]> => {
    const deadline = performance.now() + waitMs
    for (;;) {
      const answers = await testAnswers(database.query, hookId, deliveryIds)
      const failed = answers.some(({ state }) => state !== 'succeeded')
      if (failed || answers.length === deliveryIds.length || performance.now() > deadline) return answers
      await delay(pollMs)
    }
  }

  const requireRelay = async () => {
    const deadline = performance.now() + Math.min(relayWaitMs, waitMs)
    while (!(await isRelayAlive(database.query))) {
      if (performance.now() > deadline) throw problem('hook.relay_unavailable')
      await delay(pollMs)
    }
  }

  return async (context: OperationContext, hookId: string, { events, config }: TestRequest): Promise<void> => {
    const hook = await hooks.get(hookId)
    if (config) await hooks.refuseTarget(config.url)
    await requireRelay()

    const types = typesOf(events?.length ? events : hook.events)
    const target = config && { url: config.url, sealedHeaders: sealHeaders(hookId, config.headers ?? {}) }
    const deliveryIds = await mutate(context, async ({ trx }) => {
      const query = queryOf(trx)
      const ids: string[] = []
      for (const type of types) {
        const eventId = uuidv7()
        const payload = testPayload(type, { id: eventId, correlationId: uuidv7(), createdAt: new Date() })
        const id = await insertTestSend(query, { hookId, eventId, type, payload, target })
        if (id === undefined) throw problem('entity.not_exists_with_id', { data: { id: hookId } })
        ids.push(id)
      }
      await announceLanes(query)
      return ids
    })

    const answers = await until(hookId, deliveryIds)
    const failed = answers.find(({ state }) => state !== 'succeeded')
    // After the first failure the others are of no interest; without an answer nobody is left who could tell.
    if (answers.length < deliveryIds.length) await giveTestsUp(database.query, hookId, deliveryIds)
    if (failed) throw problemOf(failed)
    if (answers.length < deliveryIds.length)
      throw problem('hook.relay_unavailable', { detail: 'No relay answered in time.' })
  }
}

const typesOf = (patterns: readonly string[]): string[] => [
  ...new Set(patterns.flatMap((pattern) => typesMatching([pattern]).slice(0, 1))),
]

const problemOf = ({ status, error, body }: TestAnswer): AppError =>
  status === null
    ? problem('hook.send_test_payload_failed', { ...(error !== null && { detail: error }) })
    : problem('hook.endpoint_responded_with_error', {
        data: { responseStatus: status, responseBody: body?.toString('utf8') ?? '' },
      })
