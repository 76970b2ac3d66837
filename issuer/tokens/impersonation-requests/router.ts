import { z } from 'zod'
import { impersonationRequest, impersonationRequestStatuses } from '../../../events/records.ts'
import type { Database } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { includeNames, names, withNames } from '../names.ts'
import { findRequest, listRequests } from './request-store.ts'
import { type ImpersonationRequest, toRequest } from './requests.ts'

const peopleOf = ({ userId, actorId, creatorId }: ImpersonationRequest) => [userId, actorId, creatorId]

export const impersonationRequestsRoutes = ({ database }: { database: Pick<Database, 'query' | 'knex'> }): Route[] => [
  route({
    method: 'GET',
    path: '/impersonation-requests',
    operationId: 'listImpersonationRequests',
    summary: 'List requests to act as somebody, newest first: who was asked, by whom and why, and what came of it',
    scope: 'impersonation',
    query: z.object({
      status: z.enum(impersonationRequestStatuses).describe('`pending`: they wait for an answer.').optional(),
      userId: id.describe('Who was asked.').optional(),
      actorId: id.optional(),
      creatorId: id.optional(),
      includeNames: includeNames.optional(),
    }),
    paged: 'always',
    status: 200,
    response: z.array(impersonationRequest.extend({ names: names.optional() })),
    async handle({ query: { includeNames: named, ...filter }, page }) {
      const { rows, total } = await listRequests(database.knex, filter, page)
      const requests = rows.map(toRequest)
      return { body: named ? await withNames(database.query, requests, peopleOf) : requests, total }
    },
  }),
  route({
    method: 'GET',
    path: '/impersonation-requests/:id',
    operationId: 'getImpersonationRequest',
    summary: 'Get a request to act as somebody: whether they have agreed, and with which limits',
    scope: 'impersonation',
    params: z.object({ id }),
    status: 200,
    response: impersonationRequest,
    problems: ['entity.not_exists_with_id'],
    async handle({ params }) {
      const row = await findRequest(database.query, params.id)
      if (!row) throw unknownId(params.id)
      return { body: toRequest(row) }
    },
  }),
]
