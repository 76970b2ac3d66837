import { z } from 'zod'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { listQuery } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id, ids, someIds } from '../../base/schemas.ts'
import { application, applicationSearchFields, toApplication } from '../applications/application.ts'
import { listApplications } from '../applications/application-store.ts'
import { type ApplicationDependencies, applicationOperations } from '../applications/operations.ts'
import { roleOperations } from '../roles/operations.ts'
import { role, roleSearchFields, toRole } from '../roles/role.ts'
import { listRoles } from '../roles/role-store.ts'
import { toUser, user, userSearchFields } from '../users/user.ts'
import { findUser, listUsers } from '../users/user-store.ts'
import { assignmentOperations } from './operations.ts'

const params = z.object({ id })
const ofUser = z.object({ userId: id })
const roleIdsAnswer = z.strictObject({ roleIds: z.array(id) })
const addedRolesAnswer = roleIdsAnswer.extend({ addedRoleIds: z.array(id) })

/** Who has which role: of a user, of an application, and from the side of the role. */
export const roleAssignmentsRoutes = (dependencies: ApplicationDependencies): Route[] => {
  const { knex } = dependencies.database
  const roles = roleOperations(dependencies)
  const applications = applicationOperations(dependencies)
  const assignments = assignmentOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/users/:userId/roles',
      operationId: 'listUserRoles',
      summary: 'Lists the roles of a user.',
      scope: 'rbac',
      params: ofUser,
      query: listQuery(roleSearchFields, {}),
      paged: 'always',
      status: 200,
      response: z.array(role),
      problems: ['entity.not_found'],
      async handle({ params: { userId }, query, page }) {
        requireFound(await findUser(knex, userId), userId, notFound)
        const { rows, total } = await listRoles(knex, { ...query, userId }, page)
        return { body: rows.map(toRole), total }
      },
    }),
    route({
      method: 'POST',
      path: '/users/:userId/roles',
      operationId: 'addUserRoles',
      summary: 'Gives a user roles; those that the user has are left alone.',
      scope: 'rbac',
      params: ofUser,
      body: z.object({ roleIds: someIds }),
      status: 201,
      response: addedRolesAnswer,
      problems: ['entity.not_found', 'entity.not_exists_with_id', 'user.invalid_role_type'],
      async handle(context) {
        const { roleIds } = context.body
        const addedRoleIds = await assignments.addRoles(context, 'user', context.params.userId, roleIds)
        return { body: { roleIds, addedRoleIds } }
      },
    }),
    route({
      method: 'PUT',
      path: '/users/:userId/roles',
      operationId: 'replaceUserRoles',
      summary: 'Gives a user exactly these roles.',
      scope: 'rbac',
      params: ofUser,
      body: z.object({ roleIds: ids }),
      status: 200,
      response: roleIdsAnswer,
      problems: ['entity.not_found', 'entity.not_exists_with_id', 'user.invalid_role_type'],
      async handle(context) {
        await assignments.setRoles(context, 'user', context.params.userId, context.body.roleIds)
        return { body: { roleIds: context.body.roleIds } }
      },
    }),
    route({
      method: 'DELETE',
      path: '/users/:userId/roles/:roleId',
      operationId: 'deleteUserRole',
      summary: 'Takes a role from a user.',
      scope: 'rbac',
      params: ofUser.extend({ roleId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => assignments.remove(context, 'user', context.params.userId, context.params.roleId),
    }),
    route({
      method: 'GET',
      path: '/applications/:id/roles',
      operationId: 'listApplicationRoles',
      summary: 'Lists the roles of a machine-to-machine application.',
      scope: 'rbac',
      params,
      query: listQuery(roleSearchFields, {}),
      paged: 'optional',
      status: 200,
      response: z.array(role),
      problems: ['entity.not_exists_with_id', 'application.invalid_type'],
      async handle({ params: { id }, query, page }) {
        await applications.requireMachineToMachine(id)
        const { rows, total } = await listRoles(knex, { ...query, applicationId: id }, page)
        return { body: rows.map(toRole), total }
      },
    }),
    route({
      method: 'POST',
      path: '/applications/:id/roles',
      operationId: 'addApplicationRoles',
      summary: 'Gives a machine-to-machine application roles; those that it has are left alone.',
      scope: 'rbac',
      params,
      body: z.object({ roleIds: someIds }),
      status: 201,
      response: addedRolesAnswer,
      problems: [
        'entity.not_found',
        'entity.not_exists_with_id',
        'application.invalid_type',
        'application.invalid_role_type',
      ],
      async handle(context) {
        const { roleIds } = context.body
        const addedRoleIds = await assignments.addRoles(context, 'application', context.params.id, roleIds)
        return { body: { roleIds, addedRoleIds } }
      },
    }),
    route({
      method: 'PUT',
      path: '/applications/:id/roles',
      operationId: 'replaceApplicationRoles',
      summary: 'Gives a machine-to-machine application exactly these roles.',
      scope: 'rbac',
      params,
      body: z.object({ roleIds: ids }),
      status: 200,
      response: roleIdsAnswer,
      problems: [
        'entity.not_found',
        'entity.not_exists_with_id',
        'application.invalid_type',
        'application.invalid_role_type',
      ],
      async handle(context) {
        await assignments.setRoles(context, 'application', context.params.id, context.body.roleIds)
        return { body: { roleIds: context.body.roleIds } }
      },
    }),
    route({
      method: 'DELETE',
      path: '/applications/:id/roles/:roleId',
      operationId: 'deleteApplicationRole',
      summary: 'Takes a role from an application.',
      scope: 'rbac',
      params: params.extend({ roleId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => assignments.remove(context, 'application', context.params.id, context.params.roleId),
    }),
    route({
      method: 'GET',
      path: '/roles/:id/users',
      operationId: 'listRoleUsers',
      summary: 'Lists the users who have a role.',
      scope: 'rbac',
      params,
      query: listQuery(userSearchFields, {}),
      paged: 'always',
      status: 200,
      response: z.array(user),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query, page }) {
        await roles.get(id)
        const { rows, total } = await listUsers(knex, { ...query, roleId: id }, page)
        return { body: rows.map(toUser), total }
      },
    }),
    route({
      method: 'POST',
      path: '/roles/:id/users',
      operationId: 'addRoleUsers',
      summary: 'Gives a role to users.',
      scope: 'rbac',
      params,
      body: z.object({ userIds: someIds }),
      status: 201,
      problems: ['entity.not_exists_with_id', 'entity.not_found', 'role.user_exists', 'entity.db_constraint_violated'],
      handle: (context) => assignments.addHolders(context, 'user', context.params.id, context.body.userIds),
    }),
    route({
      method: 'DELETE',
      path: '/roles/:id/users/:userId',
      operationId: 'deleteRoleUser',
      summary: 'Takes a role from a user.',
      scope: 'rbac',
      params: params.extend({ userId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => assignments.remove(context, 'user', context.params.userId, context.params.id),
    }),
    route({
      method: 'GET',
      path: '/roles/:id/applications',
      operationId: 'listRoleApplications',
      summary: 'Lists the applications that have a role.',
      scope: 'rbac',
      params,
      query: listQuery(applicationSearchFields, {}),
      paged: 'always',
      status: 200,
      response: z.array(application),
      problems: ['entity.not_exists_with_id'],
      async handle({ params: { id }, query, page }) {
        await roles.get(id)
        const { rows, total } = await listApplications(knex, { ...query, roleId: id }, page)
        return { body: rows.map(toApplication), total }
      },
    }),
    route({
      method: 'POST',
      path: '/roles/:id/applications',
      operationId: 'addRoleApplications',
      summary: 'Gives a role to machine-to-machine applications.',
      scope: 'rbac',
      params,
      body: z.object({ applicationIds: someIds }),
      status: 201,
      problems: [
        'entity.not_exists_with_id',
        'entity.not_found',
        'role.application_exists',
        'entity.db_constraint_violated',
        'application.invalid_type',
      ],
      handle: (context) =>
        assignments.addHolders(context, 'application', context.params.id, context.body.applicationIds),
    }),
    route({
      method: 'DELETE',
      path: '/roles/:id/applications/:applicationId',
      operationId: 'deleteRoleApplication',
      summary: 'Takes a role from an application.',
      scope: 'rbac',
      params: params.extend({ applicationId: id }),
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => assignments.remove(context, 'application', context.params.applicationId, context.params.id),
    }),
  ]
}
