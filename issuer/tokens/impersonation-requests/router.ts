import { z } from 'zod'
import { impersonationRequest } from '../../../events/records.ts'
import type { Query } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { findRequest } from './request-store.ts'
import { toRequest } from './requests.ts'

export const impersonationRequestsRoutes = ({ database }: { database: { query: Query } }): Route[] => [
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
