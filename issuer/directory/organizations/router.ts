import { z } from 'zod'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { keyword } from '../../base/lists/keyword.ts'
import { booleanText } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { organizationOperations } from './operations.ts'
import {
  featuredOrganization,
  newOrganization,
  organization,
  organizationPatch,
  toFeaturedOrganization,
  toOrganization,
} from './organization.ts'
import { listFeaturedOrganizations, listOrganizations } from './organization-store.ts'

const params = z.object({ id })

export const organizationsRoutes = (dependencies: ManagementDependencies): Route[] => {
  const { knex } = dependencies.database
  const organizations = organizationOperations(dependencies)

  return [
    route({
      method: 'GET',
      path: '/organizations',
      operationId: 'listOrganizations',
      summary: 'Lists organizations, newest first; with `showFeatured`, each with how many users are members.',
      scope: 'organizations',
      query: z.object({ q: keyword, showFeatured: booleanText.default(false) }),
      paged: 'always',
      status: 200,
      response: z.array(featuredOrganization),
      async handle({ query: { q, showFeatured }, page }) {
        if (!showFeatured) {
          const { rows, total } = await listOrganizations(knex, q, page)
          return { body: rows.map(toOrganization), total }
        }
        const { rows, total } = await listFeaturedOrganizations(knex, q, page)
        return { body: rows.map(toFeaturedOrganization), total }
      },
    }),
    route({
      method: 'POST',
      path: '/organizations',
      operationId: 'createOrganization',
      summary: 'Creates an organization without members.',
      scope: 'organizations',
      body: newOrganization,
      status: 201,
      response: organization,
      problems: ['entity.value_too_long'],
      handle: async (context) => ({ body: await organizations.create(context, context.body) }),
    }),
    route({
      method: 'GET',
      path: '/organizations/:id',
      operationId: 'getOrganization',
      summary: 'Reads an organization.',
      scope: 'organizations',
      params,
      status: 200,
      response: organization,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id } }) => ({ body: await organizations.get(id) }),
    }),
    route({
      method: 'PATCH',
      path: '/organizations/:id',
      operationId: 'updateOrganization',
      summary: 'Changes an organization; objects are replaced as a whole.',
      scope: 'organizations',
      params,
      body: organizationPatch,
      status: 200,
      response: organization,
      problems: ['entity.not_exists_with_id', 'entity.invalid_input', 'entity.value_too_long'],
      handle: async (context) => ({ body: await organizations.update(context, context.params.id, context.body) }),
    }),
    route({
      method: 'DELETE',
      path: '/organizations/:id',
      operationId: 'deleteOrganization',
      summary: 'Deletes an organization; its users and applications remain.',
      scope: 'organizations',
      freshProof: true,
      params,
      status: 204,
      problems: ['entity.not_found'],
      handle: (context) => organizations.delete(context, context.params.id),
    }),
  ]
}
