import { z } from 'zod'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { relatedStatus } from '../../../base/errors/not-found.ts'
import { type Route, route } from '../../../base/route.ts'
import { id } from '../../../base/schemas.ts'
import { organizationRole } from '../roles/organization-role.ts'
import { emailDomain, jitEmailDomain, jitSsoConnector, toJitEmailDomain, toJitSsoConnector } from './jit.ts'
import { jitOperations } from './operations.ts'

const params = z.object({ id })
const maxValues = 100
const each = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .array(schema)
    .max(maxValues)
    .transform((values) => [...new Set(values)])
const someIds = each(id)

const unknownOrganization = ['entity.not_exists_with_id'] as const
const unrelated = ['entity.relation_foreign_key_not_found'] as const
const unfitRoles = [...unrelated, 'entity.db_constraint_violated'] as const

/** Who joins an organization on coming (just-in-time provisioning). */
export const jitRoutes = (dependencies: ManagementDependencies): Route[] => {
  const jit = jitOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/organizations/:id/jit/email-domains',
      operationId: 'listOrganizationJitEmailDomains',
      summary: 'Lists the domains whose people join the organization when they register.',
      scope: 'organizations',
      params,
      paged: 'optional',
      status: 200,
      response: z.array(jitEmailDomain),
      problems: unknownOrganization,
      async handle({ params: { id }, page }) {
        const { rows, total } = await jit.listEmailDomains(id, page)
        return { body: rows.map((domain) => toJitEmailDomain(id, domain)), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organizations/:id/jit/email-domains',
      operationId: 'createOrganizationJitEmailDomain',
      summary: 'Lets people with an address of a domain join the organization when they register.',
      scope: 'organizations',
      params,
      body: z.object({ emailDomain }),
      status: 201,
      response: jitEmailDomain,
      problems: [...unrelated, 'entity.unique_integrity_violation'],
      problemStatuses: relatedStatus,
      async handle(context) {
        const { params, body } = context
        await jit.add(context, 'emailDomain', params.id, [body.emailDomain])
        return { body: toJitEmailDomain(params.id, body.emailDomain) }
      },
    }),
    route({
      method: 'PUT',
      path: '/organizations/:id/jit/email-domains',
      operationId: 'replaceOrganizationJitEmailDomains',
      summary: 'Sets the domains whose people join the organization when they register.',
      scope: 'organizations',
      params,
      body: z.object({ emailDomains: each(emailDomain) }),
      status: 204,
      problems: unrelated,
      problemStatuses: relatedStatus,
      handle: (context) => jit.set(context, 'emailDomain', context.params.id, context.body.emailDomains),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:id/jit/email-domains/:emailDomain',
      operationId: 'deleteOrganizationJitEmailDomain',
      summary: 'No longer lets people of a domain join the organization; members remain.',
      scope: 'organizations',
      params: params.extend({ emailDomain: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) =>
        jit.remove(context, 'emailDomain', context.params.id, context.params.emailDomain.toLowerCase()),
    }),
    route({
      method: 'GET',
      path: '/organizations/:id/jit/roles',
      operationId: 'listOrganizationJitRoles',
      summary: 'Lists the roles that people get who join the organization on coming.',
      scope: 'organizations',
      params,
      paged: 'optional',
      status: 200,
      response: z.array(organizationRole),
      problems: unknownOrganization,
      async handle({ params: { id }, page }) {
        const { rows, total } = await jit.listRoles(id, page)
        return { body: rows, total }
      },
    }),
    route({
      method: 'POST',
      path: '/organizations/:id/jit/roles',
      operationId: 'addOrganizationJitRoles',
      summary: 'Adds roles that people get who join the organization on coming.',
      scope: 'organizations',
      params,
      body: z.object({ organizationRoleIds: someIds }),
      status: 201,
      problems: unfitRoles,
      problemStatuses: relatedStatus,
      handle: (context) => jit.add(context, 'role', context.params.id, context.body.organizationRoleIds),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:id/jit/roles',
      operationId: 'replaceOrganizationJitRoles',
      summary: 'Sets the roles that people get who join the organization on coming.',
      scope: 'organizations',
      params,
      body: z.object({ organizationRoleIds: someIds }),
      status: 204,
      problems: unfitRoles,
      problemStatuses: relatedStatus,
      handle: (context) => jit.set(context, 'role', context.params.id, context.body.organizationRoleIds),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:id/jit/roles/:organizationRoleId',
      operationId: 'deleteOrganizationJitRole',
      summary: 'People who join the organization on coming no longer get this role; who has it keeps it.',
      scope: 'organizations',
      params: params.extend({ organizationRoleId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => jit.remove(context, 'role', context.params.id, context.params.organizationRoleId),
    }),
    route({
      method: 'GET',
      path: '/organizations/:id/jit/sso-connectors',
      operationId: 'listOrganizationJitSsoConnectors',
      summary: 'Lists the enterprise connectors whose people join the organization when they sign in.',
      scope: 'organizations',
      params,
      paged: 'optional',
      status: 200,
      response: z.array(jitSsoConnector),
      problems: unknownOrganization,
      async handle({ params: { id }, page }) {
        const { rows, total } = await jit.listSsoConnectors(id, page)
        return { body: rows.map(toJitSsoConnector), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organizations/:id/jit/sso-connectors',
      operationId: 'addOrganizationJitSsoConnectors',
      summary: 'Lets people who sign in by these enterprise connectors join the organization.',
      scope: 'organizations',
      params,
      body: z.object({ ssoConnectorIds: someIds }),
      status: 201,
      problems: unrelated,
      problemStatuses: relatedStatus,
      handle: (context) => jit.add(context, 'ssoConnector', context.params.id, context.body.ssoConnectorIds),
    }),
    route({
      method: 'PUT',
      path: '/organizations/:id/jit/sso-connectors',
      operationId: 'replaceOrganizationJitSsoConnectors',
      summary: 'Sets the enterprise connectors whose people join the organization when they sign in.',
      scope: 'organizations',
      params,
      body: z.object({ ssoConnectorIds: someIds }),
      status: 204,
      problems: unrelated,
      problemStatuses: relatedStatus,
      handle: (context) => jit.set(context, 'ssoConnector', context.params.id, context.body.ssoConnectorIds),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:id/jit/sso-connectors/:ssoConnectorId',
      operationId: 'deleteOrganizationJitSsoConnector',
      summary: 'No longer lets people who sign in by an enterprise connector join the organization.',
      scope: 'organizations',
      params: params.extend({ ssoConnectorId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => jit.remove(context, 'ssoConnector', context.params.id, context.params.ssoConnectorId),
    }),
  ]
}
