import { timingSafeEqual } from 'node:crypto'
import type { Database } from '../../../platform/database/database.ts'
import { queryOf } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { newId } from '../../../platform/ids.ts'
import { sha256 } from '../../../platform/secret.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutation } from '../../base/mutate.ts'
import type { NotifyOwner } from '../../base/owner-notices.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import {
  availableFactors,
  endAfterRemoval,
  type FactorRow,
  type Factors,
  type FactorType,
  listFactors,
  matchingStep,
  newBackupCodes,
  newTotpSecret,
  qrDataUrl,
  qrSvg,
  readTotpSecret,
  renamePasskey,
  totpUri,
} from '../../directory/users/factors/index.ts'
import type { UserRow } from '../../directory/users/user.ts'
import { updateUser } from '../../directory/users/user-store.ts'
import { openFactor, pendingBackupCodes, pendingPasskey, pendingTotp, sealFactor } from '../../interaction/bindings.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { type ChangeAccount, noLongerSignedIn, recordUser, requireEditable, requireReadable } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import { type AccountField, requireField } from '../settings.ts'
import {
  beginVerification,
  completeVerification,
  findWaitingVerification,
  takeVerificationTry,
  useVerification,
} from '../verification-store.ts'
import { requireFactorEnabled } from '../verifications/factor-settings.ts'
import { keepingAWayIn } from './ways-in.ts'

export interface NewTotpSecret {
  /** Base32. */
  secret: string
  uri: string
  /** Inline SVG. */
  svg: string
  dataUrl: string
}

/** What a person proves who they are with, beside the password. */
export interface FactorOperations {
  /** The oldest first. */
  list(person: AccountPerson): Promise<FactorRow[]>
  /** A secret for an authenticator app, to be confirmed by a code within ten minutes. */
  newTotp(context: AccountContext): Promise<NewTotpSecret>
  /**
   * The person gets the authenticator app whose secret was made last here (`secret`, where it is given, must be that
   * one). Five tries. Throws 400 `session.mfa.invalid_totp_code`, 422 `user.totp_secret_invalid` when none waits.
   */
  addTotp(context: AccountContext, answer: { secret?: string | undefined; code: string }): Promise<void>
  /** Ten codes, to be shown once, and kept by `addBackupCodes` within ten minutes. */
  newBackupCodes(context: AccountContext): Promise<string[]>
  /** Those made last here, instead of those there are. Throws 422 when there is no other factor. */
  addBackupCodes(context: AccountContext, codes?: readonly string[]): Promise<void>
  /** After `passkeys.verifyRegistration`. Throws 409 when somebody has it. */
  addPasskey(context: AccountContext, passkey: { verificationId: string; name?: string | undefined }): Promise<void>
  renamePasskey(context: AccountContext, passkey: { id: string; name: string }): Promise<void>
  /** Who signed in elsewhere is signed out there; this session goes on. */
  remove(context: AccountContext, factorId: string): Promise<void>
}

const fieldOf: Readonly<Record<FactorType, AccountField>> = { Totp: 'mfa', BackupCode: 'mfa', WebAuthn: 'passkey' }
const scopes = ['identities']
const waitSeconds = 600
const totpTries = 5

