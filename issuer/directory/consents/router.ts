import { z } from 'zod'
import { type Route, route } from '../../base/route.ts'
import { id, ids, someIds } from '../../base/schemas.ts'
import { organization, toOrganization } from '../organizations/organization.ts'
import { consentScopeKind, consentScopes, newConsentScopes } from './consent-scopes.ts'
import { type ConsentDependencies, consentOperations } from './operations.ts'

const ofApplication = z.object({ applicationId: id })
const ofScope = ofApplication.extend({ scopeType: consentScopeKind, scopeId: z.string().min(1).max(256) })
const ofPerson = z.object({ id, userId: id })
const ofOrganization = ofPerson.extend({ organizationId: id })
const between = ({ id: clientId, userId }: z.output<typeof ofPerson>) => ({ clientId, userId })

const applicationProblems = ['entity.not_exists_with_id', 'application.third_party_application_only'] as const

export const consentsRoutes = (dependencies: ConsentDependencies): Route[] => {
  const consents = consentOperations(dependencies)
  const ofPair = '/applications/:id/users/:userId/consent-organizations'

  return [
    route({
      method: 'GET',
      path: '/applications/:applicationId/user-consent-scopes',
      operationId: 'listApplicationUserConsentScopes',
      summary: 'Lists what a third-party application may ask people for.',
      scope: 'applications',
      params: ofApplication,
      status: 200,
      response: consentScopes,
      problems: applicationProblems,
      handle: async ({ params: { applicationId } }) => ({ body: await consents.listScopes(applicationId) }),
    }),
    route({
      method: 'POST',
      path: '/applications/:applicationId/user-consent-scopes',
      operationId: 'addApplicationUserConsentScopes',
      summary: 'Lets a third-party application ask people for more; what it may ask for already is left alone.',
      scope: 'applications',
      params: ofApplication,
      body: newConsentScopes,
      status: 201,
      problems: [
        ...applicationProblems,
        'application.user_consent_scopes_not_found',
        'application.consent_management_api_scopes_not_allowed',
      ],
      handle: (context) => consents.addScopes(context, context.params.applicationId, context.body),
    }),
    route({
      method: 'DELETE',
      path: '/applications/:applicationId/user-consent-scopes/:scopeType/:scopeId',
      operationId: 'removeApplicationUserConsentScope',
      summary: 'Lets a third-party application ask for this no more; what people allowed of it ends at the next refresh.',
      scope: 'applications',
      params: ofScope,
      status: 204,
      problems: [...applicationProblems, 'entity.not_found'],
      handle: (context) => {
        const { applicationId, scopeType, scopeId } = context.params
        return consents.removeScope(context, applicationId, scopeType, scopeId)
      },
    }),
    route({
      method: 'GET',
      path: ofPair,
      operationId: 'listConsentOrganizations',
      summary: 'Lists the organizations in which a user allowed a third-party application to act.',
      scope: 'applications',
      params: ofPerson,
      paged: 'optional',
      status: 200,
      response: z.object({ organizations: z.array(organization) }),
      problems: applicationProblems,
      async handle({ params, page }) {
        const { rows, total } = await consents.listOrganizations(between(params), page)
        return { body: { organizations: rows.map(toOrganization) }, total }
      },
    }),
    route({
      method: 'PUT',
      path: ofPair,
      operationId: 'replaceConsentOrganizations',
      summary: 'Lets a third-party application act for a user in exactly these organizations of theirs.',
      scope: 'applications',
      params: ofPerson,
      body: z.object({ organizationIds: ids }),
      status: 204,
      problems: [...applicationProblems, 'entity.not_found', 'organization.require_membership'],
      handle: (context) =>
        consents.replaceOrganizations(context, between(context.params), context.body.organizationIds),
    }),
    route({
      method: 'POST',
      path: ofPair,
      operationId: 'addConsentOrganizations',
      summary: 'Lets a third-party application act for a user in more organizations of theirs.',
      scope: 'applications',
      params: ofPerson,
      body: z.object({ organizationIds: someIds }),
      status: 201,
      problems: [...applicationProblems, 'entity.not_found', 'organization.require_membership'],
      handle: (context) => consents.addOrganizations(context, between(context.params), context.body.organizationIds),
    }),
    route({
      method: 'DELETE',
      path: `${ofPair}/:organizationId`,
      operationId: 'removeConsentOrganization',
      summary: 'Lets a third-party application act for a user in this organization no more.',
      scope: 'applications',
      params: ofOrganization,
      status: 204,
      problems: [...applicationProblems, 'entity.not_found'],
      handle: (context) =>
        consents.removeOrganization(context, between(context.params), context.params.organizationId),
    }),
  ]
}
