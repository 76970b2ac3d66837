import type { Query } from '../../../../platform/database/database.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { Hmac } from '../../../base/hmac-keys-store.ts'
import type { Mutate } from '../../../base/mutate.ts'
import type { OperationContext } from '../../../base/route.ts'
import { countAccountAttempt, forgetAccountFailures, forgiveAccountAttempt, lockAccount } from './failure-store.ts'
import { lockoutKeys } from './lockout-keys.ts'
import type { LockoutPolicy } from './lockout-policy.ts'

/** Attempts to prove something about an account where nobody signs in: at calls of the API. */
export interface AccountAttempts {
  /**
   * Counts the attempt as one from a browser that the account does not know, and commits that, before `verify` is
   * asked. The address is not counted: it is the caller's. Throws 422 `session.invalid_credentials` for what is wrong,
   * 400 `session.verification_blocked_too_many_attempts` for the last one that is allowed and for all that come after
   * it; those are not looked at. When `verify` throws, the attempt was none. No transaction is open meanwhile.
   */
  attempt(context: OperationContext, userId: string, verify: () => Promise<boolean>): Promise<void>
}

export const createAccountAttempts = ({
  query,
  hmac,
  mutate,
  policy: policyNow,
}: {
  query: Query
  hmac: Hmac
  mutate: Mutate
  policy: () => LockoutPolicy
}): AccountAttempts => {
  const keys = lockoutKeys(hmac)

  const lock = (context: OperationContext, userId: string, policy: LockoutPolicy) =>
    mutate(context, async ({ trx, record, note }) => {
      const isLocked = await lockAccount(trx, keys.user(userId), policy)
      note({ userId, details: { isLocked } })
      if (!isLocked) return
      const extras = { type: 'userId', value: userId }
      await record({ type: 'Identifier.Lockout', entity: { kind: 'user', id: userId }, data: null, extras })
    })

  return {
    async attempt(context, userId, verify) {
      const account = keys.user(userId)
      const policy = policyNow()
      const attempts = await countAccountAttempt(query, account, policy)
      if (attempts > policy.attempts) throw problem('session.verification_blocked_too_many_attempts')
      let isRight: boolean
      try {
        isRight = await verify()
      } catch (error) {
        await forgiveAccountAttempt(query, account, policy)
        throw error
      }
      if (isRight) return forgetAccountFailures(query, account)
      if (attempts < policy.attempts) throw problem('session.invalid_credentials')
      await lock(context, userId, policy)
      throw problem('session.verification_blocked_too_many_attempts')
    },
  }
}
