import { z } from 'zod'
import { booleanText, listQuery } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id, jsonObject } from '../../base/schemas.ts'
import {
  application,
  applicationDetails,
  applicationPatch,
  applicationSearchFields,
  applicationType,
  createdApplication,
  newApplication,
  toApplication,
} from './application.ts'
import { listApplications } from './application-store.ts'
import { type ApplicationDependencies, applicationOperations } from './operations.ts'
import { applicationSecret, createdSecret, newSecret, secretPatch } from './secret.ts'
import { secretOperations } from './secret-operations.ts'

const params = z.object({ id })
const ofSecret = params.extend({ name: z.string().min(1).max(256) })
const typeProblems = [
  'application.invalid_type',
  'application.device_flow_native_only',
  'application.device_flow_not_changeable',
  'application.algorithm_not_of_profile',
  'application.third_party_application_cannot_enable_token_exchange',
] as const

export const applicationsRoutes = (dependencies: ApplicationDependencies): Route[] => {
  const { knex } = dependencies.database
  const applications = applicationOperations(dependencies)
  const secrets = secretOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/applications',
      operationId: 'listApplications',
      summary: 'Lists applications, newest first.',
      scope: 'applications',
      query: listQuery(applicationSearchFields, {
        types: z.union([applicationType.transform((type) => [type]), z.array(applicationType)]).optional(),
        isThirdParty: booleanText.optional(),
        excludeRoleId: id.optional(),
        excludeOrganizationId: id.optional(),
      }),
      paged: 'optional',
      status: 200,
      response: z.array(application),
      async handle({ query, page }) {
        const { rows, total } = await listApplications(knex, query, page)
        return { body: rows.map(toApplication), total }
      },
    }),
    route({
      method: 'POST',
      path: '/applications',
      operationId: 'createApplication',
      summary: 'Registers an application. One that can keep a secret gets its first, whose value is shown only here.',
      scope: 'applications',
      body: newApplication,
      status: 200,
      response: createdApplication,
      problems: [...typeProblems, 'entity.value_too_long'],
      handle: async (context) => ({ body: await applications.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/applications/:id',
      operationId: 'getApplication',
      summary: 'Reads an application.',
      scope: 'applications',
      params,
      status: 200,
      response: applicationDetails,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await applications.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/applications/:id',
      operationId: 'updateApplication',
      summary: 'Changes an application; objects are replaced as a whole.',
      scope: 'applications',
      params,
      body: applicationPatch,
      status: 200,
      response: application,
      problems: [
        'entity.value_too_long',
        'entity.not_exists_with_id',
        'entity.invalid_input',
        'application.console_not_changeable',
        ...typeProblems,
      ],
      handle: async (context) => ({ body: await applications.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/applications/:id',
      operationId: 'deleteApplication',
      summary: 'Deletes an application and its secrets.',
      scope: 'applications',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found', 'application.console_not_changeable'],
      handle: (context) => applications.delete(context, context.params.id),
    }),
    route({
      method: 'PATCH',
      path: '/applications/:id/custom-data',
      operationId: 'updateApplicationCustomData',
      summary: 'Merges the body into the custom data of an application, at the first level.',
      scope: 'applications',
      params,
      body: jsonObject,
      status: 200,
      response: jsonObject,
      problems: ['entity.value_too_long', 'entity.not_exists_with_id', 'application.console_not_changeable'],
      handle: async (context) => ({
        body: await applications.mergeCustomData(context, context.params.id, context.body),
      }),
    }),
    route({
      method: 'GET',
      path: '/applications/:id/secrets',
      operationId: 'listApplicationSecrets',
      summary: 'Lists the secrets of an application, without their values.',
      scope: 'applications',
      secret: true,
      params,
      status: 200,
      response: z.array(applicationSecret),
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await secrets.list(id) }),
    }),
    route({
      method: 'POST',
      path: '/applications/:id/secrets',
      operationId: 'createApplicationSecret',
      summary: 'Makes another secret; its value is shown only here.',
      scope: 'applications',
      freshProof: true,
      params,
      body: newSecret,
      status: 201,
      response: createdSecret,
      problems: [
        'entity.not_exists_with_id',
        'application.secret_name_exists',
        'application.console_not_changeable',
        'entity.db_constraint_violated',
      ],
      handle: async (context) => ({ body: await secrets.create(context, context.params.id, context.body) }),
    }),
    route({
      method: 'PATCH',
      path: '/applications/:id/secrets/:name',
      operationId: 'updateApplicationSecret',
      summary: 'Renames a secret, or changes when it expires.',
      scope: 'applications',
      params: ofSecret,
      body: secretPatch,
      status: 200,
      response: applicationSecret,
      problems: [
        'entity.not_exists_with_id',
        'entity.not_found',
        'entity.invalid_input',
        'application.secret_name_exists',
      ],
      handle: async (context) => ({
        body: await secrets.update(context, context.params.id, context.params.name, context.body),
      }),
    }),
    route({
      method: 'DELETE',
      path: '/applications/:id/secrets/:name',
      operationId: 'deleteApplicationSecret',
      summary: 'Deletes a secret, which then no longer authenticates.',
      scope: 'applications',
      freshProof: true,
      params: ofSecret,
      status: 204,
      problems: ['entity.not_exists_with_id', 'entity.not_found'],
      handle: (context) => secrets.delete(context, context.params.id, context.params.name),
    }),
  ]
}
