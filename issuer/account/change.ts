import { type Query, queryOf, type Transaction } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate, Mutation } from '../base/mutate.ts'
import { toUser, type UserRow } from '../directory/users/user.ts'
import { lockUser } from '../directory/users/user-store.ts'
import type { AccountContext, AccountPerson } from './person.ts'
import { isStillSignedIn } from './person-store.ts'
import { requireReauthentication } from './reauthentication.ts'
import {
  type AccountField,
  type AccountSettings,
  readAccountSettings,
  requireEnabled,
  requireField,
} from './settings.ts'

/** What has to be true before somebody sees or changes something of their account. */
export interface Requirements {
  fields: readonly AccountField[]
  /** Of the token. At the pages all are there. */
  scopes?: readonly string[] | undefined
  /** They have proved again who they are. */
  reauthenticated?: boolean | undefined
}

export const hasScope = ({ scopes }: AccountPerson, name: string): boolean => scopes === undefined || scopes.has(name)

const requireScopes = (person: AccountPerson, scopes: readonly string[]): void => {
  const missing = scopes.filter((name) => !hasScope(person, name))
  if (missing.length === 0) return
  // RFC 6750 §3.1
  const challenge = `Bearer error="insufficient_scope", scope="${missing.join(' ')}"`
  throw problem('auth.forbidden', { data: { scopes: missing }, headers: { 'WWW-Authenticate': challenge } })
}

/** The session or the authorization has ended, or the person is suspended or deleted. */
export const noLongerSignedIn = () =>
  problem('auth.unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })

/** Throws unless the person may see these fields. Answers the settings. */
export const requireReadable = async (
  query: Query,
  person: AccountPerson,
  { fields, scopes = [] }: Requirements,
): Promise<AccountSettings> => {
  const settings = await readAccountSettings(query)
  requireEnabled(settings)
  for (const field of fields) requireField(settings, field, 'ReadOnly')
  requireScopes(person, scopes)
  return settings
}

/** Throws unless the person may change these fields now. */
export const requireEditable = async (
  transaction: Transaction,
  person: AccountPerson,
  { fields, scopes = [], reauthenticated = false }: Requirements,
): Promise<void> => {
  const settings = await readAccountSettings(queryOf(transaction))
  requireEnabled(settings)
  for (const field of fields) requireField(settings, field, 'Edit')
  requireScopes(person, scopes)
  if (reauthenticated) await requireReauthentication(person, transaction)
}

/**
 * One change that somebody makes to their own account. Holds the row of the user first: whoever ends sessions of the
 * same person has either done so before, and then this one is refused, or waits.
 */
export type ChangeAccount = <Result>(
  context: AccountContext,
  requirements: Requirements,
  work: (mutation: Mutation, row: UserRow) => Promise<Result>,
) => Promise<Result>

export const createChangeAccount =
  ({ mutate }: { mutate: Mutate }): ChangeAccount =>
  (context, requirements, work) =>
    mutate(context, async (mutation) => {
      const { trx } = mutation
      const { person } = context
      const row = await lockUser(trx, person.userId)
      if (!row || row.is_suspended || !(await isStillSignedIn(trx, person))) throw noLongerSignedIn()
      await requireEditable(trx, person, requirements)
      mutation.note({ userId: person.userId })
      return work(mutation, row)
    })

/** `User.Data.Updated` with the user as it is now. */
export const recordUser = ({ record }: Mutation, row: UserRow) =>
  record({ type: 'User.Data.Updated', entity: { kind: 'user', id: row.id }, data: toUser(row) })
