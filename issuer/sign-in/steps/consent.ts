import { onlyValue } from '../../base/read-form.ts'
import { askedFor, asksForOrganizations } from '../../interaction/consent.ts'
import { findConsentFacts, findMemberships } from '../../interaction/consent-facts-store.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { newPerson, whoIsIt } from '../../interaction/situation.ts'
import { consentPage } from '../../pages/index.ts'
import { clientOf, type SignInStep, type StepView } from './step.ts'

/** What a third-party application may do; and whose device somebody signs in. */
export const consent: SignInStep<never> = {
  async show(view) {
    const { query, interaction, situation, locale, action, csrf } = view
    const known = whoIsIt(situation)
    const isNew = known === undefined && interaction.event === 'Register'
    const userId = isNew ? newPerson : known
    const account = isNew ? newAccount(view) : known === undefined ? undefined : await findAccount(query, known)
    if (userId === undefined || !account) return undefined
    const asked = askedFor(situation)
    const facts = await findConsentFacts(query, asked)
    const described = new Map(facts.organizationScopes.map((scope) => [scope.name, scope.description]))
    const { request } = interaction
    return consentPage({
      locale,
      client: clientOf(view),
      action,
      csrf: csrf(userId),
      account,
      scopes: asked.scopes.map((name) => ({ name, description: described.get(name) ?? undefined })),
      resources: facts.resources.map(({ name, scopes }) => ({
        name,
        scopes: scopes.map((scope) => ({ name: scope.name, description: scope.description ?? undefined })),
      })),
      organizations: asksForOrganizations(request) && !isNew ? await findMemberships(query, userId) : [],
      redirectHost: hostOf(request.redirectUri),
      device: request.device && {
        isOurs: !interaction.client.isThirdParty,
        address: request.device.address,
        minutesAgo: (Date.now() - request.device.askedAt) / 60_000,
      },
    })
  },

  async submit({ query, operations, interaction, form, token, goOn, reload, refuse }) {
    const choice = onlyValue(form, 'choice')
    if (choice === 'another' && token.subject === newPerson) {
      await operations.staging.begin(interaction, 'SignIn')
      return reload()
    }
    if (choice === 'another') return goOn({ account: false })
    const isAllowed = choice === 'allow'
    const asked = asksForOrganizations(interaction.request)
    const organizationIds = isAllowed && asked ? [...new Set(form.get('organizationIds') ?? [])] : []
    if (organizationIds.length > 0) {
      const memberships = new Set((await findMemberships(query, token.subject)).map(({ id }) => id))
      if (!organizationIds.every((id) => memberships.has(id))) return refuse()
    }
    await goOn({ consent: { userId: token.subject, isAllowed, organizationIds } })
  },
}

/** What an account that is being made will be known by. */
const newAccount = ({ situation: { staged, proofs } }: StepView) => {
  const address = proofs.find(({ data }) => data.identifier)?.data.identifier
  const shown = address?.type === 'phone' ? `+${address.value}` : address?.value
  const identifier = shown ?? staged.username ?? ''
  return { name: staged.username ?? identifier, identifier }
}

const hostOf = (redirectUri: string): string => {
  const { host, protocol } = new URL(redirectUri)
  return host || protocol
}
