import { queryOf, type Transaction } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { availableFactors } from '../../directory/users/factors/index.ts'
import type { UserRow } from '../../directory/users/user.ts'
import { hasEnterpriseIdentity } from '../person-store.ts'

const identifiers = { username: 'username', email: 'primary_email', phone: 'primary_phone' } as const

/** Whether this person has anything to begin a sign-in with. */
const hasWayIn = async (trx: Transaction, row: UserRow, experience: SignInExperience): Promise<boolean> => {
  const { signIn, passkeySignIn, socialSignInConnectorTargets, singleSignOnEnabled } = experience
  const { passkeys, email, phone } = (await availableFactors(queryOf(trx), row.id))!
  // At providers that the pages offer; the others let nobody in.
  if (socialSignInConnectorTargets.some((target) => Object.hasOwn(row.identities, target))) return true
  if (singleSignOnEnabled && (await hasEnterpriseIdentity(trx, row.id))) return true
  if (passkeySignIn.enabled && passkeys > 0) return true
  const isVerified = { username: false, email: email !== null, phone: phone !== null }
  return signIn.methods.some(
    ({ identifier, password, verificationCode }) =>
      row[identifiers[identifier]] !== null &&
      ((password && row.password_digest !== null) || (verificationCode && isVerified[identifier])),
  )
}

/** Throws 422 when `take` takes the last way in which the person could sign in. */
export const keepingAWayIn = async (
  trx: Transaction,
  row: UserRow,
  experience: SignInExperience,
  take: () => Promise<UserRow>,
): Promise<UserRow> => {
  const could = await hasWayIn(trx, row, experience)
  const after = await take()
  if (could && !(await hasWayIn(trx, after, experience))) throw problem('user.last_sign_in_method_required')
  return after
}
