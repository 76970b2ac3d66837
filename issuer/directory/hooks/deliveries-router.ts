import { z } from 'zod'
import { attemptsOf, findDelivery, listAttempts, listDeliveries } from '../../../deliveries/delivery-log-store.ts'
import { purgeDead, replayDelivery } from '../../../deliveries/reopen-store.ts'
import { eventPatternOf, typesMatching } from '../../../events/event-patterns.ts'
import { queryOf } from '../../../platform/database/database.ts'
import { requireFound, unknownId } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import { type Route, route } from '../../base/route.ts'
import { id, timestampText } from '../../base/schemas.ts'
import {
  attempt,
  delivery,
  deliveryStates,
  hookLog,
  toAttempt,
  toDelivery,
  toHookLog,
  toWholeDelivery,
  wholeDelivery,
} from './delivery.ts'
import type { HookOperations, HookOperationsDependencies } from './operations.ts'

const params = z.object({ id })
const ofDelivery = z.object({ id, deliveryId: id })
const dayMs = 86_400_000

/** What became of events at a hook: deliveries, their attempts, and sending one again. */
export const deliveriesRoutes = (dependencies: HookOperationsDependencies & { hooks: HookOperations }): Route[] => {
  const { database, mutate, hooks } = dependencies
  const { query: run } = database

  const find = async (hookId: string, deliveryId: string) => {
    return requireFound(await findDelivery(run, hookId, deliveryId), deliveryId)
  }

  return [
    route({
      method: 'GET',
      path: '/hooks/:id/deliveries',
      operationId: 'listHookDeliveries',
      summary: 'Lists the deliveries of a hook with their states, newest first.',
      scope: 'hooks',
      params,
      query: z.object({
        event: z.string().max(128).describe('A type or a wildcard.').optional(),
        state: z.enum(deliveryStates).optional(),
        start_time: timestampText.optional(),
        end_time: timestampText.optional(),
        entityKind: z.string().max(32).optional(),
        entityId: id.optional(),
      }),
      paged: 'always',
      status: 200,
      response: z.array(delivery),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, query, page }) {
        await hooks.get(hookId)
        const { event, start_time: from, end_time: to, ...filter } = query
        const types = event === undefined ? undefined : typesOf(event)
        const { rows, total } = await listDeliveries(run, hookId, { ...filter, types, from, to }, page)
        return { body: rows.map(toDelivery), total }
      },
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/deliveries/:deliveryId',
      operationId: 'getHookDelivery',
      summary: 'Reads a delivery and the body that is sent.',
      scope: 'hooks',
      params: ofDelivery,
      status: 200,
      response: wholeDelivery,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id: hookId, deliveryId } }) => ({
        body: toWholeDelivery(await find(hookId, deliveryId)),
      }),
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/deliveries/:deliveryId/attempts',
      operationId: 'listHookDeliveryAttempts',
      summary: 'Lists the attempts of a delivery, oldest first: what was sent, what was answered, how long it took.',
      scope: 'hooks',
      params: ofDelivery,
      paged: 'optional',
      status: 200,
      response: z.array(attempt),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId, deliveryId }, page }) {
        const { id: found } = await find(hookId, deliveryId)
        const { rows, total } = await attemptsOf(run, found, page)
        return { body: rows.map(toAttempt), total }
      },
    }),
    route({
      method: 'POST',
      path: '/hooks/:id/deliveries/:deliveryId/replay',
      operationId: 'replayHookDelivery',
      summary: 'Sends a delivery again, with the same id and the same bytes; one that waits for a retry is sent now.',
      scope: 'hooks',
      params: ofDelivery,
      status: 200,
      response: wholeDelivery,
      problems: ['entity.not_exists_with_id', 'hook.event_not_kept'],
      async handle(context) {
        const { id: hookId, deliveryId } = context.params
        const { id: found } = await find(hookId, deliveryId)
        const queued = await mutate(context, async ({ trx }) => {
          const query = queryOf(trx)
          const replayed = await replayDelivery(query, hookId, found)
          if (replayed?.kept === false) throw problem('hook.event_not_kept', { data: { id: found } })
          return findDelivery(query, hookId, found)
        })
        if (queued === undefined) throw unknownId(found)
        return { body: toWholeDelivery(queued) }
      },
    }),
    route({
      method: 'DELETE',
      path: '/hooks/:id/dead-letters',
      operationId: 'purgeHookDeadLetters',
      summary: 'Cancels all dead deliveries of a hook, so that no redrive sends them.',
      scope: 'hooks',
      freshProof: true,
      params,
      status: 200,
      response: z.object({ purged: z.number() }),
      problems: ['entity.not_exists_with_id'],
      async handle(context) {
        const { id: hookId } = await hooks.get(context.params.id)
        const purged = await mutate(context, async ({ trx, note }) => {
          const count = await purgeDead(queryOf(trx), hookId)
          note({ details: { purged: count } })
          return count
        })
        return { body: { purged } }
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
        const { rows, total } = await listAttempts(run, hookId, filter, page)
        return { body: rows.map((row) => toHookLog(hookId, row)), total }
      },
    }),
  ]
}

/** A name that covers nothing is no mistake: there are no such deliveries. */
const typesOf = (name: string): string[] => {
  const pattern = eventPatternOf(name)
  return pattern === undefined ? [name] : typesMatching([pattern])
}
