import type { Knex } from 'knex'
import { type Database, queryOf } from '../../../../platform/database/database.ts'
import { notFound, requireFound } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { Mutate, Mutation } from '../../../base/mutate.ts'
import type { NotifyOwner } from '../../../base/owner-notices.ts'
import type { OperationContext } from '../../../base/route.ts'
import { toUser, type UserRow } from '../user.ts'
import { findUser, lockUser, updateUser } from '../user-store.ts'
import { availableFactors, listFactors } from './factor-store.ts'
import { createFactors, endAfterRemoval, type FactorDependencies } from './factors.ts'
import {
  type CreatedMfaVerification,
  type MfaVerification,
  type NewMfaVerification,
  toMfaVerification,
} from './mfa-verification.ts'
import { newTotpSecret, qrDataUrl, totpUri } from './totp.ts'

export interface MfaVerificationDependencies extends FactorDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
  notifyOwner: NotifyOwner
  baseUrl: string
}

/** The factors of a person as an administrator sees, gives and takes them. Each change is one of the user. */
export const mfaVerificationOperations = ({
  database: { query, knex },
  mutate,
  notifyOwner,
  baseUrl,
  ...dependencies
}: MfaVerificationDependencies) => {
  const factors = createFactors(dependencies)
  const { hostname } = new URL(baseUrl)

  const lockFor = async ({ trx }: Mutation, userId: string): Promise<UserRow> =>
    requireFound(await lockUser(trx, userId), userId, notFound)

  const recordChange = async ({ trx, record }: Mutation, userId: string) => {
    const data = toUser(await updateUser(trx, userId, {}))
    await record({ type: 'User.Data.Updated', entity: { kind: 'user', id: userId }, data })
  }

  const give: Record<
    NewMfaVerification['type'],
    (trx: Knex.Transaction, row: UserRow, input: NewMfaVerification) => Promise<CreatedMfaVerification>
  > = {
    async Totp(trx, row, { secret = newTotpSecret() }) {
      await factors.bindTotp(trx, { userId: row.id, secret })
      const uri = totpUri({ issuer: hostname, account: accountOf(row), secret })
      return { type: 'Totp', secret, secretQrCode: qrDataUrl(uri) }
    },
    async BackupCode(trx, { id }) {
      const available = await availableFactors(queryOf(trx), id)
      if (available!.backupCodes > 0) throw problem('user.backup_code_already_in_use')
      return { type: 'BackupCode', codes: await factors.replaceBackupCodes(trx, id) }
    },
  }

  return {
    async list(userId: string): Promise<MfaVerification[]> {
      requireFound(await findUser(knex, userId), userId, notFound)
      return (await listFactors(query, userId)).map(toMfaVerification)
    },

    /** The secret or the codes are answered here and never again. */
    create: (context: OperationContext, userId: string, input: NewMfaVerification): Promise<CreatedMfaVerification> =>
      mutate(context, async (mutation) => {
        const row = await lockFor(mutation, userId)
        const created = await give[input.type](mutation.trx, row, input)
        mutation.note({ userId, details: { factor: input.type } })
        await recordChange(mutation, userId)
        await notifyOwner(mutation.trx, row, { type: 'FactorAdded', factor: input.type })
        return created
      }),

    /** Who had signed in with it, or without, has to sign in again. */
    delete: (context: OperationContext, userId: string, factorId: string): Promise<void> =>
      mutate(context, async (mutation) => {
        const owner = await lockFor(mutation, userId)
        const factor = await factors.removeFactor(mutation.trx, { userId, factorId })
        mutation.note({ userId, details: { factor } })
        await recordChange(mutation, userId)
        await notifyOwner(mutation.trx, owner, { type: 'FactorRemoved', factor })
        await endAfterRemoval(mutation, { userId, endedBy: context.caller.subject })
      }),
  }
}

/** How an authenticator app names the account. */
const accountOf = (row: UserRow): string => row.username ?? row.primary_email ?? row.primary_phone ?? row.name ?? row.id
