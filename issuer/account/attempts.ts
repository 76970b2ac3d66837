import type { Query } from '../../platform/database/database.ts'
import type { AppError } from '../../platform/problem.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import { problem } from '../base/errors/problems.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import type { Mutate } from '../base/mutate.ts'
import { lockAccount } from '../directory/users/lockout/failure-store.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import { addressPolicy, countVerification, forgetFailures, forgiveVerification } from '../interaction/failure-store.ts'
import type { ProofKindName } from '../interaction/proofs.ts'
import type { AccountContext } from './person.ts'

export interface VerificationAttempt {
  kind: ProofKindName
  /** What fails, beside the address. */
  account: Buffer
  policy: LockoutPolicy
  /** What is right says nothing of who it is: failures of before are not forgotten for it. */
  isOfAnybody?: boolean
  /** What the person is told of an answer that is not right. */
  wrong(): AppError
}

/** Attempts of somebody who has signed in to prove something. */
export interface VerificationAttempts {
  /**
   * Counts the attempt, and commits that, before `verify` is asked, which answers undefined for what is wrong. Throws
   * `wrong`; 400 `session.verification_blocked_too_many_attempts` for the last one that is allowed, and for all after
   * it, which are not looked at; 429 for those of an address. When `verify` throws, the attempt was none. No
   * transaction is open meanwhile.
   */
  attempt<Result>(
    context: AccountContext,
    attempt: VerificationAttempt,
    verify: () => Promise<Result | undefined>,
  ): Promise<Result>
}

export const createVerificationAttempts = ({
  query,
  hmac,
  mutate,
  audit,
}: {
  query: Query
  hmac: Hmac
  mutate: Mutate
  audit: TokenAudit
}): VerificationAttempts => {
  const keysOf = lockoutKeys(hmac)

  const lock = (context: AccountContext, { account, policy }: VerificationAttempt) =>
    mutate(context, async ({ trx, record, note }) => {
      const { userId } = context.person
      const isLocked = await lockAccount(trx, account, policy)
      note({ userId, details: { isLocked } })
      if (!isLocked) return
      const extras = { type: 'userId', value: userId }
      await record({ type: 'Identifier.Lockout', entity: { kind: 'user', id: userId }, data: null, extras })
    })

  return {
    async attempt(context, attempt, verify) {
      const { person } = context
      const { account, policy, kind } = attempt
      const keys = { address: keysOf.address(person.ip), account }
      const note = (result: 'Success' | 'Error', error?: string) =>
        audit.record({
          key: `Account.Verification.${kind}`,
          result,
          applicationId: person.clientId,
          userId: person.userId,
          payload: { ip: person.ip, userAgent: person.userAgent, error },
        })
      const refused = (error: AppError) => {
        note('Error', error.code)
        return error
      }

      const { ofAddress, ofAccount } = await countVerification(query, keys, policy)
      if (ofAddress > addressPolicy.attempts) throw refused(problem('rate_limit.exceeded'))
      const blocked = () => refused(problem('session.verification_blocked_too_many_attempts'))
      if (ofAccount === null || ofAccount > policy.attempts) throw blocked()
      let result: Awaited<ReturnType<typeof verify>>
      try {
        result = await verify()
      } catch (error) {
        await forgiveVerification(query, keys, policy)
        throw error
      }
      if (result !== undefined) {
        if (attempt.isOfAnybody) await forgiveVerification(query, keys, policy)
        else await forgetFailures(query, keys)
        note('Success')
        return result
      }
      if (ofAccount < policy.attempts) throw refused(attempt.wrong())
      await lock(context, attempt)
      throw blocked()
    },
  }
}
