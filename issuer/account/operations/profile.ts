import type { Database } from '../../../platform/database/database.ts'
import { changesOf } from '../../base/change.ts'
import { storableCustomData } from '../../base/custom-data.ts'
import { problem } from '../../base/errors/problems.ts'
import { findTaken, takeTurnsAt } from '../../directory/people/person-store.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import { checkUsername, readUsernamePolicy } from '../../directory/users/registration-rules/username-policy.ts'
import { toUser, type User, type UserProfile, type UserRow } from '../../directory/users/user.ts'
import { findUser, type UserColumns, updateUser } from '../../directory/users/user-store.ts'
import { type ChangeAccount, hasScope, noLongerSignedIn, recordUser, requireReadable } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import { type AccountField, type AccountSettings, readAccountSettings } from '../settings.ts'
import { keepingAWayIn } from './ways-in.ts'

/** Of their own account: what scopes allow and settings show. */
export type AccountProfile = Partial<User>

export interface NewProfile {
  name?: string | null | undefined
  avatar?: string | null | undefined
  username?: string | null | undefined
  customData?: Record<string, unknown> | undefined
}

export interface ProfileOperations {
  get(person: AccountPerson): Promise<AccountProfile>
  /** A user name needs that the person proves again who they are. Throws 422 for one that is taken. */
  update(context: AccountContext, changes: NewProfile): Promise<AccountProfile>
  /** Merged at the first level. */
  updateProfile(context: AccountContext, profile: UserProfile): Promise<UserProfile>
}

interface Member {
  field?: AccountField
  scope?: string
}

/** Where each member of a user belongs; those without a scope everybody may read who holds a token. */
const members: Readonly<Partial<Record<keyof User, Member>>> = {
  id: {},
  username: { field: 'username', scope: 'profile' },
  name: { field: 'name', scope: 'profile' },
  avatar: { field: 'avatar', scope: 'profile' },
  profile: { field: 'profile', scope: 'profile' },
  lastSignInAt: { scope: 'profile' },
  createdAt: { scope: 'profile' },
  updatedAt: { scope: 'profile' },
  applicationId: { scope: 'profile' },
  isSuspended: { scope: 'profile' },
  hasPassword: { field: 'password', scope: 'profile' },
  primaryEmail: { field: 'email', scope: 'email' },
  primaryPhone: { field: 'phone', scope: 'phone' },
  identities: { field: 'social', scope: 'identities' },
  customData: { field: 'customData', scope: 'custom_data' },
}

/** Without the postal address, which has a scope of its own. */
const profileFor = (person: AccountPerson, { address, ...profile }: UserProfile): UserProfile =>
  address !== undefined && hasScope(person, 'address') ? { ...profile, address } : profile

const toProfile = (person: AccountPerson, settings: AccountSettings, row: UserRow): AccountProfile => {
  const user = toUser(row)
  const told = { ...user, profile: profileFor(person, user.profile) }
  return Object.fromEntries(
    Object.entries(members)
      .filter(([, { field }]) => field === undefined || settings[field] !== 'Off')
      .filter(([, { scope }]) => scope === undefined || hasScope(person, scope))
      .map(([name]) => [name, told[name as keyof User]]),
  )
}

export const createProfileOperations = ({
  database: { knex, query },
  change,
  settings,
}: {
  database: Pick<Database, 'knex' | 'query'>
  change: ChangeAccount
  settings: Pick<Settings, 'experience'>
}): ProfileOperations => ({
  async get(person) {
    await requireReadable(query, person, { fields: [] })
    const row = await findUser(knex, person.userId)
    if (!row) throw noLongerSignedIn()
    return toProfile(person, await readAccountSettings(query), row)
  },

  async update(context, { name, avatar, username, customData }) {
    const { person } = context
    const given = { name, avatar, username, customData }
    const fields = Object.entries(given).flatMap(([field, value]) =>
      value === undefined ? [] : [field as keyof typeof given],
    )
    const policy = readUsernamePolicy(settings.experience().usernamePolicy)
    const violation = username == null ? undefined : checkUsername(username, policy)
    if (violation) throw problem('guard.invalid_input', { detail: `username: ${violation}` })
    storableCustomData(customData)
    const columns = { name, avatar, username, custom_data: customData } as UserColumns
    const row = await change(
      context,
      {
        fields,
        scopes: ['profile', ...(customData === undefined ? [] : ['custom_data'])],
        reauthenticated: username !== undefined,
      },
      async (mutation, before) => {
        const { trx } = mutation
        const changes = changesOf<UserColumns>(before, columns)
        if (changes === undefined) return before
        if (changes.username) {
          const asked = { username: changes.username, isUsernameCaseSensitive: policy.caseSensitive }
          await takeTurnsAt(trx, asked)
          // In other cases it may be their own.
          const isOwn = !policy.caseSensitive && before.username?.toLowerCase() === changes.username.toLowerCase()
          if (!isOwn && (await findTaken(trx, asked)).username) throw problem('user.username_already_in_use')
        }
        const after = await keepingAWayIn(trx, before, settings.experience(), () =>
          updateUser(trx, person.userId, changes),
        )
        await recordUser(mutation, after)
        return after
      },
    )
    return toProfile(person, await readAccountSettings(query), row)
  },

  async updateProfile(context, profile) {
    const scopes = ['profile', ...(profile.address === undefined ? [] : ['address'])]
    const row = await change(context, { fields: ['profile'], scopes }, async (mutation, before) => {
      const changes = changesOf<UserColumns>(before, { profile: { ...before.profile, ...profile } })
      if (changes === undefined) return before
      const after = await updateUser(mutation.trx, before.id, changes)
      await recordUser(mutation, after)
      return after
    })
    return profileFor(context.person, row.profile)
  },
})
