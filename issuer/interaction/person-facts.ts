import type { MfaFactor } from '../directory/sign-in-experience/sign-in-experience.ts'
import type { ProofKindName } from './proofs.ts'

/** What is known of the person whom an interaction is about, as far as it decides what comes next. */
export interface PersonFacts {
  id: string
  isSuspended: boolean
  hasPassword: boolean
  /** The password has to be replaced before anything else. */
  isPasswordExpired: boolean
  hasUsername: boolean
  /** At an identity provider. */
  hasIdentity: boolean
  /** Verified. */
  hasEmail: boolean
  /** Verified. */
  hasPhone: boolean
  hasTotp: boolean
  passkeys: number
  /** Those not used yet. */
  backupCodes: number
  /** The person put off adding a second factor before. */
  hasSkippedMfa: boolean
  /** The person said lately that they do not want a passkey now. */
  hasSkippedPasskey: boolean
  /** Ids of the person's organizations that ask their members for a second factor. */
  mfaOrganizations: readonly string[]
}

type HeldFacts = Pick<PersonFacts, 'passkeys' | 'hasTotp' | 'hasPhone' | 'hasEmail' | 'backupCodes'>

interface SecondFactorRow {
  /** The kind of proof. */
  proof: ProofKindName
  isHeld(person: HeldFacts): boolean
}

/** Second factors by the names of the settings; the better first. */
export const secondFactors = {
  WebAuthn: { proof: 'passkey', isHeld: ({ passkeys }: HeldFacts) => passkeys > 0 },
  Totp: { proof: 'totp', isHeld: ({ hasTotp }: HeldFacts) => hasTotp },
  PhoneVerificationCode: { proof: 'phone_code', isHeld: ({ hasPhone }: HeldFacts) => hasPhone },
  EmailVerificationCode: { proof: 'email_code', isHeld: ({ hasEmail }: HeldFacts) => hasEmail },
  BackupCode: { proof: 'backup_code', isHeld: ({ backupCodes }: HeldFacts) => backupCodes > 0 },
} as const satisfies Record<MfaFactor, SecondFactorRow>

export type SecondFactor = MfaFactor
export const secondFactorNames = Object.keys(secondFactors) as SecondFactor[]

/** Whether the person has what a proof of this kind is made with. */
export const canProve = (
  kind: ProofKindName,
  person: HeldFacts & Pick<PersonFacts, 'hasPassword' | 'hasIdentity'>,
): boolean => {
  if (kind === 'password') return person.hasPassword
  if (kind === 'federated') return person.hasIdentity
  return secondFactorNames.some((name) => secondFactors[name].proof === kind && secondFactors[name].isHeld(person))
}
