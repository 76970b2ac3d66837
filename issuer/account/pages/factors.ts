import { onlyValue } from '../../base/read-form.ts'
import {
  type FactorRow,
  type FactorType,
  qrPicture,
  registrationCredential,
  totpUri,
} from '../../directory/users/factors/index.ts'
import { deviceLabel } from '../../interaction/device-label.ts'
import {
  type AccountError,
  authenticatorPage,
  backupCodesPage,
  type FactorOnPage,
  passkeysPage,
} from '../../pages/account/index.ts'
import { isFactorEnabled } from '../verifications/factor-settings.ts'
import type { AccountAnswer, AccountPage, AccountVisit } from './account-page.ts'
import { credentialIn } from './credential.ts'
import { errorOf, statusOf } from './errors.ts'

const heldOf = async ({ operations, person }: AccountVisit, type: FactorType): Promise<FactorRow[]> =>
  (await operations.factors.list(person)).filter((row) => row.type === type)

const onPage = ({ id, name, agent, createdAt, lastUsedAt }: FactorRow): FactorOnPage => ({
  id,
  name: name ?? (deviceLabel(agent ?? undefined) || 'Passkey'),
  createdAt,
  lastUsedAt: lastUsedAt ?? undefined,
})

/** Only one of the page's own kind: the page says what is removed. */
const remove = (type: FactorType) => async (answer: AccountAnswer) => {
  const { operations, form, context, again, done } = answer
  const id = onlyValue(form, 'id') ?? ''
  // Removed meanwhile: it is as the person wants it.
  if (!(await heldOf(answer, type)).some((row) => row.id === id)) return done()
  const error = await errorOf(operations.factors.remove(context('removeMyFactor'), id))
  if (error) return again({ error })
  done('accountRemoved')
}

/** What changes something waits until the person has confirmed who they are. */
const confirmed =
  (work: (answer: AccountAnswer) => Promise<void>) =>
  async (answer: AccountAnswer): Promise<void> =>
    answer.shell.confirmPath === undefined ? work(answer) : answer.goTo(answer.shell.confirmPath)

export const passkeys: AccountPage<{ making?: { proofId: string; options: object }; error?: AccountError }> = {
  path: '/account/passkeys',
  title: 'accountPasskeys',
  group: 'signIn',
  isShown: ({ settings, experience }) => settings.passkey !== 'Off' && isFactorEnabled(experience, 'WebAuthn'),
  needsConfirmation: true,

  async show(visit, entered) {
    const held = (await heldOf(visit, 'WebAuthn')).map(onPage)
    return passkeysPage(visit.shell, { passkeys: held, isEditable: visit.settings.passkey === 'Edit', ...entered })
  },

  choices: {
    new: confirmed(async ({ operations, context, again }) => {
      const { id, options } = await operations.verifications.passkeys.registration(context('beginMyPasskey'))
      await again({ making: { proofId: id, options } }, 200)
    }),
    async passkey({ operations, person, form, context, again, done }) {
      const credential = credentialIn(form, registrationCredential)
      const id = onlyValue(form, 'proofId') ?? ''
      if (!credential) return again({ error: { message: 'accountPasskeyFailed' } })
      const adding = async () => {
        await operations.verifications.passkeys.verifyRegistration(context('verifyMyPasskey'), { id, credential })
        const name = deviceLabel(person.userAgent)
        await operations.factors.addPasskey(context('addMyFactor'), { verificationId: id, ...(name && { name }) })
      }
      const error = await errorOf(adding())
      if (error) return again({ error }, statusOf(error))
      done('accountPasskeyAdded')
    },
    async rename({ operations, form, context, again, done }) {
      const id = onlyValue(form, 'id') ?? ''
      const name = (onlyValue(form, 'name') ?? '').trim().slice(0, 128)
      if (name === '') return again({ error: { message: 'accountPasskeyNameMissing' } })
      const error = await errorOf(operations.factors.renamePasskey(context('renameMyPasskey'), { id, name }))
      if (error) return again({ error })
      done('accountSaved')
    },
    remove: remove('WebAuthn'),
  },
}

export const authenticator: AccountPage<{ secret?: string; error?: AccountError }> = {
  path: '/account/authenticator',
  title: 'accountAuthenticator',
  group: 'signIn',
  isShown: ({ settings, experience }) => settings.mfa !== 'Off' && isFactorEnabled(experience, 'Totp'),
  needsConfirmation: true,

  async show(visit, entered) {
    const { settings, experience, hostname, shell } = visit
    const [held] = (await heldOf(visit, 'Totp')).map(onPage)
    const { secret, error } = entered ?? {}
    const issuer = experience.displayName ?? hostname
    const uri = secret === undefined ? '' : totpUri({ issuer, account: shell.account.identifier, secret })
    return authenticatorPage(shell, {
      authenticator: held,
      isEditable: settings.mfa === 'Edit',
      making: secret === undefined ? undefined : { secret, uri, picture: qrPicture(uri) },
      error,
    })
  },

  choices: {
    new: confirmed(async ({ operations, context, again }) => {
      const { secret } = await operations.factors.newTotp(context('createMyTotpSecret'))
      await again({ secret }, 200)
    }),
    async verify({ operations, form, context, again, done }) {
      const secret = (onlyValue(form, 'secret') ?? '').slice(0, 128)
      const code = (onlyValue(form, 'code') ?? '').slice(0, 32)
      const missing = { message: 'factorCodeMissing', field: 'code' } as const
      const error =
        code.trim() === ''
          ? { ...missing, code: 'missing' }
          : await errorOf(operations.factors.addTotp(context('addMyFactor'), { secret, code }))
      if (!error) return done('accountAuthenticatorAdded')
      // The picture stays only while it is the one that waits: any other was never made here.
      const isKept = error.code === 'session.mfa.invalid_totp_code' || error.code === 'missing'
      await again({ ...(isKept && isBase32(secret) && { secret }), error })
    },
    remove: remove('Totp'),
  },
}

const isBase32 = (text: string): boolean => /^[A-Z2-7]{16,104}$/.test(text)

export const backupCodes: AccountPage<{ codes?: readonly string[]; error?: AccountError }> = {
  path: '/account/backup-codes',
  title: 'accountBackup',
  group: 'signIn',
  isShown: ({ settings, experience }) => settings.mfa !== 'Off' && isFactorEnabled(experience, 'BackupCode'),
  needsConfirmation: true,

  async show(visit, entered) {
    const [held] = await heldOf(visit, 'BackupCode')
    return backupCodesPage(visit.shell, {
      left: held === undefined ? undefined : Number(held.left ?? 0),
      isEditable: visit.settings.mfa === 'Edit',
      ...entered,
    })
  },

  choices: {
    new: confirmed(async ({ operations, person, context, again }) => {
      const held = await operations.factors.list(person)
      // Before they are shown, not after they have been printed.
      if (held.every(({ type }) => type === 'BackupCode')) return again({ error: { message: 'accountBackupAlone' } })
      const codes = await operations.factors.newBackupCodes(context('createMyBackupCodes'))
      await again({ codes }, 200)
    }),
    async keep({ operations, context, again, done }) {
      const error = await errorOf(operations.factors.addBackupCodes(context('addMyFactor')), {
        'verification_record.not_found': ['accountBackupOver'],
      })
      if (error) return again({ error })
      done('accountBackupAdded')
    },
  },
}
