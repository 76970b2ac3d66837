import { z } from 'zod'
import { listReplays } from '../../../events/replay-store.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { newReplay, type ReplayDependencies, replay, replayOperations, toReplay } from './replays.ts'

const params = z.object({ id })
const ofReplay = z.object({ id, replayId: id })

/** Replays are worked on behind the answer (`replay-job.ts`), whoever made them and whatever is restarted meanwhile. */
export const replaysRoutes = (dependencies: ReplayDependencies): Route[] => {
  const { database, hooks } = dependencies
  const replays = replayOperations(dependencies)

  return [
    route({
      method: 'POST',
      path: '/hooks/:id/replays',
      operationId: 'createHookReplay',
      summary:
        'Sends again what matches: everything since a time, some types or states, one entity; or only counts it.',
      scope: 'hooks',
      params,
      body: newReplay,
      status: 201,
      response: replay,
      problems: ['entity.not_exists_with_id'],
      handle: async (context) => ({ body: await replays.create(context, context.params.id, context.body) }),
    }),
    route({
      method: 'POST',
      path: '/hooks/:id/dead-letters/redrive',
      operationId: 'redriveHookDeadLetters',
      summary: 'Sends all dead deliveries of a hook again: a replay of what is dead.',
      scope: 'hooks',
      params,
      status: 201,
      response: replay,
      problems: ['entity.not_exists_with_id'],
      handle: async (context) => ({
        body: await replays.create(context, context.params.id, { states: ['dead'], dryRun: false }),
      }),
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/replays',
      operationId: 'listHookReplays',
      summary: 'Lists the replays of a hook, newest first.',
      scope: 'hooks',
      params,
      paged: 'always',
      status: 200,
      response: z.array(replay),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id: hookId }, page }) {
        await hooks.get(hookId)
        const { rows, total } = await listReplays(database.query, hookId, page)
        return { body: rows.map(toReplay), total }
      },
    }),
    route({
      method: 'GET',
      path: '/hooks/:id/replays/:replayId',
      operationId: 'getHookReplay',
      summary: 'Says how far a replay has got.',
      scope: 'hooks',
      params: ofReplay,
      status: 200,
      response: replay,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id: hookId, replayId } }) => ({
        body: toReplay(await replays.get(hookId, replayId)),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/hooks/:id/replays/:replayId',
      operationId: 'cancelHookReplay',
      summary: 'Ends a replay early: what is queued is sent, nothing more is queued.',
      scope: 'hooks',
      params: ofReplay,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => replays.cancel(context, context.params.id, context.params.replayId),
    }),
  ]
}
