import type { Recording } from '../../base/recording.ts'
import { endAllOfUser } from '../../tokens/authorizations/end.ts'
import { forgetDevices } from '../../tokens/sessions/known-device-store.ts'
import type { PasswordDigest } from './password-digests.ts'
import { replacePassword } from './password-store.ts'
import { toUser, type UserRow } from './user.ts'

export interface NewPassword {
  userId: string
  digest: PasswordDigest
  /** The user, or the application that set it. */
  endedBy: string
  /** The session in which the person changed it: it is spared. */
  exceptSessionId?: string | undefined
  /** Tells the owner. */
  notify(owner: UserRow): Promise<void>
}

/**
 * Sets a password, which is not expired then. Whoever signed in with the old one is signed out, and no browser is known
 * any more. A new digest is always a change: it has a new salt. Undefined when there is no such user. Call it last, for
 * the revocation feed (see `revoke`).
 */
export const changePassword = async (
  recording: Recording,
  { userId, digest, endedBy, exceptSessionId, notify }: NewPassword,
): Promise<UserRow | undefined> => {
  const { trx, record } = recording
  const changed = await replacePassword(trx, userId, digest)
  if (!changed) return undefined
  await record({ type: 'User.Data.Updated', entity: { kind: 'user', id: userId }, data: toUser(changed) })
  await notify(changed)
  await forgetDevices(trx, userId)
  await endAllOfUser(recording, { userId, exceptSessionId, reason: 'password_changed', endedBy })
  return changed
}
