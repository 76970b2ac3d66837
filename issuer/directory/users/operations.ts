import type { Knex } from 'knex'
import type { EventData } from '../../../events/catalogue.ts'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import { newId } from '../../../platform/ids.ts'
import { AppError } from '../../../platform/problem.ts'
import { changesOf } from '../../base/change.ts'
import { mergedCustomData, storableCustomData } from '../../base/custom-data.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import { addressNotices, type NotifyOwner } from '../../base/owner-notices.ts'
import type { OperationContext } from '../../base/route.ts'
import { readSetting } from '../../base/settings-store.ts'
import { endAccessOfUser } from '../../tokens/authorizations/end.ts'
import { endUserAccess } from '../../tokens/authorizations/end-access.ts'
import type { Settings } from '../sign-in-experience/settings.ts'
import { signInExperience } from '../sign-in-experience/sign-in-experience.ts'
import { createAccountAttempts } from './lockout/account-attempts.ts'
import { lockoutPolicyOf } from './lockout/lockout-policy.ts'
import { changePassword } from './new-password.ts'
import { welcomeUser } from './new-user.ts'
import type { PasswordHasher } from './password.ts'
import { isReadableDigest, type PasswordDigest } from './password-digests.ts'
import { type Phone, readPhone } from './phone.ts'
import { type NewUser, toDigest, toUser, type User, type UserPatch, type UserProfile, type UserRow } from './user.ts'
import {
  deleteUser,
  findUser,
  insertUser,
  isPhoneInUse,
  lockUser,
  replaceDigest,
  type UserColumns,
  updateUser,
} from './user-store.ts'

export interface UserDependencies extends ManagementDependencies {
  database: Pick<Database, 'knex' | 'query'>
  passwords: PasswordHasher
  notifyOwner: NotifyOwner
  hmac: Hmac
  settings: Pick<Settings, 'experience'>
}

/** Every change of a user, with its event: created, deleted, data changed, suspended or reactivated. */
export const userOperations = ({
  database: { knex, query },
  mutate,
  passwords,
  notifyOwner,
  hmac,
  settings,
}: Pick<UserDependencies, 'database' | 'mutate' | 'passwords' | 'notifyOwner' | 'hmac' | 'settings'>) => {
  const policy = () => lockoutPolicyOf(settings.experience())
  const { attempt } = createAccountAttempts({ query, hmac, mutate, policy })

  /**
   * Locks the user, lets `changes` say what becomes different, and records it if anything does. `data` is what the
   * event tells. Answers the row as it then is.
   */
  const change = (
    context: OperationContext,
    userId: string,
    changes: (row: UserRow) => UserColumns | undefined,
    data: (row: UserRow) => EventData<'User.Data.Updated'> = toUser,
  ): Promise<UserRow> =>
    mutate(context, async ({ trx, record }) => {
      const row = requireFound(await lockUser(trx, userId), userId, notFound)
      const columns = changes(row)
      if (columns === undefined) return row
      const changed = await updateUser(trx, userId, columns)
      if (columns.primary_phone) await refuseOtherSpellings(trx, userId, readPhone(columns.primary_phone))
      for (const notice of addressNotices(row, changed)) await notifyOwner(trx, row, notice)
      await record({ type: 'User.Data.Updated', entity: { kind: 'user', id: userId }, data: data(changed) })
      return changed
    })

  return {
    async get(userId: string): Promise<User> {
      const row = requireFound(await findUser(knex, userId), userId, notFound)
      return toUser(row)
    },

    async getDigest(userId: string) {
      const row = requireFound(await findUser(knex, userId), userId, notFound)
      return toDigest(row)
    },

    async create(context: OperationContext, input: NewUser): Promise<User> {
      const phone = input.primaryPhone ? readPhone(input.primaryPhone) : undefined
      const digest = await digestOf(input, passwords)
      return mutate(context, async ({ trx, record }) => {
        const id = newId(12)
        const columns = { ...columnsOf(input), ...(phone && { primary_phone: phone.number }), ...digest }
        const row = await insertUser(trx, { id, ...columns })
        if (phone) await refuseOtherSpellings(trx, id, phone)
        return welcomeUser({ trx, record }, row)
      })
    },

    delete(context: OperationContext, userId: string): Promise<void> {
      if (context.caller.subject === userId) throw problem('user.cannot_delete_self')
      return mutate(context, async (mutation) => {
        requireFound(await lockUser(mutation.trx, userId), userId, notFound)
        // While they are there: applications are told of them.
        const ending = { userId, reason: 'user_deleted', endedBy: context.caller.subject } as const
        await endAccessOfUser(mutation, { ...ending, exceptSessionId: undefined })
        const deleted = requireFound(await deleteUser(mutation.trx, userId), userId, notFound)
        await mutation.record({ type: 'User.Deleted', entity: { kind: 'user', id: userId }, data: toUser(deleted) })
        await endUserAccess(mutation, userId, context.caller.subject)
      })
    },

    update: async (context: OperationContext, userId: string, patch: UserPatch): Promise<User> =>
      toUser(
        await change(context, userId, (row) =>
          changesOf<UserColumns>(row, { ...columnsOf(patch), ...phoneColumn(row, patch.primaryPhone) }),
        ),
      ),

    /** Merges at the first level; answers the merged object. */
    mergeCustomData: async (context: OperationContext, userId: string, customData: Record<string, unknown>) =>
      (
        await change(
          context,
          userId,
          (row) => changesOf<UserColumns>(row, { custom_data: mergedCustomData(row.custom_data, customData) }),
          (row) => row.custom_data,
        )
      ).custom_data,

    mergeProfile: async (context: OperationContext, userId: string, profile: UserProfile) =>
      (
        await change(
          context,
          userId,
          (row) => changesOf<UserColumns>(row, { profile: { ...row.profile, ...profile } }),
          (row) => row.profile,
        )
      ).profile,

    /** Whoever signed in with the old one is signed out. */
    async setPassword(context: OperationContext, userId: string, password: string): Promise<User> {
      requireFound(await findUser(knex, userId), userId, notFound)
      const digest = await passwords.hash(password)
      return mutate(context, async (mutation) => {
        const changed = await changePassword(mutation, {
          ...{ userId, digest, endedBy: context.caller.subject },
          notify: (owner) => notifyOwner(mutation.trx, owner, { type: 'PasswordChanged' }),
        })
        return toUser(requireFound(changed, userId, notFound))
      })
    },

    /**
     * Throws unless it is the user's password; failures lock the account as those of signing in do
     * (`AccountAttempts`). A digest from elsewhere is replaced by ours now that the password is known; when there is no
     * time for that, at its next use.
     */
    verifyPassword: (context: OperationContext, userId: string, password: string): Promise<void> =>
      passwords.inTurn(userId, async () => {
        const row = requireFound(await findUser(knex, userId), userId, notFound)
        const stored = storedDigest(row)
        await attempt(context, userId, async () => stored !== undefined && (await passwords.verify(password, stored)))
        if (stored === undefined || passwords.isCurrent(stored)) return
        const fresh = await passwords.hash(password).catch(unlessBusy)
        if (fresh === undefined) return
        const columns = { password_digest: fresh.digest, password_algorithm: fresh.algorithm }
        await mutate(context, async ({ trx, note }) => {
          const isUpgraded = await replaceDigest(trx, userId, stored.digest, columns)
          note({ userId, details: { passwordAlgorithm: stored.algorithm, isUpgraded } })
        })
      }),

    /**
     * Says that the password has to be replaced, or takes that back. Throws 400 unless passwords expire at all
     * (`passwordExpiration` of the sign-in experience).
     */
    async expirePassword(context: OperationContext, userId: string, isExpired: boolean): Promise<User> {
      return mutate(context, async ({ trx, record }) => {
        const { passwordExpiration } = await readSetting(queryOf(trx), signInExperience)
        if (!passwordExpiration.enabled) throw problem('sign_in_experiences.password_expiration_not_enabled')
        const row = requireFound(await lockUser(trx, userId), userId, notFound)
        if (row.password_expired === isExpired) return toUser(row)
        const data = toUser(await updateUser(trx, userId, { password_expired: isExpired }))
        await record({ type: 'User.Data.Updated', entity: { kind: 'user', id: userId }, data })
        return data
      })
    },

    /** Suspension ends everything the user can do at once; its end brings none of it back. */
    setSuspended: (context: OperationContext, userId: string, isSuspended: boolean): Promise<User> =>
      mutate(context, async (mutation) => {
        const row = requireFound(await lockUser(mutation.trx, userId), userId, notFound)
        if (row.is_suspended === isSuspended) return toUser(row)
        const data = toUser(await updateUser(mutation.trx, userId, { is_suspended: isSuspended }))
        await mutation.record({ type: 'User.SuspensionStatus.Updated', entity: { kind: 'user', id: userId }, data })
        if (isSuspended) await endUserAccess(mutation, userId, context.caller.subject)
        return data
      }),
  }
}

