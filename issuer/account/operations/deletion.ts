import { toUser } from '../../directory/users/user.ts'
import { deleteUser } from '../../directory/users/user-store.ts'
import { endAccessOfUser } from '../../tokens/authorizations/end.ts'
import { endUserAccess } from '../../tokens/authorizations/end-access.ts'
import type { ChangeAccount } from '../change.ts'
import type { AccountContext } from '../person.ts'

/** The end of an account, by its owner: the person, and everything that anybody may do as them, at once. */
export const createDeletionOperations = ({ change }: { change: ChangeAccount }) => ({
  delete: (context: AccountContext): Promise<void> =>
    change(context, { fields: ['deletion'], reauthenticated: true }, async (mutation, row) => {
      const { userId } = context.person
      // While they are there: applications are told of them.
      const ending = { userId, reason: 'user_deleted', endedBy: userId } as const
      await endAccessOfUser(mutation, { ...ending, exceptSessionId: undefined })
      await deleteUser(mutation.trx, userId)
      await mutation.record({ type: 'User.Deleted', entity: { kind: 'user', id: userId }, data: toUser(row) })
      await endUserAccess(mutation, userId, userId)
    }),
})
export type DeletionOperations = ReturnType<typeof createDeletionOperations>
