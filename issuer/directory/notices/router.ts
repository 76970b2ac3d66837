import { z } from 'zod'
import { hookOutcome } from '../../../deliveries/outcome-notice-store.ts'
import { isAllowed } from '../../base/authorization.ts'
import { problem } from '../../base/errors/problems.ts'
import { type Caller, type Route, route } from '../../base/route.ts'
import type { Notices } from './notices.ts'

export interface NoticeDependencies {
  notices: Pick<Notices, 'open'>
}

/** What stands in `data`, by the name of the event. */
const notice = z.union([
  z.object({
    id: z.string(),
    type: z.string(),
    entity: z.object({ kind: z.string(), id: z.string() }),
    version: z.number(),
    organizationId: z.string().nullable(),
    correlationId: z.string(),
    createdAt: z.iso.datetime(),
  }),
  hookOutcome,
  z.object({ reason: z.string().optional() }),
])

const access = { method: 'GET', scope: 'read' } as const

/** The cursor of the last notice that the caller has, as browsers send it when they connect again. */
const lastEventId = (header: string | undefined): number | undefined => {
  if (header === undefined || header === '') return undefined
  if (/^\d{1,15}$/.test(header)) return Number(header)
  throw problem('guard.invalid_input', { detail: 'Last-Event-ID: must be the id of an earlier notice' })
}

/** False when the token has expired, was revoked, or its client lost the scope. */
const isStillAllowed = async (caller: Caller): Promise<boolean> => {
  const scopes = await caller.scopesNow?.().catch(() => new Set<string>())
  return isAllowed(access, { ...caller, scopes: scopes ?? caller.scopes })
}

export const noticesRoutes = ({ notices }: NoticeDependencies): Route[] => [
  route({
    ...access,
    path: '/notices',
    operationId: 'streamNotices',
    summary: 'Tells what changes as it happens, as server-sent events: changes, sessions, outcomes of deliveries.',
    status: 200,
    stream: notice,
    problems: ['server.unavailable'],
    async handle({ caller, lastEventId: header }) {
      const { subject } = caller
      return {
        events: notices.open({ after: lastEventId(header), subject, stillAllowed: () => isStillAllowed(caller) }),
      }
    },
  }),
]