const storedDigest = ({
  password_digest: digest,
  password_algorithm: algorithm,
}: UserRow): PasswordDigest | undefined => (digest === null || algorithm === null ? undefined : { digest, algorithm })

const unlessBusy = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'server.unavailable') return undefined
  throw error
}

/**
 * The number that is sent in the form in which it is kept. What an older version has stored in another form may be sent
 * as it is.
 */
const phoneColumn = (row: UserRow, digits: string | null | undefined): UserColumns =>
  digits && digits !== row.primary_phone ? { primary_phone: readPhone(digits).number } : {}

/**
 * The unique constraint has refused the same number in the same form. Older versions have stored others: a user who has
 * it in one of those has it too.
 */
const refuseOtherSpellings = async (trx: Knex, userId: string, { spellings }: Phone) => {
  if (await isPhoneInUse(trx, spellings, userId)) throw problem('user.phone_already_in_use')
}

/** The members that a caller set, as columns. */
const columnsOf = (input: UserPatch): UserColumns => {
  const columns: UserColumns = {
    username: input.username,
    primary_email: input.primaryEmail,
    primary_phone: input.primaryPhone,
    name: input.name,
    avatar: input.avatar,
    custom_data: storableCustomData(input.customData),
    profile: input.profile,
  } as UserColumns
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined))
}

const digestOf = async (
  { password, passwordDigest, passwordAlgorithm }: NewUser,
  passwords: PasswordHasher,
): Promise<UserColumns> => {
  if (password !== undefined && passwordDigest !== undefined) throw problem('user.password_and_digest')
  if (passwordDigest !== undefined) {
    if (passwordAlgorithm === undefined) throw problem('user.password_algorithm_required')
    // Kept, it would be a password that nobody can ever use.
    if (!isReadableDigest({ digest: passwordDigest, algorithm: passwordAlgorithm })) {
      throw problem('guard.invalid_input', {
        detail: `passwordDigest: is not a digest of ${passwordAlgorithm}, or costs too much to verify`,
      })
    }
    return { password_digest: passwordDigest, password_algorithm: passwordAlgorithm }
  }
  if (password === undefined) return {}
  const { digest, algorithm } = await passwords.hash(password)
  return { password_digest: digest, password_algorithm: algorithm }
}
