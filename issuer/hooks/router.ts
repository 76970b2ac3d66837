import { z } from 'zod'
import { executionStats, listAttempts, listDeliveries } from '../../events/delivery-log-store.ts'
import { type Route, route } from '../management/route.ts'
import { id, timestampText } from '../management/schemas.ts'
import { delivery, hook, hookLog, hookPatch, listedHook, newHook, newSigningKeyBody, toHook } from './hook.ts'
import { toDelivery, toHookLog } from './hook-log.ts'
import { type HookDependencies, hookOperations } from './operations.ts'

const params = z.object({ id })
const dayMs = 86_400_000

export const hooksRoutes = (dependencies: HookDependencies): Route[] => {
  const { query: run } = dependencies.database
  const hooks = hookOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/hooks',
      operationId: 'listHooks',
      summary: 'Lists hooks, newest first.',
      scope: 'hooks',
      secret: true,
      query: z.object({ includeExecutionStats: z.stringbool().default(false) }),
      paged: 'optional',
      status: 200,
      response: z.array(listedHook),
      async handle({ query, page }) {
        const { hooks: rows, total } = await hooks.list(page)
        const shown = rows.map(toHook)
        if (!query.includeExecutionStats) return { body: shown, total }
        const stats = await executionStats(
          run,
          rows.map((row) => row.id),
        )
        const none = { successCount: 0, requestCount: 0 }
        return { body: shown.map((row) => ({ ...row, executionStats: stats.get(row.id) ?? none })), total }
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
      status: 200,
      response: hook,
      problems: ['entity.not_exists_with_id'],
      handle: async (context) => ({ body: toHook(await hooks.get(context.params.id)) }),
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
      method: 'GET',
      path: '/hooks/:id/deliveries',
      operationId: 'listHookDeliveries',
      summary: 'Lists the deliveries of a hook with their states, newest first.',
      scope: 'hooks',
      params,
      query: z.object({ event: z.string().max(128).optional() }),
      paged: 'always',
      status: 200,
      response: z.array(delivery),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, query, page }) {
        await hooks.get(hookId)
        const { rows, total } = await listDeliveries(run, hookId, query, page!)
        return { body: rows.map(toDelivery), total }
      },
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/recent-logs',
      operationId: 'listHookLogs',
      summary: 'Lists attempts of a hook, newest first; by default those of the last 24 hours.',
      scope: 'hooks',
      params,
      query: z.object({
        logKey: z.string().max(256).optional(),
        start_time: timestampText.optional(),
        end_time: timestampText.optional(),
      }),
      paged: 'always',
      status: 200,
      response: z.array(hookLog),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, query, page }) {
        await hooks.get(hookId)
        const now = Date.now()
        const to = query.end_time ?? new Date(now + dayMs)
        const from = query.start_time ?? new Date(Math.min(now, to.getTime()) - dayMs)
        const filter = { from, to, event: query.logKey?.replace(/^TriggerHook\./, '') }
        const { rows, total } = await listAttempts(run, hookId, filter, page!)
        return { body: rows.map((row) => toHookLog(hookId, row)), total }
      },
    }),
  ]
}
