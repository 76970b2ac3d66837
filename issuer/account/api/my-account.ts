import { z } from 'zod'
import type { Route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import { password, user, userPatch, userProfile } from '../../directory/users/user.ts'
import type { AccountOperations } from '../operations/index.ts'
import { accountRoute, editProblems, reauthenticatedProblems } from './route.ts'

const address = z.string().trim().min(1).max(256)

export const accountProfile = user.partial()

/** Who one is: profile, password, addresses. */
export const myAccountRoutes = ({ profile, password: passwords, addresses }: AccountOperations): Route[] => [
  accountRoute({
    method: 'GET',
    path: '/my-account',
    operationId: 'getMyAccount',
    summary: 'Reads the account, as far as the scopes of the token and the settings of the fields go.',
    status: 200,
    response: accountProfile,
    problems: ['account_center.not_enabled'],
    handle: async ({ person }) => ({ body: await profile.get(person) }),
  }),
  accountRoute({
    method: 'PATCH',
    path: '/my-account',
    operationId: 'updateMyAccount',
    summary:
      'Changes name, avatar, user name or custom data (`profile`, `custom_data`). A user name needs a verification.',
    body: userPatch.pick({ name: true, avatar: true, username: true }).extend({ customData: jsonObject.optional() }),
    status: 200,
    response: accountProfile,
    problems: [
      ...reauthenticatedProblems,
      'entity.invalid_input',
      'entity.value_too_long',
      'user.username_already_in_use',
      'user.last_sign_in_method_required',
    ],
    handle: async (call) => ({ body: await profile.update(call, call.body) }),
  }),
  accountRoute({
    method: 'PATCH',
    path: '/my-account/profile',
    operationId: 'updateMyProfile',
    summary: 'Changes members of the profile (`profile`; the postal address: `address`).',
    body: userProfile,
    status: 200,
    response: userProfile,
    problems: editProblems,
    handle: async (call) => ({ body: await profile.updateProfile(call, call.body) }),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/password',
    operationId: 'setMyPassword',
    summary: 'Sets another password, and signs the person out everywhere else. Needs a verification.',
    body: z.object({ password }),
    status: 204,
    problems: [...reauthenticatedProblems, 'password.rejected', 'user.same_password'],
    handle: (call) => passwords.set(call, call.body.password),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/primary-email',
    operationId: 'setMyEmail',
    summary: 'Sets the email address that a code has verified (`email`). Needs a verification besides.',
    body: z.object({ email: address, newIdentifierVerificationRecordId: id }),
    status: 204,
    problems: [...reauthenticatedProblems, 'verification_record.not_found', 'user.email_already_in_use'],
    handle: (call) => {
      const { email: value, newIdentifierVerificationRecordId: verificationId } = call.body
      return addresses.set(call, 'email', { value, verificationId })
    },
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/primary-email',
    operationId: 'removeMyEmail',
    summary: 'Removes the email address (`email`). Needs a verification.',
    status: 204,
    problems: [...reauthenticatedProblems, 'user.last_sign_in_method_required'],
    handle: (call) => addresses.remove(call, 'email'),
  }),
  accountRoute({
    method: 'POST',
    path: '/my-account/primary-phone',
    operationId: 'setMyPhone',
    summary: 'Sets the phone number that a code has verified (`phone`). Needs a verification besides.',
    body: z.object({ phone: address, newIdentifierVerificationRecordId: id }),
    status: 204,
    problems: [...reauthenticatedProblems, 'verification_record.not_found', 'user.phone_already_in_use'],
    handle: (call) => {
      const { phone: value, newIdentifierVerificationRecordId: verificationId } = call.body
      return addresses.set(call, 'phone', { value, verificationId })
    },
  }),
  accountRoute({
    method: 'DELETE',
    path: '/my-account/primary-phone',
    operationId: 'removeMyPhone',
    summary: 'Removes the phone number (`phone`). Needs a verification.',
    status: 204,
    problems: [...reauthenticatedProblems, 'user.last_sign_in_method_required'],
    handle: (call) => addresses.remove(call, 'phone'),
  }),
]
