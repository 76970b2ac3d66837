import type { Database } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import { changePassword } from '../../directory/users/new-password.ts'
import type { PasswordHasher } from '../../directory/users/password.ts'
import type { PasswordRules } from '../../directory/users/password-policy/password-rules.ts'
import { findAccount, findPassword } from '../../interaction/person-store.ts'
import { type ChangeAccount, noLongerSignedIn, type Requirements, requireEditable } from '../change.ts'
import type { AccountContext } from '../person.ts'

export interface PasswordOperations {
  /**
   * Sets a password, or another one. Who signed in elsewhere is signed out there; this session goes on. Throws 422
   * `password.rejected`, `user.same_password`; 503 when too many wait to be hashed.
   */
  set(context: AccountContext, password: string): Promise<void>
}

const requirements: Requirements = { fields: ['password'], reauthenticated: true }

export const createPasswordOperations = ({
  database: { query },
  change,
  passwords,
  passwordRules,
  notifyOwner,
}: {
  database: Pick<Database, 'query'>
  change: ChangeAccount
  passwords: PasswordHasher
  passwordRules: PasswordRules
  notifyOwner: NotifyOwner
}): PasswordOperations => ({
  async set(context, password) {
    const { userId, sessionId, ip } = context.person
    // Before anything is hashed; and again in the transaction, which decides.
    await requireEditable(query, context.person, requirements)
    const account = await findAccount(query, userId)
    if (!account) throw noLongerSignedIn()
    await passwordRules.require(password, {
      username: account.username,
      email: account.primaryEmail,
      phone: account.primaryPhone,
      name: account.fullName,
    })
    const digest = await passwords.inTurn(userId, async () => {
      const stored = await findPassword(query, userId)
      if (stored !== undefined && (await passwords.verify(password, stored))) throw problem('user.same_password')
      return passwords.hash(password)
    })
    await change(context, requirements, (mutation) =>
      changePassword(mutation, {
        ...{ userId, digest, endedBy: userId, exceptSessionId: sessionId },
        notify: (owner) => notifyOwner(mutation.trx, owner, { type: 'PasswordChanged' }, { ip }),
      }),
    )
  },
})
