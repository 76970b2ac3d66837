/** What is known of the person whom an interaction is about, as far as it decides what comes next. */
export interface PersonFacts {
  id: string
  isSuspended: boolean
  hasPassword: boolean
  /** The password has to be replaced before anything else. */
  isPasswordExpired: boolean
  hasUsername: boolean
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
  /** An organization that the person belongs to asks its members for a second factor. */
  isMfaRequired: boolean
}

/** Second factors by the names of the settings; what each is proven with, and who has it. */
export const secondFactors = {
  WebAuthn: { proof: 'passkey', isHeld: ({ passkeys }: PersonFacts) => passkeys > 0 },
  Totp: { proof: 'totp', isHeld: ({ hasTotp }: PersonFacts) => hasTotp },
  PhoneVerificationCode: { proof: 'phone_code', isHeld: ({ hasPhone }: PersonFacts) => hasPhone },
  EmailVerificationCode: { proof: 'email_code', isHeld: ({ hasEmail }: PersonFacts) => hasEmail },
  BackupCode: { proof: 'backup_code', isHeld: ({ backupCodes }: PersonFacts) => backupCodes > 0 },
} as const

export type SecondFactor = keyof typeof secondFactors
export const secondFactorNames = Object.keys(secondFactors) as SecondFactor[]
