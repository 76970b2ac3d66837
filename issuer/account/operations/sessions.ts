import type { Database } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import { findUserSession, listUserSessions, type UserSessionRow } from '../../directory/sessions/user-session-store.ts'
import { voidOpenProofs } from '../../interaction/open-proofs-store.ts'
import { endAllOfUser, endSessionWhole } from '../../tokens/authorizations/end.ts'
import { forgetDevices } from '../../tokens/sessions/known-device-store.ts'
import { type ChangeAccount, requireReadable } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'

/** Of the Account API, by the name that existing clients ask for. */
export const sessionsScope = 'urn:logto:scope:sessions'
export const sessionRequirements = { fields: ['session'], scopes: [sessionsScope] } as const
const ending = { ...sessionRequirements, reauthenticated: true } as const

const reason = 'ended_by_user'

/** Where the person is signed in, and how they end it. */
export const createSessionOperations = ({
  database: { query },
  change,
}: {
  database: Pick<Database, 'query'>
  change: ChangeAccount
}) => ({
  /** Those that count, newest first. */
  async list(person: AccountPerson): Promise<UserSessionRow[]> {
    await requireReadable(query, person, sessionRequirements)
    return listUserSessions(query, person.userId)
  },

  async get(person: AccountPerson, sessionId: string): Promise<UserSessionRow> {
    await requireReadable(query, person, sessionRequirements)
    const row = await findUserSession(query, person.userId, sessionId)
    if (!row) throw noSession(sessionId)
    return row
  },

  /** With everything that came of it, offline access too. Throws 404 for one of somebody else. */
  end: (context: AccountContext, sessionId: string): Promise<void> =>
    change(context, ending, async (mutation) => {
      const { userId } = context.person
      const found = await findUserSession(mutation.trx, userId, sessionId)
      const isEnded = found && (await endSessionWhole(mutation, { sessionId, reason, endedBy: userId }))
      if (!isEnded) throw noSession(sessionId)
    }),

  /** All but the one that the person is in. */
  endOthers: (context: AccountContext): Promise<void> =>
    change(context, ending, async (mutation) => {
      const { userId, sessionId: exceptSessionId } = context.person
      await endAllOfUser(mutation, { userId, exceptSessionId, reason, endedBy: userId })
    }),

  /** This one too; no browser is known any more, and no sign-in that is under way leads on. */
  endAll: (context: AccountContext): Promise<void> =>
    change(context, ending, async (mutation) => {
      const { userId } = context.person
      await voidOpenProofs(mutation.trx, userId, { everywhere: true, browser: undefined })
      await forgetDevices(mutation.trx, userId)
      await endAllOfUser(mutation, { userId, reason, endedBy: userId })
    }),
})
export type SessionOperations = ReturnType<typeof createSessionOperations>

const noSession = (id: string) => problem('oidc.session_not_found', { data: { id } })
