import { z } from 'zod'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { personalAccessTokenOperations } from './operations.ts'
import {
  createdPersonalAccessToken,
  nameOnly,
  newPersonalAccessToken,
  personalAccessToken,
  rename,
} from './personal-access-token.ts'

const path = '/users/:userId/personal-access-tokens'
const params = z.object({ userId: id })
const namedParams = params.extend({ name: z.string() })

/** By name in the body, and by name in the path for clients that still do it that way. */
export const personalAccessTokensRoutes = (dependencies: ManagementDependencies): Route[] => {
  const tokens = personalAccessTokenOperations(dependencies)
  return [
    route({
      method: 'GET',
      path,
      operationId: 'listPersonalAccessTokens',
      summary: 'Lists the personal access tokens of a user, without their values.',
      scope: 'users',
      secret: true,
      params,
      status: 200,
      response: z.array(personalAccessToken),
      problems: ['entity.not_found'],
      handle: async ({ params: { userId } }) => ({ body: await tokens.list(userId) }),
    }),
    route({
      method: 'POST',
      path,
      operationId: 'createPersonalAccessToken',
      summary: 'Makes a personal access token; its value is shown only here.',
      scope: 'users',
      freshProof: true,
      params,
      body: newPersonalAccessToken,
      status: 201,
      response: createdPersonalAccessToken,
      problems: ['entity.not_found', 'user.personal_access_token_name_exists'],
      handle: async (context) => ({ body: await tokens.create(context, context.params.userId, context.body) }),
    }),
    route({
      method: 'PATCH',
      path,
      operationId: 'renamePersonalAccessToken',
      summary: 'Renames a personal access token.',
      scope: 'users',
      params,
      body: rename,
      status: 200,
      response: personalAccessToken,
      problems: ['entity.not_found', 'user.personal_access_token_name_exists'],
      async handle(context) {
        const { currentName, name } = context.body
        return { body: await tokens.rename(context, context.params.userId, currentName, name) }
      },
    }),
    route({
      method: 'POST',
      path: `${path}/delete`,
      operationId: 'deletePersonalAccessToken',
      summary: 'Deletes a personal access token and ends the access tokens that it was exchanged for.',
      scope: 'users',
      params,
      body: nameOnly,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => tokens.delete(context, context.params.userId, context.body.name),
    }),
    route({
      method: 'PATCH',
      path: `${path}/:name`,
      operationId: 'renamePersonalAccessTokenByPath',
      summary: 'Renames a personal access token that the path names.',
      scope: 'users',
      params: namedParams,
      body: nameOnly,
      status: 200,
      response: personalAccessToken,
      problems: ['entity.not_found', 'user.personal_access_token_name_exists'],
      async handle(context) {
        const { userId, name } = context.params
        return { body: await tokens.rename(context, userId, name, context.body.name) }
      },
    }),
    route({
      method: 'DELETE',
      path: `${path}/:name`,
      operationId: 'deletePersonalAccessTokenByPath',
      summary: 'Deletes a personal access token that the path names, as above.',
      scope: 'users',
      params: namedParams,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => tokens.delete(context, context.params.userId, context.params.name),
    }),
  ]
}
