import { z } from 'zod'
import { executionStats } from '../../../deliveries/delivery-log-store.ts'
import { isAllowed } from '../../base/authorization.ts'
import { booleanText } from '../../base/lists/search.ts'
import { type Caller, type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { deliveriesRoutes } from './deliveries-router.ts'
import {
  eventNames,
  type Hook,
  hook,
  hookConfig,
  hookPatch,
  hookSigningKey,
  newHook,
  newSigningKeyBody,
  readHook,
  toHook,
  withMaskedHeaders,
  withoutKey,
} from './hook.ts'
import { lanesRoutes } from './lanes-router.ts'
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

  /** As this caller may see it. */
  const shown = (row: Hook, caller: Caller): z.input<typeof readHook> => {
    const mayHaveSecrets = isAllowed({ method: 'GET', scope: 'hooks', secret: true }, caller)
    if (!mayHaveSecrets) return withMaskedHeaders(withoutKey(toHook(row)))
    return caller.person ? withoutKey(toHook(row)) : toHook(row)
  }

  const allShown = async (
    rows: readonly Hook[],
    caller: Caller,
    { includeExecutionStats }: z.output<typeof withStats>,
  ) => {
    const hookRecords = rows.map((row) => shown(row, caller))
    if (!includeExecutionStats) return hookRecords
    const hookIds = rows.map((row) => row.id)
    const stats = await executionStats(run, hookIds)
    const none = { successCount: 0, requestCount: 0 }
    return hookRecords.map((record) => ({ ...record, executionStats: stats.get(record.id) ?? none }))
  }

  return [
    route({
      method: 'GET',
      path: '/hooks',
      operationId: 'listHooks',
      summary: 'Lists hooks, newest first; their signing keys to holders of hooks or all.',
      scope: 'hooks',
      query: withStats,
      paged: 'optional',
      status: 200,
      response: z.array(readHook),
      async handle({ query, page, caller }) {
        const { hooks: rows, total } = await hooks.list(page)
        return { body: await allShown(rows, caller, query), total }
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
      summary: 'Reads a hook; its signing key to holders of hooks or all.',
      scope: 'hooks',
      params,
      query: withStats,
      status: 200,
      response: readHook,
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, query, caller }) {
        const [body] = await allShown([await hooks.get(hookId)], caller, query)
        return { body }
      },
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/signing-key',
      operationId: 'getHookSigningKey',
      summary: 'Shows the signing key of a hook, which leaves a row in the audit trail.',
      scope: 'hooks',
      secret: true,
      freshProof: true,
      params,
      status: 200,
      response: hookSigningKey,
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id } }) {
        const { signingKey, webhookSecret } = toHook(await hooks.get(id))
        return { body: { signingKey, webhookSecret } }
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
      response: readHook,
      problems: ['entity.not_exists', 'entity.invalid_input', 'hook.missing_events', 'hook.target_not_allowed'],
      handle: async (context) => ({
        body: shown(await hooks.update(context, context.params.id, context.body), context.caller),
      }),
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
    ...lanesRoutes({ ...dependencies, hooks }),
    ...replaysRoutes({ ...dependencies, hooks }),
  ]
}
