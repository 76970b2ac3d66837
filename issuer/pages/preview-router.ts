import { z } from 'zod'
import type { Database } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import { type Route, route } from '../base/route.ts'
import { readSetting } from '../base/settings-store.ts'
import {
  applicationExperience,
  signInExperience,
  signInExperiencePatch,
} from '../directory/sign-in-experience/sign-in-experience.ts'
import { brandingFrom } from './branding.ts'
import { consentPage } from './consent.ts'
import { errorPage } from './error.ts'
import { type Locale, locales } from './locale.ts'
import { logoutPage, signedOutPage } from './logout.ts'
import type { Page } from './page.ts'
import { previewOf } from './preview.ts'
import { selectAccountPage } from './select-account.ts'
import { signInPage } from './sign-in.ts'

/** Pages as people will see them, for whoever changes them: nothing is saved, and no form does anything. */

const client = { name: 'Acme' }
const account = { name: 'Ada Lovelace', identifier: 'ada@example.com' }
const form = { client, action: '#', csrf: '' }

const steps = {
  sign_in: (locale) => signInPage({ ...form, locale, canCancel: true }),
  sign_in_error: (locale) =>
    signInPage({ ...form, locale, identifier: account.identifier, error: 'invalid_credentials', canCancel: true }),
  select_account: (locale) => selectAccountPage({ ...form, locale, account }),
  consent: (locale) =>
    consentPage({
      ...form,
      locale,
      account,
      scopes: ['openid', 'profile', 'email'].map((name) => ({ name })),
      resources: [],
      organizations: [],
      redirectHost: 'app.example.com',
    }),
  error: (locale) => errorPage({ locale, problem: 'expired', requestId: 'preview', client }),
  logout: (locale) => logoutPage({ ...form, locale, account }),
  signed_out: (locale) => signedOutPage({ locale, client }),
} as const satisfies Record<string, (locale: Locale) => Page>
type StepName = keyof typeof steps

/** Which page, and how. */
export const previewQuery = z.object({
  step: z.enum(Object.keys(steps) as [StepName, ...StepName[]]).default('sign_in'),
  locale: z.enum(locales as [Locale, ...Locale[]]).default('en'),
  theme: z.enum(['light', 'dark']).default('light'),
})

const response = z.object({ html: z.string().describe('For `srcdoc` of a frame with `sandbox=""`.') })

export const unsavedSettings = z.object({
  experience: signInExperiencePatch.optional(),
  application: applicationExperience.partial().optional(),
})

/** A page with settings that are not saved. */
export const previewUnsaved = (
  { step, locale, theme }: z.output<typeof previewQuery>,
  { experience = {}, application }: z.output<typeof unsavedSettings>,
): string => {
  const parsed = signInExperience.schema.safeParse(experience)
  const own = applicationExperience.safeParse(application ?? {})
  if (!parsed.success || !own.success) throw problem('guard.invalid_input')
  return previewOf(steps[step](locale), brandingFrom(parsed.data, application && own.data), theme)
}

export interface PreviewDependencies {
  database: Pick<Database, 'query'>
}

export const previewRoutes = ({ database }: PreviewDependencies): Route[] => [
  route({
    method: 'GET',
    path: '/sign-in-exp/preview',
    operationId: 'getSignInPreview',
    summary: 'Shows a page as the settings have it.',
    scope: 'sign-in',
    query: previewQuery,
    status: 200,
    response,
    async handle({ query: { step, locale, theme } }) {
      const branding = brandingFrom(await readSetting(database.query, signInExperience), undefined)
      return { body: { html: previewOf(steps[step](locale), branding, theme) } }
    },
  }),
  route({
    method: 'POST',
    path: '/sign-in-exp/preview',
    operationId: 'previewSignIn',
    summary: 'Shows a page with settings that are not saved. Members that are missing have their defaults.',
    scope: 'sign-in',
    query: previewQuery,
    body: unsavedSettings,
    status: 200,
    response,
    idempotency: 'none',
    problems: ['sign_in_experiences.custom_css_not_allowed'],
    handle: async ({ query, body }) => ({ body: { html: previewUnsaved(query, body) } }),
  }),
]
