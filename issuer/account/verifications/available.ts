import type { Query } from '../../../platform/database/database.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { availableFactors } from '../../directory/users/factors/index.ts'
import { findPassword } from '../../interaction/person-store.ts'
import type { ProofKindName } from '../../interaction/proofs.ts'
import type { AddressType } from './codes.ts'
import { isFactorEnabled } from './factor-settings.ts'

/** With what this person can prove now who they are, the strongest first. `sends`: where codes can be sent to. */
export const availableVerifications = async (
  query: Query,
  userId: string,
  experience: SignInExperience,
  sends: (type: AddressType) => boolean,
): Promise<ProofKindName[]> => {
  const held = await availableFactors(query, userId)
  if (!held) return []
  const { totp, passkeys, backupCodes, email, phone } = held
  const rows: [ProofKindName, boolean][] = [
    ['passkey', passkeys > 0 && isFactorEnabled(experience, 'WebAuthn')],
    ['password', (await findPassword(query, userId)) !== undefined],
    ['totp', totp && isFactorEnabled(experience, 'Totp')],
    ['email_code', email !== null && sends('email')],
    ['phone_code', phone !== null && sends('phone')],
    ['backup_code', backupCodes > 0 && isFactorEnabled(experience, 'BackupCode')],
  ]
  return rows.filter(([, isAvailable]) => isAvailable).map(([kind]) => kind)
}
