import { z } from 'zod'
import { type Route, route } from '../base/route.ts'
import { id, jsonObject } from '../base/schemas.ts'
import { identities } from '../directory/users/identity.ts'
import { federationProblems } from './federation-problem.ts'
import { type IdentityDependencies, linkByConnector } from './link-identity.ts'

/** Who users are at social connectors, as these say themselves. */
export const connectorIdentitiesRoutes = (dependencies: IdentityDependencies): Route[] => {
  const link = linkByConnector(dependencies)
  return [
    route({
      method: 'POST',
      path: '/users/:userId/identities',
      operationId: 'createUserIdentity',
      summary: 'Links a user to the account that a social connector tells of in its answer.',
      scope: 'users',
      params: z.object({ userId: id }),
      body: z.object({ connectorId: id, connectorData: jsonObject }),
      // A code is good once, and is redeemed while no transaction is open.
      idempotency: 'none',
      status: 200,
      response: identities,
      problems: [...federationProblems, 'entity.value_too_long', 'user.identity_already_in_use'],
      handle: async (context) => ({
        body: await link(context, { userId: context.params.userId, ...context.body }),
      }),
    }),
  ]
}
