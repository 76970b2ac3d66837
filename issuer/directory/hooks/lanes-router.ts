import { z } from 'zod'
import { findHealth, type HealthRow, type LaneRow, listLanes } from '../../../deliveries/lane-log-store.ts'
import { requireFound } from '../../base/errors/not-found.ts'
import { type Route, route } from '../../base/route.ts'
import { id, timestamp } from '../../base/schemas.ts'
import type { HookOperations, HookOperationsDependencies } from './operations.ts'

const params = z.object({ id })

/** The deliveries of a hook about one entity, which are made in order: the first open one holds up those behind it. */
export const lane = z
  .object({
    entity: z.object({ kind: z.string(), id: z.string() }),
    head: z.object({
      deliveryId: z.string(),
      event: z.string(),
      version: z.number(),
      /** POSTs since it was queued, or queued again. */
      attempts: z.number(),
      lastStatus: z.number().nullable(),
      lastError: z.string().nullable(),
      /** A relay is at it. */
      isSending: z.boolean(),
      /** Since when it waits. */
      since: timestamp,
      nextAttemptAt: timestamp,
    }),
    /** Open deliveries behind it; 1 000 stands for more too. */
    behind: z.number(),
  })
  .meta({
    examples: [
      {
        entity: { kind: 'user', id: 'u8j2k4m6n8p0' },
        head: {
          deliveryId: '4711',
          event: 'User.Data.Updated',
          version: 7,
          attempts: 3,
          lastStatus: 503,
          lastError: 'The receiver answered 503.',
          isSending: false,
          since: 1_767_323_045_678,
          nextAttemptAt: 1_767_323_345_678,
        },
        behind: 2,
      },
    ],
  })

const healthStates = ['idle', 'succeeding', 'failing', 'open', 'paused', 'disabled'] as const

export const hookHealth = z
  .object({
    /**
     * `failing`: the last attempt failed. `open`: so did so many that only probes are sent (the circuit breaker).
     * `paused`: the receiver asked for silence. `idle`: no attempt is kept.
     */
    state: z.enum(healthStates),
    since: timestamp.nullable(),
    /** Attempts that failed since the last that succeeded. */
    failures: z.number(),
    failingSince: timestamp.nullable(),
    circuit: z.object({ isOpen: z.boolean(), since: timestamp.nullable(), nextProbeAt: timestamp.nullable() }),
    pausedUntil: timestamp.nullable(),
    /** It was disabled, and what was held is sent at a measured pace. */
    isCatchingUp: z.boolean(),
    disabledReason: z.string().nullable(),
    lastSuccessAt: timestamp.nullable(),
    lastFailureAt: timestamp.nullable(),
  })
  .meta({
    examples: [
      {
        state: 'failing',
        since: 1_767_323_045_678,
        failures: 3,
        failingSince: 1_767_323_045_678,
        circuit: { isOpen: false, since: null, nextProbeAt: null },
        pausedUntil: null,
        isCatchingUp: false,
        disabledReason: null,
        lastSuccessAt: 1_767_322_045_678,
        lastFailureAt: 1_767_323_145_678,
      },
    ],
  })

const toLane = ({ entity, behind, id: deliveryId, createdAt, nextAttemptAt, ...head }: LaneRow) => ({
  entity,
  head: { deliveryId, ...head, since: createdAt.getTime(), nextAttemptAt: nextAttemptAt.getTime() },
  behind,
})

/** The first that holds, with since when. */
const stateOf = (row: HealthRow): [state: (typeof healthStates)[number], since: Date | null] => {
  if (!row.enabled) return ['disabled', row.disabledAt]
  if (row.openSince) return ['open', row.openSince]
  if (row.pausedUntil) return ['paused', row.lastFailureAt]
  if (row.failingSince) return ['failing', row.failingSince]
  return row.succeedingSince ? ['succeeding', row.succeedingSince] : ['idle', null]
}

const toHealth = (row: HealthRow): z.input<typeof hookHealth> => {
  const [state, since] = stateOf(row)
  const ms = (date: Date | null) => date?.getTime() ?? null
  return {
    state,
    since: ms(since),
    failures: row.failures,
    failingSince: ms(row.failingSince),
    circuit: { isOpen: row.openSince !== null, since: ms(row.openSince), nextProbeAt: ms(row.probeAt) },
    pausedUntil: ms(row.pausedUntil),
    isCatchingUp: row.isCatchingUp,
    disabledReason: row.disabledReason,
    lastSuccessAt: ms(row.lastSuccessAt),
    lastFailureAt: ms(row.lastFailureAt),
  }
}

export const lanesRoutes = (dependencies: HookOperationsDependencies & { hooks: HookOperations }): Route[] => {
  const { database, hooks } = dependencies
  return [
    route({
      method: 'GET',
      path: '/hooks/:id/lanes',
      operationId: 'listHookLanes',
      summary: 'Lists what waits to be delivered to a hook, by entity, the longest waiting first.',
      scope: 'hooks',
      params,
      paged: 'always',
      status: 200,
      response: z.array(lane),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, page }) {
        await hooks.get(hookId)
        const { rows, total } = await listLanes(database.query, hookId, page)
        return { body: rows.map(toLane), total }
      },
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/health',
      operationId: 'getHookHealth',
      summary: 'Says whether deliveries to a hook succeed, since when, and what its circuit breaker does.',
      scope: 'hooks',
      params,
      status: 200,
      response: hookHealth,
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId } }) {
        return { body: toHealth(requireFound(await findHealth(database.query, hookId), hookId)) }
      },
    }),
  ]
}
