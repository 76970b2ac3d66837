import { z } from 'zod'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { listQuery } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id, someIds } from '../../base/schemas.ts'
import { resource, toResource } from '../resources/resource.ts'
import { scope, scopeSearchFields, toScope } from '../resources/scope.ts'
import { roleOperations } from './operations.ts'
import { listedRole, newRole, role, rolePatch, roleSearchFields, roleType, toListedRole } from './role.ts'
import { pageScopesOfRole } from './role-scope-store.ts'
import { listRolesWithHolders } from './role-store.ts'

const params = z.object({ id })

export const rolesRoutes = (dependencies: ManagementDependencies): Route[] => {
  const { knex } = dependencies.database
  const roles = roleOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/roles',
      operationId: 'listRoles',
      summary: 'Lists roles, newest first, with how many hold each.',
      scope: 'rbac',
      query: listQuery(roleSearchFields, {
        type: roleType.optional(),
        excludeUserId: id.optional(),
        excludeApplicationId: id.optional(),
        scopeId: id.optional(),
      }),
      paged: 'optional',
      status: 200,
      response: z.array(listedRole),
      async handle({ query, page }) {
        const { rows, total } = await listRolesWithHolders(knex, query, page)
        return { body: rows.map(toListedRole), total }
      },
    }),
    route({
      method: 'POST',
      path: '/roles',
      operationId: 'createRole',
      summary: 'Creates a role, with permissions or without.',
      scope: 'rbac',
      body: newRole,
      status: 200,
      response: role,
      problems: [
        'role.name_in_use',
        'role.internal_role_violation',
        'role.management_api_scopes_not_assignable_to_user_role',
        'entity.not_exists_with_id',
      ],
      handle: async (context) => ({ body: await roles.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/roles/:id',
      operationId: 'getRole',
      summary: 'Reads a role.',
      scope: 'rbac',
      params,
      status: 200,
      response: role,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await roles.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/roles/:id',
      operationId: 'updateRole',
      summary: 'Changes a role; its type never changes.',
      scope: 'rbac',
      params,
      body: rolePatch,
      status: 200,
      response: role,
      problems: [
        'entity.not_exists',
        'entity.invalid_input',
        'role.name_in_use',
        'role.internal_role_violation',
        'role.console_role_not_changeable',
      ],
      handle: async (context) => ({ body: await roles.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/roles/:id',
      operationId: 'deleteRole',
      summary: 'Deletes a role; those who have it lose it.',
      scope: 'rbac',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found', 'role.console_role_not_changeable'],
      handle: (context) => roles.delete(context, context.params.id),
    }),
    route({
      method: 'GET',
      path: '/roles/:id/scopes',
      operationId: 'listRoleScopes',
      summary: 'Lists the permissions that a role carries, each with its API resource.',
      scope: 'rbac',
      params,
      query: listQuery(scopeSearchFields, {}),
      paged: 'optional',
      status: 200,
      response: z.array(scope.extend({ resource })),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query, page }) {
        await roles.get(id)
        const { rows, total } = await pageScopesOfRole(knex, id, query.search, page)
        return { body: rows.map((row) => ({ ...toScope(row), resource: toResource(row.resource) })), total }
      },
    }),
    route({
      method: 'POST',
      path: '/roles/:id/scopes',
      operationId: 'addRoleScopes',
      summary: 'Puts permissions on a role; answers all that it then carries.',
      scope: 'rbac',
      params,
      body: z.object({ scopeIds: someIds }),
      status: 201,
      response: z.array(scope),
      problems: [
        'entity.not_exists_with_id',
        'role.scope_exists',
        'role.console_role_not_changeable',
        'role.management_api_scopes_not_assignable_to_user_role',
      ],
      handle: async (context) => ({ body: await roles.addScopes(context, context.params.id, context.body.scopeIds) }),
    }),
    route({
      method: 'DELETE',
      path: '/roles/:id/scopes/:scopeId',
      operationId: 'deleteRoleScope',
      summary: 'Takes a permission off a role.',
      scope: 'rbac',
      params: params.extend({ scopeId: id }),
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.not_found', 'role.console_role_not_changeable'],
      handle: (context) => roles.removeScope(context, context.params.id, context.params.scopeId),
    }),
  ]
}
