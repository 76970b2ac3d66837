import { z } from 'zod'
import { type Route, route } from '../../../base/route.ts'
import { id } from '../../../base/schemas.ts'
import { createdMfaVerification, mfaVerification, newMfaVerification } from './mfa-verification.ts'
import { type MfaVerificationDependencies, mfaVerificationOperations } from './operations.ts'

const params = z.object({ userId: id })
const atVerification = params.extend({ verificationId: id })

/** What people prove who they are with beside the password, for administrators. */
export const mfaVerificationsRoutes = (dependencies: MfaVerificationDependencies): Route[] => {
  const verifications = mfaVerificationOperations(dependencies)
  return [
    route({
      method: 'GET',
      path: '/users/:userId/mfa-verifications',
      operationId: 'listUserMfaVerifications',
      summary: 'Lists the factors of a user, without anything secret.',
      scope: 'users',
      params,
      status: 200,
      response: z.array(mfaVerification),
      problems: ['entity.not_found'],
      handle: async ({ params: { userId } }) => ({ body: await verifications.list(userId) }),
    }),
    route({
      method: 'POST',
      path: '/users/:userId/mfa-verifications',
      operationId: 'createUserMfaVerification',
      summary: 'Gives a user a secret for an authenticator app, or backup codes; they are shown only here.',
      scope: 'users',
      freshProof: true,
      params,
      body: newMfaVerification,
      status: 200,
      response: createdMfaVerification,
      problems: [
        'entity.not_found',
        'user.totp_already_in_use',
        'user.totp_secret_invalid',
        'user.backup_code_already_in_use',
      ],
      handle: async (context) => ({
        body: await verifications.create(context, context.params.userId, context.body),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/mfa-verifications/:verificationId',
      operationId: 'deleteUserMfaVerification',
      summary: 'Takes a factor from a user, and signs the user out everywhere.',
      scope: 'users',
      params: atVerification,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => verifications.delete(context, context.params.userId, context.params.verificationId),
    }),
  ]
}
