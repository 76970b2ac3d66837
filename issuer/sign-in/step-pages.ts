import type { Query } from '../../platform/database/database.ts'
import { askedFor, asksForOrganizations } from '../interaction/consent.ts'
import { findConsentFacts, findMemberships } from '../interaction/consent-facts-store.ts'
import type { Interaction } from '../interaction/interaction-store.ts'
import type { Situation, Step, StepName } from '../interaction/next-step.ts'
import { findAccount } from '../interaction/person-store.ts'
import { consentPage, type Locale, type Page, type SignInError, selectAccountPage, signInPage } from '../pages/index.ts'
import type { FormPage, FormToken } from './form-token.ts'

/** A step as it is shown, before it has a page: what its form is about. */
export interface StepView {
  query: Query
  interaction: Interaction
  situation: Situation
  step: Step
  locale: Locale
  /** Where its form is sent. */
  action: string
  /** The CSRF value of a form. */
  tokenFor(token: FormToken): string
  /** What was sent before, and what was wrong with it. */
  entered?: Entered | undefined
}

export interface Entered {
  identifier?: string | undefined
  keep?: boolean | undefined
  error: SignInError
  minutes?: number | undefined
}

/** Undefined when there is nobody any more whom the page is about. */
type ShowStep = (view: StepView) => Promise<Page | undefined>

const clientOf = ({ interaction: { client } }: StepView) => ({ name: client.name, logoUri: client.logoUri })

const signIn: ShowStep = async (view) => {
  const { query, interaction, situation, step, locale, action, entered, tokenFor } = view
  const { session } = situation
  const again = (['login', 'max_age', 'acr'] as const).find((reason) => step.reasons.includes(reason))
  const isSamePerson =
    again !== undefined && !step.reasons.includes('another_account') && !step.reasons.includes('hint')
  const account = isSamePerson && session && !entered ? await findAccount(query, session.userId) : undefined
  return signInPage({
    locale,
    client: clientOf(view),
    action,
    csrf: tokenFor({ page: 'sign_in', subject: '' }),
    identifier: entered?.identifier ?? interaction.request.loginHint ?? account?.identifier,
    keep: entered?.keep ?? situation.state.keep,
    error: entered?.error,
    minutes: entered?.minutes,
    reasons: isSamePerson ? again : undefined,
    canCancel: true,
  })
}

const selectAccount: ShowStep = async (view) => {
  const { query, situation, locale, action, tokenFor } = view
  const { session } = situation
  const account = session && (await findAccount(query, session.userId))
  if (!account) return undefined
  return selectAccountPage({
    locale,
    client: clientOf(view),
    action,
    csrf: tokenFor({ page: 'select_account', subject: session.id }),
    account,
  })
}

const consent =
  (userId: string | undefined): ShowStep =>
  async (view) => {
    const { query, interaction, situation, locale, action, tokenFor } = view
    const account = userId === undefined ? undefined : await findAccount(query, userId)
    if (userId === undefined || !account) return undefined
    const asked = askedFor(situation)
    const facts = await findConsentFacts(query, asked)
    const described = new Map(facts.organizationScopes.map((scope) => [scope.name, scope.description]))
    const { request } = interaction
    return consentPage({
      locale,
      client: clientOf(view),
      action,
      csrf: tokenFor({ page: 'consent', subject: userId }),
      account,
      scopes: asked.scopes.map((name) => ({ name, description: described.get(name) ?? undefined })),
      resources: facts.resources.map(({ name, scopes }) => ({
        name,
        scopes: scopes.map((scope) => ({ name: scope.name, description: scope.description ?? undefined })),
      })),
      organizations: asksForOrganizations(request) ? await findMemberships(query, userId) : [],
      redirectHost: hostOf(request.redirectUri),
    })
  }

const hostOf = (redirectUri: string): string => {
  const { host, protocol } = new URL(redirectUri)
  return host || protocol
}

/** The pages of the steps that have one. */
export const stepPages: Readonly<Record<Extract<StepName, FormPage>, (userId: string | undefined) => ShowStep>> = {
  sign_in: () => signIn,
  select_account: () => selectAccount,
  consent,
}
