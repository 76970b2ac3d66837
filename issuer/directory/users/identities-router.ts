import { z } from 'zod'
import { problem } from '../../base/errors/problems.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import {
  type Identity,
  identities,
  identity,
  identityAt,
  listedIdentities,
  ssoIdentity,
  toSsoIdentity,
} from './identity.ts'
import { identityOperations, unknownIdentity } from './identity-operations.ts'
import { type UserDependencies, userOperations } from './operations.ts'
import { listSsoIdentities } from './sso-identity-store.ts'
import { user } from './user.ts'

const params = z.object({ userId: id })
const atConnector = params.extend({ ssoConnectorId: id })
const atTarget = params.extend({ target: id })
// As a member's name it means something else to much of what reads JSON. Bodies lose such members too.
const atNewTarget = params.extend({
  target: id.refine((name) => name !== '__proto__', 'cannot be the name of a target'),
})

/** Who users are elsewhere: the identities that federation will look them up by. */
export const identitiesRoutes = (dependencies: UserDependencies): Route[] => {
  const { knex } = dependencies.database
  const users = userOperations(dependencies)
  const operations = identityOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/users/:userId/all-identities',
      operationId: 'listUserIdentities',
      summary: 'Lists who a user is elsewhere.',
      scope: 'users',
      params,
      status: 200,
      response: listedIdentities,
      problems: ['entity.not_found'],
      async handle({ params: { userId } }) {
        const all = Object.entries((await users.get(userId)).identities)
        const socialIdentities = all.map(([target, identity]) => ({ target, identity: identity as Identity }))
        const ssoIdentities = (await listSsoIdentities(knex, userId)).map((row) => ({
          ssoIdentity: toSsoIdentity(row),
          ssoConnectorId: row.provider_id,
        }))
        return { body: { socialIdentities, ssoIdentities } }
      },
    }),
    route({
      method: 'GET',
      path: '/users/:userId/identities/:target',
      operationId: 'getUserIdentity',
      summary: 'Reads who a user is at a provider.',
      scope: 'users',
      params: atTarget,
      status: 200,
      response: z.strictObject({ identity }),
      problems: ['entity.not_found', 'user.identity_not_exist'],
      async handle({ params: { userId, target } }) {
        const identity = identityAt(await users.get(userId), target)
        if (identity === undefined) throw unknownIdentity(target)
        return { body: { identity } }
      },
    }),
    route({
      method: 'PUT',
      path: '/users/:userId/identities/:target',
      operationId: 'replaceUserIdentity',
      summary: 'Links a user to an account at a provider, instead of another one there.',
      scope: 'users',
      params: atNewTarget,
      body: identity,
      status: 200,
      response: identities,
      problems: ['entity.not_found', 'entity.value_too_long', 'user.identity_already_in_use'],
      handle: async (context) => ({
        body: await operations.set(context, context.params.userId, context.params.target, context.body),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/identities/:target',
      operationId: 'deleteUserIdentity',
      summary: 'Ends the link of a user to an account at a provider.',
      scope: 'users',
      params: atTarget,
      status: 200,
      response: user,
      problems: ['entity.not_found', 'user.identity_not_exist'],
      handle: async (context) => ({
        body: await operations.remove(context, context.params.userId, context.params.target),
      }),
    }),
    route({
      method: 'GET',
      path: '/users/:userId/sso-identities/:ssoConnectorId',
      operationId: 'getUserSsoIdentity',
      summary: 'Reads who a user is at an enterprise’s provider.',
      scope: 'users',
      params: atConnector,
      status: 200,
      response: z.strictObject({ ssoIdentity }),
      problems: ['entity.not_found', 'user.identity_not_exist'],
      async handle({ params: { userId, ssoConnectorId } }) {
        await users.get(userId)
        const found = (await listSsoIdentities(knex, userId)).find((row) => row.provider_id === ssoConnectorId)
        if (found === undefined) throw problem('user.identity_not_exist', { data: { ssoConnectorId } })
        return { body: { ssoIdentity: toSsoIdentity(found) } }
      },
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/sso-identities/:ssoConnectorId',
      operationId: 'deleteUserSsoIdentity',
      summary: 'Ends the link of a user to an account at an enterprise’s provider.',
      scope: 'users',
      params: atConnector,
      status: 204,
      problems: ['entity.not_found', 'user.identity_not_exist'],
      handle: (context) => operations.removeSso(context, context.params.userId, context.params.ssoConnectorId),
    }),
  ]
}
