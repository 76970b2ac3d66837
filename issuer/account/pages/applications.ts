import type { Query } from '../../../platform/database/database.ts'
import { onlyValue } from '../../base/read-form.ts'
import { findConsentFacts, findMemberships } from '../../interaction/consent-facts-store.ts'
import { type ApplicationOnPage, applicationsPage } from '../../pages/account/index.ts'
import type { AccountApplication } from '../operations/applications-store.ts'
import type { AccountPage } from './account-page.ts'
import { unless } from './unless.ts'

/** What has access to the account. */
export const applications: AccountPage = {
  path: '/account/applications',
  title: 'accountApplications',
  group: 'access',
  isShown: ({ settings }) => settings.session !== 'Off',
  needsConfirmation: true,

  async show({ query, operations, person, shell }) {
    const rows = await operations.applications.list(person)
    const organizations = rows.some((row) => row.organizations.length > 0)
      ? await findMemberships(query, person.userId)
      : []
    const shown: ApplicationOnPage[] = []
    for (const row of rows) shown.push(await inWords(query, row, organizations))
    return applicationsPage(shell, { applications: shown })
  },

  choices: {
    async end({ operations, form, context, done }) {
      const ended = operations.applications.end(context('endMyApplication'), onlyValue(form, 'id') ?? '')
      await unless(ended, 'oidc.invalid_grant')
      done('accountApplicationEnded')
    },
  },
}

const inWords = async (
  query: Query,
  { clientId, name, logoUri, isThirdParty, isOffline, since, scopes, resources, organizations }: AccountApplication,
  memberships: readonly { id: string; name: string }[],
): Promise<ApplicationOnPage> => {
  const asked = Object.fromEntries(resources.map((indicator) => [indicator, scopes]))
  const facts = await findConsentFacts(query, { scopes, resources: asked })
  const described = (scope: { name: string; description: string | null }) => ({
    name: scope.name,
    description: scope.description ?? undefined,
  })
  const ofResources = new Set(facts.resources.flatMap((resource) => resource.scopes.map((scope) => scope.name)))
  const ofOrganizations = new Map(facts.organizationScopes.map((scope) => [scope.name, described(scope)]))
  return {
    id: clientId,
    ...{ name, isThirdParty, isOffline, since },
    logoUri: logoUri ?? undefined,
    scopes: scopes
      .filter((scope) => !ofResources.has(scope) && scope !== 'offline_access')
      .map((scope) => ofOrganizations.get(scope) ?? { name: scope }),
    resources: facts.resources.map((resource) => ({ name: resource.name, scopes: resource.scopes.map(described) })),
    organizations: memberships.filter(({ id }) => organizations.includes(id)).map((one) => one.name),
  }
}
