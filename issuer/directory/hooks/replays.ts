import { z } from 'zod'
import {
  cancelReplay,
  findReplay,
  insertReplay,
  measureReplay,
  type Replay,
  type ReplayFilter,
  replayFilter,
  replayStates,
} from '../../../deliveries/replay-store.ts'
import { typesMatching } from '../../../events/event-patterns.ts'
import { queryOf } from '../../../platform/database/database.ts'
import { newId } from '../../../platform/ids.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import type { OperationContext } from '../../base/route.ts'
import { id, timestamp } from '../../base/schemas.ts'
import { eventNames } from './hook.ts'
import type { HookOperations, HookOperationsDependencies } from './operations.ts'

/** What to send again. At least one member must narrow it down. */
export const newReplay = z
  .object({
    /** Events that happened from then on, in ms since the epoch, … */
    since: timestamp.min(0).optional(),
    /** … and before then. */
    until: timestamp.min(0).optional(),
    /** Types and wildcards. */
    events: eventNames.optional(),
    /** Default: all of them. `missing`: the hook listens to it now, but had no delivery for it. */
    states: z
      .array(z.enum(replayStates))
      .min(1)
      .transform((states) => [...new Set(states)])
      .optional(),
    entity: z.object({ kind: z.string().min(1).max(32), id }).optional(),
    organizationIds: z.array(id).min(1).max(5_000).optional(),
    /** Only says how many there are. */
    dryRun: z.boolean().default(false),
  })
  .refine(({ dryRun: _, ...filter }) => Object.values(filter).some((member) => member !== undefined), {
    message: 'say what: since, until, events, states, entity or organizationIds',
  })
export type NewReplay = z.output<typeof newReplay>

export const replay = z.object({
  /** Null for a dry run. */
  id: z.string().nullable(),
  hookId: z.string(),
  filter: replayFilter,
  /** Events that matched when it was asked for. */
  total: z.number(),
  queued: z.number(),
  state: z.enum(['running', 'done', 'cancelled', 'dryRun']),
  createdAt: timestamp.nullable(),
  finishedAt: timestamp.nullable(),
})

export const toReplay = ({ createdAt, finishedAt, ...row }: Replay): z.input<typeof replay> => ({
  ...row,
  createdAt: createdAt.getTime(),
  finishedAt: finishedAt?.getTime() ?? null,
})

const filterOf = ({ events, states, dryRun: _, ...rest }: NewReplay): ReplayFilter => ({
  ...rest,
  states: states ?? [...replayStates],
  ...(events && { types: typesMatching(events) }),
})

export interface ReplayDependencies extends HookOperationsDependencies {
  hooks: HookOperations
  /** There is a new replay to work on (`replay-job.ts`). */
  replaysWaiting(): void
}

export const replayOperations = ({ database, mutate, hooks, replaysWaiting }: ReplayDependencies) => ({
  async create(context: OperationContext, hookId: string, input: NewReplay): Promise<z.input<typeof replay>> {
    const hook = await hooks.get(hookId)
    const filter = filterOf(input)
    const created = await mutate(context, async ({ trx, note }) => {
      const query = queryOf(trx)
      const extent = await measureReplay(query, hook, filter)
      note({ details: { dryRun: input.dryRun, total: extent.total } })
      const row = { hookId, filter, total: extent.total, queued: 0 }
      if (input.dryRun) return { ...row, id: null, state: 'dryRun' as const, createdAt: null, finishedAt: null }
      return toReplay(await insertReplay(query, { id: newId(), hookId, filter, extent }))
    })
    if (!input.dryRun) replaysWaiting()
    return created
  },

  async get(hookId: string, replayId: string): Promise<Replay> {
    return requireFound(await findReplay(database.query, hookId, replayId), replayId)
  },

  /** Queues nothing more; what is queued stays. One that has ended stays as it is. */
  cancel: (context: OperationContext, hookId: string, replayId: string): Promise<void> =>
    mutate(context, async ({ trx }) => {
      const query = queryOf(trx)
      if (!(await findReplay(query, hookId, replayId))) throw notFound(replayId)
      await cancelReplay(query, hookId, replayId)
    }),
})
