import type { EventContent } from '../../events/catalogue.ts'
import type { Recording } from '../base/recording.ts'
import { changePassword } from '../directory/users/new-password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import type { User } from '../directory/users/user.ts'
import { beginEvent, keepDecision } from './interaction-changes-store.ts'
import type { Interaction } from './interaction-store.ts'
import type { Notices } from './notices.ts'
import { holdPerson } from './person-store.ts'
import type { InteractionRecording } from './recording.ts'
import type { SignInSettings } from './settings.ts'
import { areStillTrue } from './still-true.ts'
import type { Visitor } from './visitor.ts'

/**
 * Sets the password that was staged. Nobody is signed in by that: the interaction goes on with signing in. False when
 * it is not theirs to set any more: then the interaction begins anew.
 */
export const resetPassword = async (
  {
    interaction,
    userId,
    digest,
    visitor,
    settings,
  }: {
    interaction: Interaction
    userId: string
    digest: PasswordDigest
    visitor: Visitor
    settings: SignInSettings
  },
  { recording, notices }: { recording: InteractionRecording; notices: Notices },
): Promise<boolean> => {
  const { trx } = recording
  const { id, proofs } = interaction
  const held = await holdPerson(trx, userId)
  const isTheirs = held !== undefined && (await areStillTrue(trx, held, proofs, settings))
  await beginEvent(trx, { id, event: 'SignIn', isAnew: !isTheirs })
  if (!isTheirs) return false
  await keepDecision(trx, id, { notice: 'password_changed' })
  await changePassword(tellingOfReset(recording), {
    ...{ userId, digest, endedBy: userId },
    notify: (owner) => notices.notify(trx, interaction, visitor, owner, { type: 'PasswordChanged' }),
  })
  return true
}

/** `PostResetPassword` comes right after `User.Data.Updated`, before what the revocations record. */
const tellingOfReset = (recording: Recording): Recording => ({
  ...recording,
  async record(event: EventContent) {
    await recording.record(event)
    if (event.type !== 'User.Data.Updated') return
    const user = event.data as User
    const entity = { kind: 'user', id: user.id } as const
    await recording.record({ type: 'PostResetPassword', entity, data: user, extras: { userId: user.id, user } })
  },
})
