import { z } from 'zod'
import { executionStats } from '../../../deliveries/delivery-log-store.ts'
import { booleanText } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { deliveriesRoutes } from './deliveries-router.ts'
import {
  eventNames,
  type Hook,
  hook,
  hookConfig,
  hookPatch,
  hookWithStats,
  newHook,
  newSigningKeyBody,
  toHook,
} from './hook.ts'
import { type HookOperationsDependencies, hookOperations } from './operations.ts'
import type { ReplayDependencies } from './replays.ts'
import { replaysRoutes } from './replays-router.ts'
import { createTestSend, type TestSendDependencies } from './test-send.ts'

const params = z.object({ id })
const withStats = z.object({ includeExecutionStats: booleanText.default(false) })
const testBody = z.object({
  /** Default: those of the hook. A wildcard stands for its first type. */
  events: eventNames.optional(),
  /** Tries another endpoint than the hook's, before it is saved. */
  config: hookConfig.optional(),
})

export type HookDependencies = HookOperationsDependencies &
  Omit<TestSendDependencies, 'hooks'> &
  Omit<ReplayDependencies, 'hooks'>

export const hooksRoutes = (dependencies: HookDependencies): Route[] => {
  const { query: run } = dependencies.database
  const hooks = hookOperations(dependencies)
  const test = createTestSend({ ...dependencies, hooks })

  const toHooksWithStats = async (rows: readonly Hook[]) => {
    const hookIds = rows.map((row) => row.id)
    const stats = await executionStats(run, hookIds)
    const none = { successCount: 0, requestCount: 0 }
    return rows.map((row) => ({ ...toHook(row), executionStats: stats.get(row.id) ?? none }))
  }

  return [
    route({
      method: 'GET',
      path: '/hooks',
      operationId: 'listHooks',
      summary: 'Lists hooks, newest first.',
      scope: 'hooks',
      secret: true,
      query: withStats,
      paged: 'optional',
      status: 200,
      response: z.array(hookWithStats),
      async handle({ query, page }) {
        const { hooks: rows, total } = await hooks.list(page)
        return { body: query.includeExecutionStats ? await toHooksWithStats(rows) : rows.map(toHook), total }
      },
    }),
    route({
      method: 'POST',
      path: '/hooks',
      operationId: 'createHook',
      summary: 'Creates a hook and its signing key.',
      scope: 'hooks',
      body: newHook,
      status: 201,
      response: hook,
      problems: ['hook.missing_events', 'hook.target_not_allowed'],
      handle: async (context) => ({ body: toHook(await hooks.create(context, context.body)) }),
    }),
    route({
      method: 'GET',
      path: '/hooks/:id',
      operationId: 'getHook',
      summary: 'Reads a hook.',
      scope: 'hooks',
      secret: true,
      params,
      query: withStats,
      status: 200,
      response: hookWithStats,
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, query }) {
        const found = await hooks.get(hookId)
        return { body: query.includeExecutionStats ? (await toHooksWithStats([found]))[0] : toHook(found) }
      },
    }),
    route({
      method: 'PATCH',
      path: '/hooks/:id',
      operationId: 'updateHook',
      summary: 'Changes a hook; `config` is replaced as a whole. Enabling it delivers what was held meanwhile.',
      scope: 'hooks',
      params,
      body: hookPatch,
      status: 200,
      response: hook,
      problems: ['entity.not_exists', 'entity.invalid_input', 'hook.missing_events', 'hook.target_not_allowed'],
      handle: async (context) => ({ body: toHook(await hooks.update(context, context.params.id, context.body)) }),
    }),
    route({
      method: 'DELETE',
      path: '/hooks/:id',
      operationId: 'deleteHook',
      summary: 'Deletes a hook; what is still to be delivered to it is cancelled.',
      scope: 'hooks',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => hooks.remove(context, context.params.id),
    }),
    route({
      method: 'PATCH',
      path: '/hooks/:id/signing-key',
      operationId: 'replaceHookSigningKey',
      summary: 'Replaces the signing key; the old one signs along for a while.',
      scope: 'hooks',
      freshProof: true,
      params,
      body: newSigningKeyBody,
      status: 200,
      response: hook,
      problems: ['entity.not_exists'],
      handle: async (context) => ({
        body: toHook(await hooks.replaceSigningKey(context, context.params.id, context.body.overlapSeconds)),
      }),
    }),
    route({
      method: 'POST',
      path: '/hooks/:id/test',
      operationId: 'testHook',
      summary: 'Sends made-up events to the endpoint, through a relay, and waits for its answer.',
      scope: 'hooks',
      params,
      body: testBody,
      // Its change is committed while it waits; and an answer of an hour ago says nothing of the endpoint of now.
      idempotency: 'none',
      status: 204,
      problems: [
        'entity.not_exists_with_id',
        'hook.target_not_allowed',
        'hook.relay_unavailable',
        'hook.endpoint_responded_with_error',
        'hook.send_test_payload_failed',
      ],
      handle: (context) => test(context, context.params.id, context.body),
    }),
    ...deliveriesRoutes({ ...dependencies, hooks }),
    ...replaysRoutes({ ...dependencies, hooks }),
  ]
}
