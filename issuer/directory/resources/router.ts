import { z } from 'zod'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { booleanText, listQuery } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { resourceOperations } from './operations.ts'
import { newResource, resource, resourcePatch, resourceWithScopes } from './resource.ts'
import { newScope, scope, scopePatch, scopeSearchFields } from './scope.ts'
import { scopeOperations } from './scope-operations.ts'

const params = z.object({ id })
const ofResource = z.object({ resourceId: id })
const ofScope = ofResource.extend({ scopeId: id })

export const resourcesRoutes = (dependencies: ManagementDependencies): Route[] => {
  const resources = resourceOperations(dependencies)
  const scopes = scopeOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/resources',
      operationId: 'listResources',
      summary: 'Lists API resources, newest first.',
      scope: 'rbac',
      query: z.object({ includeScopes: booleanText.default(false) }),
      paged: 'optional',
      status: 200,
      response: z.array(z.union([resource, resourceWithScopes])),
      async handle({ query, page }) {
        const { rows, total } = await resources.list(page, query.includeScopes)
        return { body: rows, total }
      },
    }),
    route({
      method: 'POST',
      path: '/resources',
      operationId: 'createResource',
      summary: 'Registers an API resource.',
      scope: 'rbac',
      body: newResource,
      status: 201,
      response: resourceWithScopes,
      problems: ['resource.resource_identifier_in_use'],
      handle: async (context) => ({ body: await resources.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/resources/:id',
      operationId: 'getResource',
      summary: 'Reads an API resource.',
      scope: 'rbac',
      params,
      status: 200,
      response: resource,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await resources.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/resources/:id',
      operationId: 'updateResource',
      summary: 'Changes an API resource; its indicator never changes.',
      scope: 'rbac',
      params,
      body: resourcePatch,
      status: 200,
      response: resource,
      problems: ['entity.not_exists_with_id', 'entity.invalid_input', 'resource.cannot_modify_management_api'],
      handle: async (context) => ({ body: await resources.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'PATCH',
      path: '/resources/:id/is-default',
      operationId: 'setDefaultResource',
      summary: 'Makes an API resource the default one, instead of another, or no longer.',
      scope: 'rbac',
      params,
      body: z.object({ isDefault: z.boolean() }),
      status: 200,
      response: resource,
      problems: ['entity.not_exists_with_id', 'resource.cannot_modify_management_api'],
      handle: async (context) => ({
        body: await resources.setDefault(context, context.params.id, context.body.isDefault),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/resources/:id',
      operationId: 'deleteResource',
      summary: 'Deletes an API resource and its permissions.',
      scope: 'rbac',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found', 'resource.cannot_delete_management_api'],
      handle: (context) => resources.delete(context, context.params.id),
    }),
    route({
      method: 'GET',
      path: '/resources/:resourceId/scopes',
      operationId: 'listScopes',
      summary: 'Lists the permissions of an API resource.',
      scope: 'rbac',
      params: ofResource,
      query: listQuery(scopeSearchFields, {}),
      paged: 'optional',
      status: 200,
      response: z.array(scope),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { resourceId }, query, page }) {
        const { rows, total } = await scopes.list(resourceId, query.search, page)
        return { body: rows, total }
      },
    }),
    route({
      method: 'POST',
      path: '/resources/:resourceId/scopes',
      operationId: 'createScope',
      summary: 'Defines a permission of an API resource.',
      scope: 'rbac',
      params: ofResource,
      body: newScope,
      status: 201,
      response: scope,
      problems: [
        'entity.not_exists_with_id',
        'scope.name_with_space',
        'scope.name_exists',
        'resource.cannot_modify_management_api',
      ],
      handle: async (context) => ({ body: await scopes.create(context, context.params.resourceId, context.body) }),
    }),
    route({
      method: 'PATCH',
      path: '/resources/:resourceId/scopes/:scopeId',
      operationId: 'updateScope',
      summary: 'Changes a permission.',
      scope: 'rbac',
      params: ofScope,
      body: scopePatch,
      status: 200,
      response: scope,
      problems: [
        'entity.not_exists_with_id',
        'entity.invalid_input',
        'scope.name_with_space',
        'scope.name_exists',
        'resource.cannot_modify_management_api',
      ],
      handle: async (context) => ({
        body: await scopes.update(context, context.params.resourceId, context.params.scopeId, context.body),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/resources/:resourceId/scopes/:scopeId',
      operationId: 'deleteScope',
      summary: 'Deletes a permission; roles lose it.',
      scope: 'rbac',
      freshProof: true,
      params: ofScope,
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.not_found', 'resource.cannot_modify_management_api'],
      handle: (context) => scopes.delete(context, context.params.resourceId, context.params.scopeId),
    }),
  ]
}
