import { z } from 'zod'
import { impersonation } from '../../../events/records.ts'
import { type Route, route } from '../../base/route.ts'
import { includeNames, names } from '../names.ts'
import {
  type SessionDependencies,
  sessionOperations,
  sessionParams,
  sessionQuery,
  timelineQuery,
} from './operations.ts'
import { timeline } from './timeline.ts'

export const impersonationSessionsRoutes = (dependencies: SessionDependencies): Route[] => {
  const sessions = sessionOperations(dependencies)
  return [
    route({
      method: 'GET',
      path: '/impersonations',
      operationId: 'listImpersonations',
      summary: 'List impersonation sessions, newest first: who acted as whom, through which client, and why',
      scope: 'impersonation',
      query: sessionQuery.extend({ includeNames: includeNames.optional() }),
      paged: 'always',
      status: 200,
      response: z.array(impersonation.extend({ names: names.optional() })),
      handle: ({ query, page }) => sessions.list(query, page),
    }),
    // Before the one that takes any id.
    route({
      method: 'GET',
      path: '/impersonations/export',
      operationId: 'exportImpersonations',
      summary: 'Stream all impersonation sessions that match as lines of JSON, newest first',
      scope: 'impersonation',
      query: sessionQuery,
      status: 200,
      lines: impersonation,
      handle: async ({ query }) => ({ lines: sessions.every(query) }),
    }),
    route({
      method: 'GET',
      path: '/impersonations/:id',
      operationId: 'getImpersonation',
      summary: 'Get an impersonation session',
      scope: 'impersonation',
      params: sessionParams,
      status: 200,
      response: impersonation,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params }) => ({ body: await sessions.get(params.id) }),
    }),
    route({
      method: 'GET',
      path: '/impersonations/:id/timeline',
      operationId: 'getImpersonationTimeline',
      summary:
        'Get all that the issuer knows of an impersonation session, in the order of time: how it came about and by which rule, changes that name it, events with their deliveries, its end',
      scope: 'impersonation',
      params: sessionParams,
      query: timelineQuery,
      status: 200,
      response: timeline,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params, query }) => ({ body: await sessions.timeline(params.id, query.limit) }),
    }),
    route({
      method: 'POST',
      path: '/impersonations/:id/end',
      operationId: 'endImpersonation',
      summary: 'End an impersonation session: its token stops working at once; ending it again changes nothing',
      scope: 'impersonation',
      params: sessionParams,
      status: 204,
      problems: ['entity.not_exists_with_id'],
      handle: (context) => sessions.end(context.params.id, context),
    }),
  ]
}
