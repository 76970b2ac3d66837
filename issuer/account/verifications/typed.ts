import { newId } from '../../../platform/ids.ts'
import { AppError } from '../../../platform/problem.ts'
import { problem } from '../../base/errors/problems.ts'
import { availableFactors } from '../../directory/users/factors/index.ts'
import { lockoutKeys } from '../../directory/users/lockout/lockout-keys.ts'
import { lockoutPolicyOf, secondFactorPolicy } from '../../directory/users/lockout/lockout-policy.ts'
import { replaceDigest } from '../../directory/users/user-store.ts'
import { findOwner, findPassword } from '../../interaction/person-store.ts'
import type { ProofData, ProofKindName } from '../../interaction/proofs.ts'
import { noLongerSignedIn } from '../change.ts'
import type { AccountContext } from '../person.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import { insertVerification, type VerificationId } from '../verification-store.ts'
import { holderKey, type VerificationDependencies } from './dependencies.ts'
import { requireFactorEnabled } from './factor-settings.ts'

/** What people type to prove again who they are. */
export interface TypedVerifications {
  /** Throws 503 when too many passwords wait to be verified. */
  password(context: AccountContext, password: string): Promise<VerificationId>
  totp(context: AccountContext, code: string): Promise<VerificationId>
  /** The code is used up, and the owner is told. */
  backupCode(context: AccountContext, code: string): Promise<VerificationId>
}

export const createTypedVerifications = ({
  database,
  attempts,
  hmac,
  factors,
  notifyOwner,
  passwords,
  settings,
  now,
}: VerificationDependencies): TypedVerifications => {
  const { query } = database

  const proven = async (
    context: AccountContext,
    kind: ProofKindName,
    data: ProofData = {},
  ): Promise<VerificationId> => {
    const seconds = reauthenticationSeconds
    const { person } = context
    const kept = await insertVerification(query, { id: newId(), person, kind, purpose: 'reauth', data, seconds })
    if (!kept) throw noLongerSignedIn()
    return kept
  }

  const secondFactor = (context: AccountContext, kind: 'totp' | 'backup_code') => ({
    kind,
    account: lockoutKeys(hmac).secondFactor(context.person.userId),
    policy: secondFactorPolicy,
    wrong: () => problem(kind === 'totp' ? 'session.mfa.invalid_totp_code' : 'session.mfa.invalid_backup_code'),
  })

  return {
    password: (context, password) =>
      passwords.inTurn(context.person.userId, async () => {
        const { person } = context
        const stored = await findPassword(query, person.userId)
        const attempt = {
          ...({ kind: 'password', account: holderKey(hmac, person) } as const),
          policy: lockoutPolicyOf(settings.experience()),
          wrong: () => problem('session.invalid_credentials'),
        }
        await attempts.attempt(context, attempt, async () =>
          stored !== undefined && (await passwords.verify(password, stored)) ? stored : undefined,
        )
        if (stored && !passwords.isCurrent(stored)) {
          const fresh = await passwords.hash(password).catch(unlessBusy)
          const columns = fresh && { password_digest: fresh.digest, password_algorithm: fresh.algorithm }
          if (columns) await replaceDigest(database.knex, person.userId, stored.digest, columns)
        }
        return proven(context, 'password')
      }),

    async totp(context, code) {
      requireFactorEnabled(settings.experience(), 'Totp')
      const { userId } = context.person
      const factorId = await attempts.attempt(context, secondFactor(context, 'totp'), () =>
        factors.useTotp(query, { userId, code, now: now() }),
      )
      return proven(context, 'totp', { factorId })
    },

    async backupCode(context, code) {
      requireFactorEnabled(settings.experience(), 'BackupCode')
      const { userId, ip } = context.person
      const factorId = await attempts.attempt(context, secondFactor(context, 'backup_code'), () =>
        database.transaction(async (trx) => {
          const owner = await findOwner(trx, userId)
          const used = owner && (await factors.useBackupCode(trx, { userId, code }))
          if (!owner || used === undefined) return undefined
          const { backupCodes: left = 0 } = (await availableFactors(trx, userId)) ?? {}
          await notifyOwner(trx, owner, { type: 'BackupCodeUsed', left }, { ip })
          return used
        }),
      )
      return proven(context, 'backup_code', { factorId })
    },
  }
}

const unlessBusy = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'server.unavailable') return undefined
  throw error
}
