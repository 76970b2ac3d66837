import type { Transaction } from '../../platform/database/database.ts'

/** A factor, by its name of the settings. */
export type NoticedFactor = 'Totp' | 'WebAuthn' | 'BackupCode' | 'EmailVerificationCode' | 'PhoneVerificationCode'

/** What the owner of an account must know, whoever did it. No request and no setting of a person suppresses it. */
export type OwnerNotice =
  | { type: 'PasswordChanged' }
  | { type: 'FactorAdded' | 'FactorRemoved'; factor: NoticedFactor }
  /** An identity at a provider, by the name that people know. */
  | { type: 'IdentityLinked' | 'IdentityUnlinked'; provider: string }
  /** What is known of the browser. */
  | { type: 'NewDevice'; device: string }
  /** How many can still be used. */
  | { type: 'BackupCodeUsed'; left: number }
  /** Goes to the address that was replaced, on its channel. `address`: the new one; null: there is none. */
  | { type: 'AddressChanged'; from: { channel: 'email' | 'sms'; to: string }; address: string | null }
  /** `link`: where they allow or refuse it. */
  | { type: 'ImpersonationRequested'; actor: string; reason: string | null; number: string; link: string }
  | { type: 'ImpersonationStarted'; actor: string; reason: string | null }
  | { type: 'ImpersonationEnded'; actor: string }

/** The person, as far as notices need it. A row of `users` is one. */
export interface NoticedOwner {
  id: string
  primary_email: string | null
  primary_phone: string | null
  profile?: { locale?: string | undefined }
}

/** Where it was done, as far as that is known. */
export interface NoticeCircumstances {
  /** BCP 47, of the browser. Default: that of the person's profile. */
  locale?: string | undefined
  ip?: string | undefined
}

/**
 * Tells an owner, in the transaction of what it tells. To the address that is known to be the person's, mail before
 * telephone; to nobody where there is neither, or nothing that sends. Call it before revocations are written
 * (`revoke`).
 */
export type NotifyOwner = (
  trx: Transaction,
  owner: NoticedOwner,
  notice: OwnerNotice,
  circumstances?: NoticeCircumstances,
) => Promise<void>

type Addresses = Pick<NoticedOwner, 'primary_email' | 'primary_phone'>

/** The notices that are due to those who had an address that is another one now. */
export const addressNotices = (before: Addresses, after: Addresses): OwnerNotice[] =>
  (
    [
      ['email', before.primary_email, after.primary_email],
      ['sms', before.primary_phone, after.primary_phone],
    ] as const
  ).flatMap(([channel, old, address]): OwnerNotice[] =>
    old === null || old === address ? [] : [{ type: 'AddressChanged', from: { channel, to: old }, address }],
  )
