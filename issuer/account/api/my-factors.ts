import { z } from 'zod'
import type { Route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { mfaVerification, toMfaVerification } from '../../directory/users/factors/mfa-verification.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute, editProblems, reauthenticatedProblems } from './route.ts'

const path = '/my-account/mfa-verifications'
const code = z.string().min(1).max(32)
const name = z.string().trim().min(1).max(128)

const newFactor = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Totp'), secret: z.string().min(1).max(128).optional(), code }),
  z.object({ type: z.literal('BackupCode'), codes: z.array(z.string().max(64)).max(32).optional() }),
  z.object({ type: z.literal('WebAuthn'), newIdentifierVerificationRecordId: id, name: name.optional() }),
])

export const totpSecret = z.object({ secret: z.string(), secretQrCode: z.string() })
export const backupCodes = z.object({ codes: z.array(z.string()) })

/** With what one proves who one is, beside the password. All need the scope `identities`. */
export const myFactorRoutes = ({ factors }: AccountOperations): Route[] => [
  accountRoute({
    method: 'GET',
    path,
    operationId: 'listMyFactors',
    summary: 'Lists the factors, without anything secret.',
    status: 200,
    response: z.array(mfaVerification),
    problems: ['account_center.not_enabled', 'account_center.field_not_enabled'],
    handle: async ({ person }) => ({ body: (await factors.list(person)).map(toMfaVerification) }),
  }),
  accountRoute({
    method: 'POST',
    path,
    operationId: 'addMyFactor',
    summary: 'Adds an authenticator app, backup codes or a passkey that were made before. Needs a verification.',
    body: newFactor,
    status: 204,
    problems: [
      ...reauthenticatedProblems,
      'session.mfa.mfa_factor_not_enabled',
      'session.mfa.invalid_totp_code',
      'session.mfa.backup_code_can_not_be_alone',
      'user.totp_already_in_use',
      'user.totp_secret_invalid',
      'user.passkey_already_in_use',
      'verification_record.not_found',
    ],
    handle(call) {
      const { body } = call
      if (body.type === 'Totp') return factors.addTotp(call, body)
      if (body.type === 'BackupCode') return factors.addBackupCodes(call, body.codes)
      return factors.addPasskey(call, { verificationId: body.newIdentifierVerificationRecordId, name: body.name })
    },
  }),
  accountRoute({
    method: 'POST',
    path: `${path}/totp-secret/generate`,
    operationId: 'createMyTotpSecret',
    summary: 'Makes the secret of a new authenticator app; it waits ten minutes for its first code.',
    status: 200,
    response: totpSecret,
    problems: [...editProblems, 'session.mfa.mfa_factor_not_enabled'],
    async handle(call) {
      const { secret, dataUrl } = await factors.newTotp(call)
      return { body: { secret, secretQrCode: dataUrl } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: `${path}/backup-codes/generate`,
    operationId: 'createMyBackupCodes',
    summary: 'Makes backup codes, which are shown only here; they wait ten minutes to be added.',
    status: 200,
    response: backupCodes,
    problems: [...editProblems, 'session.mfa.mfa_factor_not_enabled'],
    handle: async (call) => ({ body: { codes: await factors.newBackupCodes(call) } }),
  }),
  accountRoute({
    method: 'PATCH',
    path: `${path}/:verificationId/name`,
    operationId: 'renameMyPasskey',
    summary: 'Names a passkey. Needs a verification.',
    params: z.object({ verificationId: id }),
    body: z.object({ name }),
    status: 200,
    problems: [...reauthenticatedProblems, 'entity.not_found'],
    handle: (call) => factors.renamePasskey(call, { id: call.params.verificationId, name: call.body.name }),
  }),
  accountRoute({
    method: 'DELETE',
    path: `${path}/:verificationId`,
    operationId: 'removeMyFactor',
    summary: 'Removes a factor, and signs the person out everywhere else. Needs a verification.',
    params: z.object({ verificationId: id }),
    status: 204,
    problems: [...reauthenticatedProblems, 'entity.not_found', 'user.last_sign_in_method_required'],
    handle: (call) => factors.remove(call, call.params.verificationId),
  }),
]
