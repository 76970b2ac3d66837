import { z } from 'zod'
import { authorize, requireFreshProof } from '../../base/authorization.ts'
import { requireFound } from '../../base/errors/not-found.ts'
import { booleanText, listQuery } from '../../base/lists/search.ts'
import { besideOf, longListQuery } from '../../base/long-list.ts'
import { type OperationContext, type Route, route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import { toSsoIdentity } from './identity.ts'
import { type UserDependencies, userOperations } from './operations.ts'
import { listSsoIdentities } from './sso-identity-store.ts'
import {
  listedUser,
  newUser,
  password,
  toDigest,
  toUser,
  type UserRow,
  user,
  userDetails,
  userPatch,
  userProfile,
  userSearchFields,
} from './user.ts'
import { findUser, listUsers } from './user-store.ts'

const params = z.object({ userId: id })
const collisions = [
  'user.username_already_in_use',
  'user.email_already_in_use',
  'user.phone_already_in_use',
  'user.invalid_phone',
  'entity.value_too_long',
] as const

/** Digests are not for holders of `read`, and who looks at them leaves a row. */
const createRequireDigests =
  ({ mutate }: Pick<UserDependencies, 'mutate'>) =>
  async (context: OperationContext): Promise<void> => {
    authorize({ method: 'GET', scope: 'users', secret: true }, context.caller)
    requireFreshProof(context.caller)
    await mutate(context, async () => {})
  }

export const usersRoutes = (dependencies: UserDependencies): Route[] => {
  const { knex } = dependencies.database
  const users = userOperations(dependencies)
  const requireDigests = createRequireDigests(dependencies)

  return [
    route({
      method: 'GET',
      path: '/users',
      operationId: 'listUsers',
      summary:
        'Lists users, newest first; with includePasswordHash, which needs the scope users or all, with the digests of passwords.',
      scope: 'users',
      query: listQuery(userSearchFields, {
        excludeRoleId: id.optional(),
        excludeOrganizationId: id.optional(),
        includePasswordHash: booleanText.default(false),
        ...longListQuery,
      }),
      paged: 'always',
      status: 200,
      response: z.array(listedUser),
      problems: ['entity.not_exists_with_id'],
      async handle(context) {
        const { query, page } = context
        if (query.includePasswordHash) await requireDigests(context)
        const beside = besideOf(query)
        if (beside) requireFound(await findUser(knex, beside.id), beside.id)
        const { rows, ...total } = await listUsers(knex, query, page, beside)
        const toListed = (row: UserRow) => ({ ...toUser(row), ...(query.includePasswordHash && toDigest(row)) })
        return { body: rows.map(toListed), ...total }
      },
    }),
    route({
      method: 'POST',
      path: '/users',
      operationId: 'createUser',
      summary: 'Creates a user, who gets the default user roles.',
      scope: 'users',
      body: newUser,
      status: 200,
      response: user,
      problems: [...collisions, 'user.password_and_digest', 'user.password_algorithm_required'],
      handle: async (context) => ({ body: await users.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/users/:userId',
      operationId: 'getUser',
      summary:
        'Reads a user; with includePasswordHash, which needs the scope users or all, the digest of the password too.',
      scope: 'users',
      params,
      query: z.object({
        includeSsoIdentities: booleanText.default(false),
        includePasswordHash: booleanText.default(false),
      }),
      status: 200,
      response: userDetails,
      problems: ['entity.not_found'],
      async handle(context) {
        const { query, params } = context
        const { userId } = params
        if (query.includePasswordHash) await requireDigests(context)
        return {
          body: {
            ...(await users.get(userId)),
            ...(query.includeSsoIdentities && {
              ssoIdentities: (await listSsoIdentities(knex, userId)).map(toSsoIdentity),
            }),
            ...(query.includePasswordHash && (await users.getDigest(userId))),
          },
        }
      },
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId',
      operationId: 'updateUser',
      summary: 'Changes a user; objects are replaced as a whole.',
      scope: 'users',
      params,
      body: userPatch,
      status: 200,
      response: user,
      problems: ['entity.not_found', 'entity.invalid_input', ...collisions],
      handle: async (context) => ({ body: await users.update(context, context.params.userId, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId',
      operationId: 'deleteUser',
      summary: 'Deletes a user.',
      scope: 'users',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found', 'user.cannot_delete_self'],
      handle: (context) => users.delete(context, context.params.userId),
    }),
    route({
      method: 'GET',
      path: '/users/:userId/custom-data',
      operationId: 'getUserCustomData',
      summary: 'Reads the custom data of a user.',
      scope: 'users',
      params,
      status: 200,
      response: jsonObject,
      problems: ['entity.not_found'],
      handle: async ({ params: { userId } }) => ({ body: (await users.get(userId)).customData }),
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId/custom-data',
      operationId: 'updateUserCustomData',
      summary: 'Merges into the custom data of a user, at the first level.',
      scope: 'users',
      params,
      body: z.object({ customData: jsonObject }),
      status: 200,
      response: jsonObject,
      problems: ['entity.not_found', 'entity.value_too_long'],
      handle: async (context) => ({
        body: await users.mergeCustomData(context, context.params.userId, context.body.customData),
      }),
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId/profile',
      operationId: 'updateUserProfile',
      summary: 'Merges into the profile of a user, at the first level.',
      scope: 'users',
      params,
      body: z.object({ profile: userProfile }),
      status: 200,
      response: userProfile,
      problems: ['entity.not_found'],
      handle: async (context) => ({
        body: await users.mergeProfile(context, context.params.userId, context.body.profile),
      }),
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId/password',
      operationId: 'updateUserPassword',
      summary: 'Sets the password of a user.',
      scope: 'users',
      freshProof: true,
      params,
      body: z.object({ password }),
      status: 200,
      response: user,
      problems: ['entity.not_found', 'server.unavailable'],
      handle: async (context) => ({
        body: await users.setPassword(context, context.params.userId, context.body.password),
      }),
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId/password/expiration',
      operationId: 'updateUserPasswordExpiration',
      summary: 'Says that the password of a user has to be replaced at the next sign-in, or takes that back.',
      scope: 'users',
      params,
      body: z.object({ isExpired: z.boolean() }),
      status: 200,
      response: user,
      problems: ['entity.not_found', 'sign_in_experiences.password_expiration_not_enabled'],
      handle: async (context) => ({
        body: await users.expirePassword(context, context.params.userId, context.body.isExpired),
      }),
    }),
    route({
      method: 'POST',
      path: '/users/:userId/password/verify',
      operationId: 'verifyUserPassword',
      summary:
        'Says whether this is the password of a user. An imported digest is replaced by an Argon2id one when it is. Failures count with those of signing in, and lock the account as those do.',
      scope: 'users',
      params,
      body: z.object({ password }),
      status: 204,
      // The answer of an hour ago says nothing of the password of now.
      idempotency: 'none',
      problems: [
        'entity.not_found',
        'session.invalid_credentials',
        'session.verification_blocked_too_many_attempts',
        'server.unavailable',
      ],
      handle: (context) => users.verifyPassword(context, context.params.userId, context.body.password),
    }),
    route({
      method: 'GET',
      path: '/users/:userId/has-password',
      operationId: 'hasUserPassword',
      summary: 'Says whether a user has a password.',
      scope: 'users',
      params,
      status: 200,
      response: z.strictObject({ hasPassword: z.boolean() }),
      problems: ['entity.not_found'],
      handle: async ({ params: { userId } }) => ({ body: { hasPassword: (await users.get(userId)).hasPassword } }),
    }),
    route({
      method: 'PATCH',
      path: '/users/:userId/is-suspended',
      operationId: 'updateUserSuspension',
      summary: 'Suspends a user, or ends the suspension.',
      scope: 'users',
      params,
      body: z.object({ isSuspended: z.boolean() }),
      status: 200,
      response: user,
      problems: ['entity.not_found'],
      handle: async (context) => ({
        body: await users.setSuspended(context, context.params.userId, context.body.isSuspended),
      }),
    }),
  ]
}
