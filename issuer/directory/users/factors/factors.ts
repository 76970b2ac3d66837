import { randomBytes } from 'node:crypto'
import type { Query, Transaction } from '../../../../platform/database/database.ts'
import type { Envelope } from '../../../../platform/envelope.ts'
import { newId } from '../../../../platform/ids.ts'
import { notFound } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { Hmac } from '../../../base/hmac-keys-store.ts'
import type { Recording } from '../../../base/recording.ts'
import { endAllOfUser } from '../../../tokens/authorizations/end.ts'
import { forgetDevices } from '../../../tokens/sessions/known-device-store.ts'
import { replaceBackupCodeRows, useBackupCodeRow } from './backup-code-store.ts'
import { newBackupCodes, readBackupCode } from './backup-codes.ts'
import { holdOwner } from './factor-owner-store.ts'
import { deleteFactor, type FactorType } from './factor-store.ts'
import { insertPasskey, recordPasskeyUse } from './passkey-store.ts'
import { matchingStep, readTotpSecret } from './totp.ts'
import { findTotp, insertTotp, totpSecretContext, useTotpStep } from './totp-store.ts'
import type { Assertion } from './webauthn/authentication.ts'
import type { NewCredential } from './webauthn/registration.ts'

export interface FactorDependencies {
  envelope: Envelope
  hmac: Hmac
}

/** What authenticators are to know a person by who has no handle yet. */
export const newUserHandle = (): Buffer => randomBytes(32)

export interface Factors {
  /**
   * The person gets this secret (base32). `confirmedStep` is the step of the code that the person has shown
   * (`matchingStep`), which so is used up; absent when it is handed out unseen. Answers the id. Throws 422
   * `user.totp_already_in_use`, `user.totp_secret_invalid`.
   */
  bindTotp(trx: Transaction, totp: { userId: string; secret: string; confirmedStep?: number }): Promise<string>
  /**
   * The person gets the passkey that `verifyRegistration` found good; `userHandle` stood in its options. Answers the
   * id. Throws 409 `user.passkey_already_in_use`.
   */
  bindPasskey(
    trx: Transaction,
    passkey: { userId: string; userHandle: Buffer; credential: NewCredential; name?: string; agent?: string },
  ): Promise<string>
  /** Ten codes instead of those there are, which are void. They are to be shown now: nobody can read them again. */
  replaceBackupCodes(trx: Transaction, userId: string): Promise<string[]>
  /** The same with codes of `newBackupCodes` that the person was shown before. */
  keepBackupCodes(trx: Transaction, userId: string, codes: readonly string[]): Promise<void>
  /** Answers what it was. Throws 404 `entity.not_found`. `endAfterRemoval` has to follow. */
  removeFactor(trx: Transaction, factor: { userId: string; factorId: string }): Promise<FactorType>
  /** A code of the person's authenticator app, which is good once. Answers the id of the factor. */
  useTotp(query: Query, totp: { userId: string; code: string; now: Date }): Promise<string | undefined>
  /** A backup code of the person, which is good once. Answers the id of the factor. */
  useBackupCode(transaction: Transaction, backupCode: { userId: string; code: string }): Promise<string | undefined>
  /** After `verifyAuthentication`. False is the refusal `counter_not_increased`. */
  usePasskey(transaction: Transaction, id: string, assertion: Assertion): Promise<boolean>
}

/**
 * The factors of people. What binds or removes one works in the caller's transaction, in which the caller records
 * `User.Data.Updated`; to use one is no change of the user, and no event.
 */
export const createFactors = ({ envelope, hmac }: FactorDependencies): Factors => {
  const digestOf = (userId: string, code: string) => hmac('backup-codes', userId, code)

  const keepBackupCodes: Factors['keepBackupCodes'] = async (trx, userId, codes) => {
    const digests = codes.map((code) => digestOf(userId, readBackupCode(code)!))
    await holdOwner(trx, userId)
    await replaceBackupCodeRows(trx, { userId, setId: newId(), digests })
  }

  return {
    async bindTotp(trx, { userId, secret, confirmedStep }) {
      const bytes = readTotpSecret(secret)
      if (bytes === undefined) throw problem('user.totp_secret_invalid')
      await holdOwner(trx, userId)
      const id = newId()
      const sealed = envelope.seal(bytes, totpSecretContext(userId))
      const isNew = await insertTotp(trx, { id, userId, sealed, confirmedStep: confirmedStep ?? null })
      if (!isNew) throw problem('user.totp_already_in_use')
      return id
    },

    async bindPasskey(trx, { userId, userHandle, credential, name, agent }) {
      await holdOwner(trx, userId)
      const id = newId()
      const isNew = await insertPasskey(trx, { id, userId, userHandle, credential, name, agent })
      if (!isNew) throw problem('user.passkey_already_in_use')
      return id
    },

    async replaceBackupCodes(trx, userId) {
      const codes = newBackupCodes()
      await keepBackupCodes(trx, userId, codes)
      return codes
    },

    keepBackupCodes,

    async removeFactor(trx, { userId, factorId }) {
      await holdOwner(trx, userId)
      const type = await deleteFactor(trx, userId, factorId)
      if (type === undefined) throw notFound(factorId)
      return type
    },

    async useTotp(query, { userId, code, now }) {
      const stored = await findTotp(query, userId)
      if (stored === undefined) return undefined
      const step = matchingStep(envelope.open(stored.sealed, totpSecretContext(userId)), code, now)
      return step !== undefined && (await useTotpStep(query, stored.id, step)) ? stored.id : undefined
    },

    async useBackupCode(transaction, { userId, code: typed }) {
      const code = readBackupCode(typed)
      return code === undefined ? undefined : useBackupCodeRow(transaction, userId, digestOf(userId, code))
    },

    usePasskey: recordPasskeyUse,
  }
}

/**
 * What ends with a factor: every session and authorization but for the session that removed it, and that browsers are
 * known. The last thing in the transaction (see `revoke`).
 */
export const endAfterRemoval = async (
  recording: Recording,
  { userId, endedBy, exceptSessionId }: { userId: string; endedBy: string; exceptSessionId?: string },
): Promise<void> => {
  await forgetDevices(recording.trx, userId)
  await endAllOfUser(recording, { userId, reason: 'factor_removed', endedBy, exceptSessionId })
}
