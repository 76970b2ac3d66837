import { identificationRoutes } from './identification.ts'
import { interactionRoutes } from './interaction.ts'
import { mfaRoutes } from './mfa.ts'
import { profileRoutes } from './profile.ts'
import { submitRoutes } from './submit.ts'
import { backupCodeRoutes } from './verification-backup-codes.ts'
import { codeRoutes } from './verification-codes.ts'
import { federationRoutes } from './verification-federated.ts'
import { oneTimeTokenRoutes } from './verification-one-time-tokens.ts'
import { passkeyRoutes } from './verification-passkeys.ts'
import { passwordRoutes } from './verification-password.ts'
import { totpRoutes } from './verification-totp.ts'

/** The Experience API in Logto's shapes, in the order in which pages call it. */
export const experienceRoutes = [
  // What it is for, and what is due.
  ...interactionRoutes,
  // Proving something: each answers `{verificationId}`.
  ...passwordRoutes,
  ...codeRoutes,
  ...totpRoutes,
  ...backupCodeRoutes,
  ...passkeyRoutes,
  ...oneTimeTokenRoutes,
  ...federationRoutes,
  // Saying for whom it was proven.
  ...identificationRoutes,
  // What they are to become.
  ...profileRoutes,
  ...mfaRoutes,
  // All of it in one transaction.
  ...submitRoutes,
]
