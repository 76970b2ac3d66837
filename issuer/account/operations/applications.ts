import type { Database } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import { endGrantOf, revokeApplication } from '../../directory/sessions/end-grant.ts'
import { toUserGrant, type UserGrant } from '../../directory/sessions/records.ts'
import { listGrants } from '../../directory/sessions/user-session-store.ts'
import { type ChangeAccount, requireReadable } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import { type AccountApplication, findAccountApplication, listAccountApplications } from './applications-store.ts'
import { sessionRequirements } from './sessions.ts'

const ending = { ...sessionRequirements, reauthenticated: true } as const

/** What applications may do for the person, and how that ends. */
export const createApplicationOperations = ({
  database: { query },
  change,
}: {
  database: Pick<Database, 'query'>
  change: ChangeAccount
}) => ({
  /** What each got in one sign-in, newest first. */
  async listGrants(person: AccountPerson, appType: 'firstParty' | 'thirdParty' | undefined): Promise<UserGrant[]> {
    await requireReadable(query, person, sessionRequirements)
    const isThirdParty = appType === undefined ? undefined : appType === 'thirdParty'
    return (await listGrants(query, person.userId, isThirdParty)).map(toUserGrant)
  },

  endGrant: (context: AccountContext, grantId: string): Promise<void> =>
    change(context, ending, (mutation) => {
      const { userId } = context.person
      return endGrantOf(mutation, { userId, grantId, reason: 'ended_by_user', endedBy: userId })
    }),

  /** One for each application, also where a consent is all that is left. */
  async list(person: AccountPerson): Promise<AccountApplication[]> {
    await requireReadable(query, person, sessionRequirements)
    return listAccountApplications(query, person.userId)
  },

  /** Everything that an application got, and the consent: it has to ask again. */
  end: (context: AccountContext, clientId: string): Promise<void> =>
    change(context, ending, async (mutation) => {
      const { userId } = context.person
      const found = await findAccountApplication(mutation.trx, userId, clientId)
      if (!found) throw problem('oidc.invalid_grant', { data: { id: clientId } })
      await revokeApplication(mutation, { ...found, userId, reason: 'ended_by_user', endedBy: userId })
    }),
})
export type ApplicationOperations = ReturnType<typeof createApplicationOperations>
