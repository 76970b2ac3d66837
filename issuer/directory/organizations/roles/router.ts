import { z } from 'zod'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { relatedStatus } from '../../../base/errors/not-found.ts'
import { keywordQuery } from '../../../base/lists/keyword.ts'
import { type Route, route } from '../../../base/route.ts'
import { id, ids, someIds } from '../../../base/schemas.ts'
import { scope, toScope } from '../../resources/scope.ts'
import { organizationScope, toOrganizationScope } from '../scopes/organization-scope.ts'
import { organizationRoleOperations } from './operations.ts'
import {
  listedOrganizationRole,
  newOrganizationRole,
  organizationRole,
  organizationRolePatch,
  toListedOrganizationRole,
} from './organization-role.ts'
import { listOrganizationRoles } from './organization-role-store.ts'
import { roleScopeOperations } from './role-scope-operations.ts'
import { listScopes } from './role-scope-store.ts'

const params = z.object({ id })

export const organizationRolesRoutes = (dependencies: ManagementDependencies): Route[] => {
  const { knex } = dependencies.database
  const roles = organizationRoleOperations(dependencies)
  const roleScopes = roleScopeOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/organization-roles',
      operationId: 'listOrganizationRoles',
      summary: 'Lists the roles there are inside organizations, with the permissions they carry.',
      scope: 'organizations',
      query: keywordQuery,
      paged: 'always',
      status: 200,
      response: z.array(listedOrganizationRole),
      async handle({ query: { q }, page }) {
        const { rows, total } = await listOrganizationRoles(knex, q, page)
        return { body: rows.map(toListedOrganizationRole), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organization-roles',
      operationId: 'createOrganizationRole',
      summary: 'Creates a role inside organizations, with permissions or without.',
      scope: 'organizations',
      body: newOrganizationRole,
      status: 201,
      response: organizationRole,
      problems: [
        'entity.unique_integrity_violation',
        'entity.relation_foreign_key_not_found',
        'role.management_api_scopes_not_assignable_to_user_role',
      ],
      problemStatuses: relatedStatus,
      handle: async (context) => ({ body: await roles.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/organization-roles/:id',
      operationId: 'getOrganizationRole',
      summary: 'Reads a role inside organizations.',
      scope: 'organizations',
      params,
      status: 200,
      response: organizationRole,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await roles.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/organization-roles/:id',
      operationId: 'updateOrganizationRole',
      summary: 'Changes a role inside organizations; its type only while nobody has it.',
      scope: 'organizations',
      params,
      body: organizationRolePatch,
      status: 200,
      response: organizationRole,
      problems: [
        'entity.not_exists_with_id',
        'entity.invalid_input',
        'entity.unique_integrity_violation',
        'entity.db_constraint_violated',
      ],
      handle: async (context) => ({ body: await roles.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/organization-roles/:id',
      operationId: 'deleteOrganizationRole',
      summary: 'Deletes a role inside organizations; those who have it lose it.',
      scope: 'organizations',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => roles.delete(context, context.params.id),
    }),
    route({
      method: 'GET',
      path: '/organization-roles/:id/scopes',
      operationId: 'listOrganizationRoleScopes',
      summary: 'Lists the permissions inside organizations that a role carries.',
      scope: 'organizations',
      params,
      query: keywordQuery,
      paged: 'optional',
      status: 200,
      response: z.array(organizationScope),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query: { q }, page }) {
        await roles.get(id)
        const { rows, total } = await listScopes(knex, 'organization', id, q, page)
        return { body: rows.map(toOrganizationScope), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organization-roles/:id/scopes',
      operationId: 'addOrganizationRoleScopes',
      summary: 'Puts permissions inside organizations on a role; those that it carries are left alone.',
      scope: 'organizations',
      params,
      body: z.object({ organizationScopeIds: someIds }),
      status: 201,
      problems: ['entity.not_exists_with_id', 'entity.relation_foreign_key_not_found'],
      problemStatuses: relatedStatus,
      handle: (context) =>
        roleScopes.add(context, 'organization', context.params.id, context.body.organizationScopeIds),
    }),
    route({
      method: 'PUT',
      path: '/organization-roles/:id/scopes',
      operationId: 'replaceOrganizationRoleScopes',
      summary: 'Lets a role carry exactly these permissions inside organizations.',
      scope: 'organizations',
      params,
      body: z.object({ organizationScopeIds: ids }),
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.relation_foreign_key_not_found'],
      problemStatuses: relatedStatus,
      handle: (context) =>
        roleScopes.set(context, 'organization', context.params.id, context.body.organizationScopeIds),
    }),
    route({
      method: 'DELETE',
      path: '/organization-roles/:id/scopes/:organizationScopeId',
      operationId: 'deleteOrganizationRoleScope',
      summary: 'Takes a permission inside organizations off a role.',
      scope: 'organizations',
      params: params.extend({ organizationScopeId: id }),
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.not_found'],
      handle: (context) =>
        roleScopes.remove(context, 'organization', context.params.id, context.params.organizationScopeId),
    }),
    route({
      method: 'GET',
      path: '/organization-roles/:id/resource-scopes',
      operationId: 'listOrganizationRoleResourceScopes',
      summary: 'Lists the permissions of API resources that an organization role carries.',
      scope: 'organizations',
      params,
      query: keywordQuery,
      paged: 'optional',
      status: 200,
      response: z.array(scope),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query: { q }, page }) {
        await roles.get(id)
        const { rows, total } = await listScopes(knex, 'resource', id, q, page)
        return { body: rows.map(toScope), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organization-roles/:id/resource-scopes',
      operationId: 'addOrganizationRoleResourceScopes',
      summary: 'Puts permissions of API resources on an organization role; those that it carries are left alone.',
      scope: 'organizations',
      params,
      body: z.object({ scopeIds: someIds }),
      status: 201,
      problems: [
        'entity.not_exists_with_id',
        'entity.relation_foreign_key_not_found',
        'role.management_api_scopes_not_assignable_to_user_role',
      ],
      problemStatuses: relatedStatus,
      handle: (context) => roleScopes.add(context, 'resource', context.params.id, context.body.scopeIds),
    }),
    route({
      method: 'PUT',
      path: '/organization-roles/:id/resource-scopes',
      operationId: 'replaceOrganizationRoleResourceScopes',
      summary: 'Lets an organization role carry exactly these permissions of API resources.',
      scope: 'organizations',
      params,
      body: z.object({ scopeIds: ids }),
      status: 204,
      problems: [
        'entity.not_exists_with_id',
        'entity.relation_foreign_key_not_found',
        'role.management_api_scopes_not_assignable_to_user_role',
      ],
      problemStatuses: relatedStatus,
      handle: (context) => roleScopes.set(context, 'resource', context.params.id, context.body.scopeIds),
    }),
    route({
      method: 'DELETE',
      path: '/organization-roles/:id/resource-scopes/:scopeId',
      operationId: 'deleteOrganizationRoleResourceScope',
      summary: 'Takes a permission of an API resource off an organization role.',
      scope: 'organizations',
      params: params.extend({ scopeId: id }),
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.not_found'],
      handle: (context) => roleScopes.remove(context, 'resource', context.params.id, context.params.scopeId),
    }),
  ]
}
