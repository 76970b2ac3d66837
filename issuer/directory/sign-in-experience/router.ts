import { z } from 'zod'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { type SignInExperienceDependencies, signInExperienceOperations } from './operations.ts'
import { applicationExperience, signInExperience, signInExperiencePatch } from './sign-in-experience.ts'

const params = z.object({ id })

// As Logto's has them; one issuer has one record.
const record = signInExperience.schema.extend({ tenantId: z.string(), id: z.string() })
const applicationRecord = applicationExperience.extend({ tenantId: z.string(), applicationId: z.string() })
const identified = { tenantId: 'default', id: 'default' }

const ofBranding = ['sign_in_experiences.custom_css_not_allowed', 'sign_in_experiences.asset_not_found'] as const

export const signInExperienceRoutes = (dependencies: SignInExperienceDependencies): Route[] => {
  const experiences = signInExperienceOperations(dependencies)
  return [
    route({
      method: 'GET',
      path: '/sign-in-exp',
      operationId: 'getSignInExperience',
      summary: 'Reads how people sign in and what the pages look like, defaults filled in.',
      scope: 'sign-in',
      status: 200,
      response: record,
      handle: async () => ({ body: { ...identified, ...(await experiences.read()) } }),
    }),
    route({
      method: 'PATCH',
      path: '/sign-in-exp',
      operationId: 'updateSignInExperience',
      summary: 'Sets how people sign in and what the pages look like. A member that is sent replaces the one there is.',
      scope: 'sign-in',
      body: signInExperiencePatch,
      status: 200,
      response: record,
      problems: [
        'sign_in_experiences.backup_code_cannot_be_enabled_alone',
        'sign_in_experiences.duplicated_mfa_factors',
        'sign_in_experiences.at_least_one_authentication_factor',
        'sign_in_experiences.username_requires_password',
        'sign_in_experiences.passwordless_requires_verify',
        'sign_in_experiences.miss_sign_up_identifier_in_sign_in',
        'sign_in_experiences.password_sign_in_must_be_enabled',
        'sign_in_experiences.code_sign_in_must_be_enabled',
        'sign_in_experiences.invalid_custom_email_blocklist_format',
        'sign_in_experiences.sign_in_pages_not_same_site',
        ...ofBranding,
      ],
      handle: async (context) => ({ body: { ...identified, ...(await experiences.update(context, context.body)) } }),
    }),
    route({
      method: 'GET',
      path: '/applications/:id/sign-in-experience',
      operationId: 'getApplicationSignInExperience',
      summary: 'Reads what an application has of its own on the pages.',
      scope: 'sign-in',
      params,
      status: 200,
      response: applicationRecord,
      problems: ['entity.not_exists_with_id'],
      handle: async ({ params: { id: applicationId } }) => ({
        body: { tenantId: 'default', applicationId, ...(await experiences.readOf(applicationId)) },
      }),
    }),
    route({
      method: 'PATCH',
      path: '/applications/:id/sign-in-experience',
      operationId: 'updateApplicationSignInExperience',
      summary: 'Sets what an application has of its own on the pages, above what the issuer has.',
      scope: 'sign-in',
      params,
      body: applicationExperience.partial(),
      status: 200,
      response: applicationRecord,
      problems: ['entity.not_exists_with_id', 'sign_in_experiences.sign_in_pages_not_same_site', ...ofBranding],
      async handle(context) {
        const { id: applicationId } = context.params
        const experience = await experiences.updateOf(context, applicationId, context.body)
        return { body: { tenantId: 'default', applicationId, ...experience } }
      },
    }),
  ]
}
