import { z } from 'zod'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { relatedStatus } from '../../../base/errors/not-found.ts'
import { type Route, route } from '../../../base/route.ts'
import { id, someIds } from '../../../base/schemas.ts'
import { organizationRole } from '../roles/organization-role.ts'
import { organizationScope } from '../scopes/organization-scope.ts'
import { memberRoleOperations } from './member-roles.ts'
import type { MemberKind } from './member-store.ts'

interface Wording {
  kind: MemberKind
  path: string
  param: string
  idsName: string
  noun: string
  some: string
  one: string
}

const maxRoles = 100

const list = z
  .array(z.string().min(1).max(128))
  .max(maxRoles)
  .default([])
  .transform((values) => [...new Set(values)])

const namedRoles = z.object({ organizationRoleIds: list, organizationRoleNames: list })

/** The roles that members of one kind have in an organization. */
export const memberRolesRoutes = (dependencies: ManagementDependencies, wording: Wording): Route[] => {
  const { kind, path, param, idsName, noun, some, one } = wording
  const roles = memberRoleOperations(dependencies)
  const params = z.object({ id, [param]: id })
  const ofMember = `/organizations/:id/${path}/:${param}`
  const memberOf = (given: Record<string, unknown>) => ({
    kind,
    organizationId: given['id'] as string,
    id: given[param] as string,
  })
  const unreadable = ['entity.not_exists_with_id', 'organization.require_membership'] as const
  const unchangeable = ['organization.require_membership', 'entity.relation_foreign_key_not_found'] as const
  const unfit = [...unchangeable, 'entity.db_constraint_violated'] as const

  return [
    route({
      method: 'POST',
      path: `/organizations/:id/${path}/roles`,
      operationId: `addOrganization${noun}sRoles`,
      summary: `Gives ${some} of an organization roles there; what they have is left alone.`,
      scope: 'organizations',
      params: z.object({ id }),
      body: z.object({ [idsName]: someIds, organizationRoleIds: someIds.pipe(z.array(id).max(maxRoles)) }),
      status: 201,
      problems: [...unfit],
      problemStatuses: relatedStatus,
      async handle(context) {
        const { organizationRoleIds, [idsName]: memberIds } = context.body as Record<string, string[]>
        const named = { organizationRoleIds: organizationRoleIds!, organizationRoleNames: [] }
        await roles.add(context, kind, context.params.id, memberIds!, named)
      },
    }),
    route({
      method: 'GET',
      path: `${ofMember}/roles`,
      operationId: `listOrganization${noun}Roles`,
      summary: `Lists the roles that ${one} has in an organization.`,
      scope: 'organizations',
      params,
      paged: 'optional',
      status: 200,
      response: z.array(organizationRole),
      problems: [...unreadable],
      async handle({ params, page }) {
        const { rows, total } = await roles.list(memberOf(params), page)
        return { body: rows, total }
      },
    }),
    route({
      method: 'POST',
      path: `${ofMember}/roles`,
      operationId: `addOrganization${noun}Roles`,
      summary: `Gives ${one} roles in an organization, by id or name; what it has is left alone.`,
      scope: 'organizations',
      params,
      body: namedRoles,
      status: 201,
      response: z.strictObject({ organizationRoleIds: z.array(id) }),
      problems: [...unfit, 'organization.role_names_not_found'],
      problemStatuses: relatedStatus,
      async handle(context) {
        const { organizationId, id } = memberOf(context.params)
        const organizationRoleIds = await roles.add(context, kind, organizationId, [id], context.body)
        return { body: { organizationRoleIds } }
      },
    }),
    route({
      method: 'PUT',
      path: `${ofMember}/roles`,
      operationId: `replaceOrganization${noun}Roles`,
      summary: `Gives ${one} exactly these roles in an organization, by id or name.`,
      scope: 'organizations',
      params,
      body: namedRoles,
      status: 204,
      problems: [...unfit, 'organization.role_names_not_found'],
      problemStatuses: relatedStatus,
      handle: (context) => roles.set(context, memberOf(context.params), context.body),
    }),
    route({
      method: 'DELETE',
      path: `${ofMember}/roles/:organizationRoleId`,
      operationId: `deleteOrganization${noun}Role`,
      summary: `Takes a role in an organization from ${one}.`,
      scope: 'organizations',
      params: params.extend({ organizationRoleId: id }),
      status: 204,
      problems: [...unchangeable, 'entity.not_found'],
      problemStatuses: relatedStatus,
      handle: (context) =>
        roles.remove(context, memberOf(context.params), context.params['organizationRoleId'] as string),
    }),
    route({
      method: 'GET',
      path: `${ofMember}/scopes`,
      operationId: `listOrganization${noun}Scopes`,
      summary: `Lists what the roles of ${one} carry inside an organization.`,
      scope: 'organizations',
      params,
      status: 200,
      response: z.array(organizationScope),
      problems: [...unreadable],
      handle: async ({ params }) => ({ body: await roles.listScopes(memberOf(params)) }),
    }),
  ]
}
