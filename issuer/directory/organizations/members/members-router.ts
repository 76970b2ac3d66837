import { z } from 'zod'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, relatedStatus, unknownId } from '../../../base/errors/not-found.ts'
import { keywordQuery } from '../../../base/lists/keyword.ts'
import { type Route, route } from '../../../base/route.ts'
import { id, ids, someIdsAsSent } from '../../../base/schemas.ts'
import { application, toApplication } from '../../applications/application.ts'
import { findApplication } from '../../applications/application-store.ts'
import { toUser, user } from '../../users/user.ts'
import { findUser } from '../../users/user-store.ts'
import { organizationOperations } from '../operations.ts'
import { organization, toOrganization } from '../organization.ts'
import { organizationRoleName } from '../roles/organization-role.ts'
import { memberRolesRoutes } from './member-roles-router.ts'
import { listMembers, listOrganizationsOf, type MemberKind, type WithOrganizationRoles } from './member-store.ts'
import { memberOperations } from './members.ts'

const withRoles = { organizationRoles: z.array(organizationRoleName) }
const rolesOf = ({ organization_roles: organizationRoles }: WithOrganizationRoles) => ({ organizationRoles })

const userWithRoles = user.extend(withRoles)
const applicationWithRoles = application.extend(withRoles)

/** What differs between the two kinds of members. */
const kinds = {
  user: {
    path: 'users',
    param: 'userId',
    ids: 'userIds',
    noun: 'User',
    some: 'users',
    one: 'a user',
    member: userWithRoles as z.ZodType,
    unknown: notFound,
    exists: async (knex: ManagementDependencies['database']['knex'], id: string) =>
      (await findUser(knex, id)) !== undefined,
  },
  application: {
    path: 'applications',
    param: 'applicationId',
    ids: 'applicationIds',
    noun: 'Application',
    some: 'machine-to-machine applications',
    one: 'an application',
    member: applicationWithRoles as z.ZodType,
    unknown: unknownId,
    exists: async (knex: ManagementDependencies['database']['knex'], id: string) =>
      (await findApplication(knex, id)) !== undefined,
  },
} as const

export const membersRoutes = (dependencies: ManagementDependencies): Route[] => [
  ...routesOf(dependencies, 'user'),
  ...routesOf(dependencies, 'application'),
]

/**
 * The members of organizations of one kind, their roles there, and from the other side the organizations they belong
 * to.
 */
const routesOf = (dependencies: ManagementDependencies, kind: MemberKind): Route[] => {
  const { knex } = dependencies.database
  const organizations = organizationOperations(dependencies)
  const members = memberOperations(dependencies)
  const { path, param, ids: idsName, noun, some, one, member, unknown, exists } = kinds[kind]
  const params = z.object({ id })
  const list = `/organizations/:id/${path}`
  // Applications have `:id` in all their routes.
  const ownParam = kind === 'user' ? param : 'id'

  const listRows = async (organizationId: string, q: string | undefined, page: Parameters<typeof listMembers>[4]) => {
    if (kind === 'user') {
      const { rows, total } = await listMembers(knex, 'user', organizationId, q, page)
      return { body: rows.map((row) => ({ ...toUser(row), ...rolesOf(row) })), total }
    }
    const { rows, total } = await listMembers(knex, 'application', organizationId, q, page)
    return { body: rows.map((row) => ({ ...toApplication(row), ...rolesOf(row) })), total }
  }

  return [
    route({
      method: 'GET',
      path: list,
      operationId: `listOrganization${noun}s`,
      summary: `Lists the ${some} that belong to an organization, with their roles there; the last joined first.`,
      scope: 'organizations',
      params,
      query: keywordQuery,
      paged: 'always',
      status: 200,
      response: z.array(member),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query: { q }, page }) {
        await organizations.get(id)
        return listRows(id, q, page)
      },
    }),
    route({
      method: 'POST',
      path: list,
      operationId: `addOrganization${noun}s`,
      summary: `Adds ${some} to an organization; those that belong to it are left alone.`,
      scope: 'organizations',
      params,
      body: z.object({ [idsName]: someIdsAsSent }),
      status: 201,
      response: z.strictObject({ [idsName]: z.array(id) }),
      problems: ['entity.relation_foreign_key_not_found', ...misfits[kind]],
      problemStatuses: relatedStatus,
      async handle(context) {
        const sent = context.body[idsName] ?? []
        const answer = kind === 'user' ? { userIds: sent } : { applicationIds: sent }
        await members.add(context, kind, context.params.id, [...new Set(sent)], answer)
        return { body: answer }
      },
    }),
    route({
      method: 'PUT',
      path: list,
      operationId: `replaceOrganization${noun}s`,
      summary: `Lets exactly these ${some} belong to an organization; those that stay keep their roles.`,
      scope: 'organizations',
      params,
      body: z.object({ [idsName]: ids }),
      status: 204,
      problems: ['entity.relation_foreign_key_not_found', ...misfits[kind]],
      problemStatuses: relatedStatus,
      handle: (context) => members.set(context, kind, context.params.id, context.body[idsName]!),
    }),
    // Before `…/:userId`, which would take `roles` for an id.
    ...memberRolesRoutes(dependencies, { kind, path, param, idsName, noun, some, one }),
    route({
      method: 'DELETE',
      path: `${list}/:${param}`,
      operationId: `deleteOrganization${noun}`,
      summary: `Removes ${one} from an organization, with its roles there.`,
      scope: 'organizations',
      params: params.extend({ [param]: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => members.remove(context, kind, paramOf(context.params, 'id'), paramOf(context.params, param)),
    }),
    route({
      method: 'GET',
      path: `/${path}/:${ownParam}/organizations`,
      operationId: `list${noun}Organizations`,
      summary: `Lists the organizations that ${one} belongs to, with its roles there; the last joined first.`,
      scope: 'organizations',
      params: z.object({ [ownParam]: id }),
      query: keywordQuery,
      paged: 'optional',
      status: 200,
      response: z.array(organization.extend(withRoles)),
      problems: [kind === 'user' ? 'entity.not_found' : 'entity.not_exists_with_id'],
      async handle({ params, query: { q }, page }) {
        const memberId = paramOf(params, ownParam)
        if (!(await exists(knex, memberId))) throw unknown(memberId)
        const { rows, total } = await listOrganizationsOf(knex, kind, memberId, q, page)
        return { body: rows.map((row) => ({ ...toOrganization(row), ...rolesOf(row) })), total }
      },
    }),
  ]
}

const misfits = { user: [], application: ['application.invalid_type'] } as const

const paramOf = (params: Record<string, unknown>, name: string): string => params[name] as string
