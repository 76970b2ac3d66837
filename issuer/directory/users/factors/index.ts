/**
 * The factors of a person beside the password, below every interaction: what they are, how each is proven, and the rows
 * that they are. Who may be asked for which, how often one may fail, and what is told of it is decided above.
 *
 * To bind: options or a secret → what the person shows is verified, purely → `Factors.bind…` in the transaction that
 * records it.
 * To prove: `availableFactors` → options with a challenge that is used up at the first answer → verified, purely →
 * `Factors.use…`, one conditional update that settles what happens at the same time.
 */

// Backup codes.
export { newBackupCodes } from './backup-codes.ts'
// What a person has.
export {
  type AvailableFactors,
  availableFactors,
  availableFactorsColumns,
  type FactorRow,
  type FactorType,
  hasOwnFactor,
  listFactors,
} from './factor-store.ts'
// Binding, using and removing.
export { createFactors, endAfterRemoval, type FactorDependencies, type Factors, newUserHandle } from './factors.ts'
// Passkeys: their rows, and the two ceremonies of WebAuthn as pure functions.
export { findPasskey, findUserHandle, listCredentials, type Passkey, renamePasskey } from './passkey-store.ts'
// Authenticator apps (TOTP).
export { matchingStep, newTotpSecret, qrDataUrl, qrPicture, qrSvg, readTotpSecret, totpUri } from './totp.ts'
export {
  type Assertion,
  type AuthenticationOptions,
  authenticationOptions,
  type StoredCredential,
  verifyAuthentication,
} from './webauthn/authentication.ts'
export { type Expected, type RelyingParty, relyingPartyOf } from './webauthn/client-data.ts'
export {
  type AuthenticationCredential,
  authenticationCredential,
  presentedCredentialId,
  type RegistrationCredential,
  registrationCredential,
} from './webauthn/credential-json.ts'
export type { KnownCredential } from './webauthn/descriptors.ts'
export { plausibleCredentials } from './webauthn/plausible-credentials.ts'
export { type Judgement, type PasskeyRefusal, passkeyRefusals } from './webauthn/refusal.ts'
export {
  type NewCredential,
  type NewOwner,
  type RegistrationOptions,
  registrationOptions,
  verifyRegistration,
} from './webauthn/registration.ts'