export const createFactorOperations = ({
  database: { query },
  change,
  envelope,
  factors,
  notifyOwner,
  settings,
  baseUrl,
  now,
}: {
  database: Pick<Database, 'query'>
  change: ChangeAccount
  envelope: Envelope
  factors: Factors
  notifyOwner: NotifyOwner
  settings: Pick<Settings, 'experience'>
  baseUrl: string
  now: () => Date
}): FactorOperations => {
  const editing = (type: FactorType) => ({ fields: [fieldOf[type]], scopes })
  const changing = (type: FactorType) => ({ ...editing(type), reauthenticated: true })

  /** A secret that waits under the holder, sealed; the one before is void. */
  const keepWaiting = async (person: AccountPerson, kind: 'totp' | 'backup_code', factor: object) => {
    const id = newId()
    const data = { factor: sealFactor(envelope, id, factor) }
    const begun = await beginVerification(query, { id, person, kind, purpose: 'bind', data, seconds: waitSeconds })
    if (!begun) throw noLongerSignedIn()
  }

  const record = async (mutation: Mutation, { id }: UserRow): Promise<UserRow> => {
    const after = await updateUser(mutation.trx, id, {})
    await recordUser(mutation, after)
    return after
  }

  const added = async ({ person }: AccountContext, mutation: Mutation, owner: UserRow, factor: FactorType) => {
    mutation.note({ userId: owner.id, details: { factor } })
    await record(mutation, owner)
    await notifyOwner(mutation.trx, owner, { type: 'FactorAdded', factor }, { ip: person.ip })
  }

  return {
    async list(person) {
      const control = await requireReadable(query, person, { fields: [], scopes })
      const shown = (await listFactors(query, person.userId)).filter(({ type }) => control[fieldOf[type]] !== 'Off')
      if (control.mfa === 'Off' && control.passkey === 'Off') requireField(control, 'mfa', 'ReadOnly')
      return shown
    },

    async newTotp({ person }) {
      requireFactorEnabled(settings.experience(), 'Totp')
      await requireEditable(query, person, editing('Totp'))
      const account = await findAccount(query, person.userId)
      if (!account) throw noLongerSignedIn()
      const secret = newTotpSecret()
      await keepWaiting(person, 'totp', { secret })
      const issuer = settings.experience().displayName ?? new URL(baseUrl).hostname
      const uri = totpUri({ issuer, account: account.identifier, secret })
      return { secret, uri, svg: qrSvg(uri), dataUrl: qrDataUrl(uri) }
    },

    async addTotp(context, { secret: given, code }) {
      const { person } = context
      requireFactorEnabled(settings.experience(), 'Totp')
      // Before the code is used up.
      await requireEditable(query, person, changing('Totp'))
      const asked = { kinds: ['totp'], purpose: 'bind' } as const
      const waiting = await findWaitingVerification(query, person, asked)
      const taken = waiting && (await takeVerificationTry(query, person, { ...asked, id: waiting.id, most: totpTries }))
      if (taken === undefined || taken === 'exceeded') throw problem('user.totp_secret_invalid')
      const { secret } = openFactor(envelope, pendingTotp, taken)
      if (given !== undefined && !isSame(given, secret)) throw problem('user.totp_secret_invalid')
      const confirmedStep = matchingStep(readTotpSecret(secret)!, code, now())
      if (confirmedStep === undefined) throw problem('session.mfa.invalid_totp_code')
      await change(context, changing('Totp'), async (mutation, row) => {
        const { id } = taken
        await completeVerification(mutation.trx, person, { id, data: {}, seconds: waitSeconds })
        const used = await useVerification(mutation.trx, person, { id, kinds: asked.kinds })
        if (!used) throw problem('user.totp_secret_invalid')
        await factors.bindTotp(mutation.trx, { userId: row.id, secret, confirmedStep })
        await added(context, mutation, row, 'Totp')
      })
    },

    async newBackupCodes({ person }) {
      requireFactorEnabled(settings.experience(), 'BackupCode')
      await requireEditable(query, person, editing('BackupCode'))
      const codes = newBackupCodes()
      await keepWaiting(person, 'backup_code', { codes })
      return codes
    },

    addBackupCodes(context, given) {
      const { person } = context
      requireFactorEnabled(settings.experience(), 'BackupCode')
      return change(context, changing('BackupCode'), async (mutation, row) => {
        const { trx } = mutation
        const asked = { kinds: ['backup_code'], purpose: 'bind' } as const
        const waiting = await findWaitingVerification(trx, person, asked)
        const done = waiting && { id: waiting.id, data: {}, seconds: waitSeconds }
        const used =
          done &&
          (await completeVerification(trx, person, done)) &&
          (await useVerification(trx, person, { ...asked, ...done }))
        const codes = used ? openFactor(envelope, pendingBackupCodes, used).codes : undefined
        if (!codes || (given !== undefined && !isSame(given.join(), codes.join())))
          throw problem('verification_record.not_found')
        const { totp, passkeys } = (await availableFactors(queryOf(trx), row.id))!
        if (!totp && passkeys === 0) throw problem('session.mfa.backup_code_can_not_be_alone')
        await factors.keepBackupCodes(trx, row.id, codes)
        await added(context, mutation, row, 'BackupCode')
      })
    },

    addPasskey(context, { verificationId: id, name }) {
      requireFactorEnabled(settings.experience(), 'WebAuthn')
      return change(context, changing('WebAuthn'), async (mutation, row) => {
        const used = await useVerification(mutation.trx, context.person, { id, kinds: ['passkey'] })
        if (!used) throw problem('verification_record.not_found')
        const { userHandle, credential, agent } = openFactor(envelope, pendingPasskey, used)
        if (!credential) throw problem('verification_record.not_found')
        const handle = Buffer.from(userHandle, 'base64url')
        await factors.bindPasskey(mutation.trx, {
          ...{ userId: row.id, userHandle: handle, credential },
          ...(name !== undefined && { name }),
          ...(agent !== undefined && { agent }),
        })
        await added(context, mutation, row, 'WebAuthn')
      })
    },

    renamePasskey: (context, { id, name }) =>
      change(context, changing('WebAuthn'), async (mutation, row) => {
        const held = (await listFactors(queryOf(mutation.trx), row.id)).find((factor) => factor.id === id)
        if (held?.type !== 'WebAuthn') throw problem('entity.not_found', { data: { id } })
        if (held.name === name) return
        await renamePasskey(mutation.trx, { userId: row.id, id, name })
        await record(mutation, row)
      }),

    async remove(context, factorId) {
      const { person } = context
      const held = (await listFactors(query, person.userId)).find(({ id }) => id === factorId)
      if (!held) throw problem('entity.not_found', { data: { id: factorId } })
      await change(context, changing(held.type), async (mutation, row) => {
        const { type: factor } = held
        await keepingAWayIn(mutation.trx, row, settings.experience(), async () => {
          await factors.removeFactor(mutation.trx, { userId: row.id, factorId })
          return record(mutation, row)
        })
        mutation.note({ userId: row.id, details: { factor } })
        await notifyOwner(mutation.trx, row, { type: 'FactorRemoved', factor }, { ip: person.ip })
        await endAfterRemoval(mutation, { userId: row.id, endedBy: row.id, exceptSessionId: person.sessionId })
      })
    },
  }
}

/** In constant time, whatever the lengths. */
const isSame = (given: string, wanted: string): boolean => timingSafeEqual(sha256(given), sha256(wanted))
