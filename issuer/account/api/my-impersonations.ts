import { z } from 'zod'
import { impersonationRequestStatuses } from '../../../events/records.ts'
import type { Route } from '../../base/route.ts'
import { id, timestamp } from '../../base/schemas.ts'
import type { SeenRequest } from '../../tokens/impersonation-requests/request-store.ts'
import type { SeenImpersonation } from '../../tokens/impersonations/seen-store.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute } from './route.ts'

const named = z.object({ id: z.string(), name: z.string().nullable() })
const namedOrNull = (id: string | null, name: string | null) => (id === null ? null : { id, name })

/** Somebody asks to act as the person. Texts are the asker's: to be shown as text. */
export const myImpersonationRequest = z.object({
  id: z.string(),
  status: z.enum(impersonationRequestStatuses),
  /** Two digits, which whoever asks sees too. */
  number: z.string(),
  actor: named.nullable(),
  /** What asked. */
  application: named,
  resource: z.string().nullable(),
  scopes: z.array(z.string()).nullable(),
  reason: z.string().nullable(),
  ticket: z.string().nullable(),
  createdAt: timestamp,
  expiresAt: timestamp,
  decidedAt: timestamp.nullable(),
  readOnly: z.boolean(),
  maxTtl: z.number().int().nullable(),
  /** Approved, and nobody acts by it yet: refusing takes it back. */
  canBeWithdrawn: z.boolean(),
})

/** Somebody acted as the person, or still does. */
export const myImpersonation = z.object({
  id: z.string(),
  isActive: z.boolean(),
  actor: named.nullable(),
  application: named,
  resource: z.string().nullable(),
  scopes: z.array(z.string()),
  reason: z.string().nullable(),
  ticket: z.string().nullable(),
  access: z.literal('read').nullable(),
  approvalId: z.string().nullable(),
  startedAt: timestamp,
  expiresAt: timestamp,
  endedAt: timestamp.nullable(),
})

const toMyRequest = ({
  userId: _,
  actorId,
  actorName,
  creatorId,
  creatorName,
  clientId: _client,
  ...row
}: SeenRequest) => ({
  ...row,
  actor: namedOrNull(actorId, actorName),
  application: { id: creatorId, name: creatorName },
  createdAt: row.createdAt.getTime(),
  expiresAt: row.expiresAt.getTime(),
  decidedAt: row.decidedAt?.getTime() ?? null,
})

const toMyImpersonation = ({ actorId, actorName, clientId, clientName, ...row }: SeenImpersonation) => ({
  ...row,
  actor: namedOrNull(actorId, actorName),
  application: { id: clientId, name: clientName },
  startedAt: row.startedAt.getTime(),
  expiresAt: row.expiresAt.getTime(),
  endedAt: row.endedAt?.getTime() ?? null,
})

const params = z.object({ id })
const unknown = ['account_center.not_enabled', 'entity.not_exists_with_id'] as const

/** Who asks to act as one, who did, and the end of it. */
export const myImpersonationRoutes = ({ impersonations }: AccountOperations): Route[] => [
  accountRoute({
    method: 'GET',
    path: '/my-account/impersonation-requests',
    operationId: 'listMyImpersonationRequests',
    summary: 'Lists who asked to act as the person, newest first, 100 at most.',
    status: 200,
    response: z.array(myImpersonationRequest),
    problems: ['account_center.not_enabled'],
    handle: async ({ person }) => ({ body: (await impersonations.requests(person)).map(toMyRequest) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/impersonation-requests/:id/approve',
    operationId: 'approveMyImpersonationRequest',
    summary: 'Agrees, with limits or without: `number` is that of the request. Needs a verification.',
    params,
    body: z.object({
      number: z.string().max(8),
      readOnly: z.boolean().optional(),
      maxTtl: z.number().int().min(60).max(86_400).optional(),
    }),
    status: 204,
    problems: [
      ...unknown,
      'verification_record.permission_denied',
      'impersonation.request_not_pending',
      'impersonation.number_mismatch',
    ],
    handle: (call) => impersonations.approve(call, call.params.id, call.body),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/impersonation-requests/:id/refuse',
    operationId: 'refuseMyImpersonationRequest',
    summary: 'Does not agree; or takes back what was allowed, until somebody acts by it.',
    params,
    status: 204,
    problems: [...unknown, 'impersonation.request_not_pending'],
    handle: (call) => impersonations.refuse(call, call.params.id),
  }),
  accountRoute({
    method: 'GET',
    path: '/my-account/impersonations',
    operationId: 'listMyImpersonations',
    summary: 'Lists who acted as the person, newest first, 100 at most.',
    status: 200,
    response: z.array(myImpersonation),
    problems: ['account_center.not_enabled'],
    handle: async ({ person }) => ({ body: (await impersonations.list(person)).map(toMyImpersonation) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/impersonations/:id/end',
    operationId: 'endMyImpersonation',
    summary: 'Ends it at once; ending it again changes nothing.',
    params,
    status: 204,
    problems: [...unknown],
    handle: (call) => impersonations.end(call, call.params.id),
  }),
]
