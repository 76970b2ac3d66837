import type { Database } from '../../../platform/database/database.ts'
import { notFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import { endSessionWhole } from '../../tokens/authorizations/end.ts'
import type { Settings } from '../sign-in-experience/settings.ts'
import { findUser, lockUser } from '../users/user-store.ts'
import { endGrantOf } from './end-grant.ts'
import { toUserGrant, toUserSession, type UserGrant, type UserSession } from './records.ts'
import { findUserSession, listGrants, listUserSessions } from './user-session-store.ts'

export interface UserSessionDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
  settings: Pick<Settings, 'refreshed'>
}

const noSession = (id: string) => problem('oidc.session_not_found', { data: { id } })

/** Where a person is signed in, what applications got of that, and how an administrator ends it. */
export const userSessionOperations = ({
  database: { query, knex },
  mutate,
}: Pick<UserSessionDependencies, 'database' | 'mutate'>) => {
  const requireUser = async (userId: string) => {
    if (!(await findUser(knex, userId))) throw notFound(userId)
  }

  return {
    async list(userId: string): Promise<UserSession[]> {
      await requireUser(userId)
      return (await listUserSessions(query, userId)).map(toUserSession)
    },

    async get(userId: string, sessionId: string): Promise<UserSession> {
      const row = await findUserSession(query, userId, sessionId)
      if (!row) throw noSession(sessionId)
      return toUserSession(row)
    },

    /** With everything that came of it, offline access too. */
    end: (context: OperationContext, userId: string, sessionId: string): Promise<void> =>
      mutate(context, async (mutation) => {
        const { trx } = mutation
        await lockUser(trx, userId)
        const ending = { sessionId, reason: 'ended_by_administrator', endedBy: context.caller.subject } as const
        const found = await findUserSession(trx, userId, sessionId)
        if (!found || !(await endSessionWhole(mutation, ending))) throw noSession(sessionId)
      }),

    async listGrants(userId: string, appType: 'firstParty' | 'thirdParty' | undefined): Promise<UserGrant[]> {
      await requireUser(userId)
      const isThirdParty = appType === undefined ? undefined : appType === 'thirdParty'
      return (await listGrants(query, userId, isThirdParty)).map(toUserGrant)
    },

    endGrant: (context: OperationContext, userId: string, grantId: string): Promise<void> =>
      mutate(context, async (mutation) => {
        await lockUser(mutation.trx, userId)
        const ending = { reason: 'ended_by_administrator', endedBy: context.caller.subject } as const
        await endGrantOf(mutation, { userId, grantId, ...ending })
      }),
  }
}
