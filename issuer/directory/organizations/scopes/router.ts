import { z } from 'zod'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { keywordQuery } from '../../../base/lists/keyword.ts'
import { type Route, route } from '../../../base/route.ts'
import { id } from '../../../base/schemas.ts'
import { organizationScopeOperations } from './operations.ts'
import {
  newOrganizationScope,
  organizationScope,
  organizationScopePatch,
  toOrganizationScope,
} from './organization-scope.ts'
import { listOrganizationScopes } from './organization-scope-store.ts'

const params = z.object({ id })

export const organizationScopesRoutes = (dependencies: ManagementDependencies): Route[] => {
  const { knex } = dependencies.database
  const scopes = organizationScopeOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/organization-scopes',
      operationId: 'listOrganizationScopes',
      summary: 'Lists the permissions there are inside organizations.',
      scope: 'organizations',
      query: keywordQuery,
      paged: 'optional',
      status: 200,
      response: z.array(organizationScope),
      async handle({ query: { q }, page }) {
        const { rows, total } = await listOrganizationScopes(knex, q, page)
        return { body: rows.map(toOrganizationScope), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organization-scopes',
      operationId: 'createOrganizationScope',
      summary: 'Defines a permission inside organizations.',
      scope: 'organizations',
      body: newOrganizationScope,
      status: 201,
      response: organizationScope,
      problems: ['entity.unique_integrity_violation'],
      handle: async (context) => ({ body: await scopes.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/organization-scopes/:id',
      operationId: 'getOrganizationScope',
      summary: 'Reads a permission inside organizations.',
      scope: 'organizations',
      params,
      status: 200,
      response: organizationScope,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await scopes.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/organization-scopes/:id',
      operationId: 'updateOrganizationScope',
      summary: 'Changes a permission inside organizations.',
      scope: 'organizations',
      params,
      body: organizationScopePatch,
      status: 200,
      response: organizationScope,
      problems: ['entity.not_exists_with_id', 'entity.invalid_input', 'entity.unique_integrity_violation'],
      handle: async (context) => ({ body: await scopes.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/organization-scopes/:id',
      operationId: 'deleteOrganizationScope',
      summary: 'Deletes a permission inside organizations; roles no longer carry it.',
      scope: 'organizations',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => scopes.delete(context, context.params.id),
    }),
  ]
}
