import type { Recording } from '../../base/recording.ts'
import { assignDefaultRoles } from '../roles/assignment-store.ts'
import { toUser, type User, type UserRow } from './user.ts'

/** What every new user gets, whoever has made the row: the default roles, and `User.Created`. */
export const welcomeUser = async ({ trx, record }: Recording, row: UserRow): Promise<User> => {
  const user = toUser(row)
  await assignDefaultRoles(trx, row.id)
  await record({ type: 'User.Created', entity: { kind: 'user', id: row.id }, data: user })
  return user
}
