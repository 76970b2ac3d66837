import { z } from 'zod'
import type { ProblemCode } from '../../base/errors/problems.ts'
import type { Route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import { authenticationCredential, registrationCredential } from '../../directory/users/factors/index.ts'
import { password } from '../../directory/users/user.ts'
import type { AccountOperations } from '../operations/index.ts'
import type { VerificationId } from '../verification-store.ts'
import { accountRoute } from './route.ts'

const code = z.string().min(1).max(32)
const identifier = z.object({ type: z.enum(['email', 'phone']), value: z.string().trim().min(1).max(256) })

/** `expiresAt` in ISO 8601, as existing clients know it. */
export const begunVerification = z.object({ verificationRecordId: id, expiresAt: z.string() })
export const verifiedVerification = z.object({ verificationRecordId: id })
export const registrationVerification = begunVerification.extend({ registrationOptions: jsonObject })
export const authenticationVerification = begunVerification.extend({ authenticationOptions: jsonObject })

const toBegun = ({ id, expiresAt }: VerificationId) => ({
  verificationRecordId: id,
  expiresAt: expiresAt.toISOString(),
})

const attempted: readonly ProblemCode[] = ['session.verification_blocked_too_many_attempts', 'rate_limit.exceeded']
const ofFactor: readonly ProblemCode[] = ['session.mfa.mfa_factor_not_enabled']
const ofCodes: readonly ProblemCode[] = [
  'verification_code.not_found',
  'verification_code.code_mismatch',
  'verification_code.email_mismatch',
  'verification_code.phone_mismatch',
  'verification_code.expired',
  'verification_code.exceed_max_try',
  'session.verification_failed',
]
const failedPasskey: readonly ProblemCode[] = [
  'session.mfa.webauthn_verification_failed',
  'verification_record.not_found',
]

/**
 * What a person proves before a change: who they are (named in `logto-verification-id`, ten minutes), or that a new
 * address or passkey is theirs. Each counts only with the tokens of the authorization that it was made with.
 */
export const verificationRoutes = ({ verifications }: AccountOperations): Route[] => [
  accountRoute({
    method: 'POST',
    path: '/verifications/password',
    operationId: 'verifyMyPassword',
    summary: 'Proves by the password who it is.',
    body: z.object({ password }),
    status: 201,
    response: begunVerification,
    problems: ['session.invalid_credentials', ...attempted],
    handle: async (call) => ({ body: toBegun(await verifications.password(call, call.body.password)) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/totp',
    operationId: 'verifyMyTotp',
    summary: 'Proves by a code of the authenticator app who it is.',
    body: z.object({ code }),
    status: 201,
    response: begunVerification,
    problems: [...ofFactor, 'session.mfa.invalid_totp_code', ...attempted],
    handle: async (call) => ({ body: toBegun(await verifications.totp(call, call.body.code)) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/backup-code',
    operationId: 'verifyMyBackupCode',
    summary: 'Proves by a backup code, which is used up, who it is.',
    body: z.object({ code: z.string().min(1).max(64) }),
    status: 201,
    response: begunVerification,
    problems: [...ofFactor, 'session.mfa.invalid_backup_code', ...attempted],
    handle: async (call) => ({ body: toBegun(await verifications.backupCode(call, call.body.code)) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/verification-code',
    operationId: 'sendMyVerificationCode',
    summary: 'Sends a code: to the own address to prove who it is, to another to prove that it is theirs too.',
    body: z.object({ identifier }),
    status: 201,
    response: begunVerification,
    problems: [
      'request.message_rate_limited',
      'connector.not_found',
      'session.email_blocklist.email_not_allowed',
      'session.email_blocklist.email_subaddressing_not_allowed',
    ],
    handle: async (call) => ({ body: toBegun(await verifications.codes.send(call, call.body.identifier)) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/verification-code/verify',
    operationId: 'verifyMyVerificationCode',
    summary: 'Proves it by the code.',
    body: z.object({ identifier, verificationId: id, code }),
    status: 200,
    response: verifiedVerification,
    problems: [...ofCodes, ...attempted],
    async handle(call) {
      const { verificationId, ...answer } = call.body
      const done = await verifications.codes.verify(call, { ...answer, id: verificationId })
      return { body: { verificationRecordId: done.id } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/web-authn/registration',
    operationId: 'createMyPasskeyRegistration',
    summary: 'Asks the browser for a new passkey. For pages of the issuer itself: a passkey belongs to its domain.',
    status: 200,
    response: registrationVerification,
    problems: ofFactor,
    async handle(call) {
      const { options: registrationOptions, ...begun } = await verifications.passkeys.registration(call)
      return { body: { ...toBegun(begun), registrationOptions } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/web-authn/registration/verify',
    operationId: 'verifyMyPasskeyRegistration',
    summary: 'Takes the new passkey; it waits to be added.',
    body: z.object({ verificationRecordId: id, payload: registrationCredential }),
    status: 200,
    response: verifiedVerification,
    problems: [...ofFactor, ...failedPasskey],
    async handle(call) {
      const { verificationRecordId, payload: credential } = call.body
      await verifications.passkeys.verifyRegistration(call, { id: verificationRecordId, credential })
      return { body: { verificationRecordId } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/web-authn/authentication',
    operationId: 'createMyPasskeyAuthentication',
    summary: 'Asks the browser for a passkey of the person.',
    status: 200,
    response: authenticationVerification,
    problems: ofFactor,
    async handle(call) {
      const { options: authenticationOptions, ...begun } = await verifications.passkeys.authentication(call)
      return { body: { ...toBegun(begun), authenticationOptions } }
    },
  }),
  accountRoute({
    method: 'POST',
    path: '/verifications/web-authn/authentication/verify',
    operationId: 'verifyMyPasskeyAuthentication',
    summary: 'Proves by the passkey who it is.',
    body: z.object({ verificationRecordId: id, payload: authenticationCredential }),
    status: 200,
    response: verifiedVerification,
    problems: [...ofFactor, ...failedPasskey, ...attempted],
    async handle(call) {
      const { verificationRecordId, payload: credential } = call.body
      await verifications.passkeys.verifyAuthentication(call, { id: verificationRecordId, credential })
      return { body: { verificationRecordId } }
    },
  }),
]
