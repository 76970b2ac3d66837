import type { Knex } from 'knex'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Page } from '../../base/lists/list-store.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import { findConsent } from '../../tokens/consents/consent-store.ts'
import type { ApplicationRow } from '../applications/application.ts'
import { findApplication, lockApplication } from '../applications/application-store.ts'
import { findUser, lockUser } from '../users/user-store.ts'
import { listConsentOrganizations, membershipsAmong, setConsentOrganizations } from './consent-organization-store.ts'
import {
  addConsentScopes,
  findConsentScopes,
  managementScopesAmong,
  removeConsentScope,
} from './consent-scope-store.ts'
import type { ConsentScopeKind, ConsentScopes, NewConsentScopes } from './consent-scopes.ts'

export interface ConsentDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
}

interface Between {
  clientId: string
  userId: string
}

const thirdParty = (row: ApplicationRow | undefined, id: string): ApplicationRow => {
  const found = requireFound(row, id)
  if (!found.is_third_party) throw problem('application.third_party_application_only')
  return found
}

const bodyNames = {
  'organization-scopes': 'organizationScopes',
  'resource-scopes': 'resourceScopes',
  'organization-resource-scopes': 'organizationResourceScopes',
  'user-scopes': 'userScopes',
} as const satisfies Record<ConsentScopeKind, keyof NewConsentScopes>

/** What third-party applications may ask people for, and the organizations that people allowed them. */
export const consentOperations = ({ database: { query, knex }, mutate }: ConsentDependencies) => {
  const changeOrganizations = (
    context: OperationContext,
    { clientId, userId }: Between,
    organizationsAfter: (before: readonly string[]) => readonly string[],
  ) =>
    mutate(context, async ({ trx }) => {
      await requirePair(trx, { clientId, userId })
      await lockUser(trx, userId)
      const consent = await findConsent(trx, userId, clientId)
      if (!consent) throw notFound(clientId)
      const after = [...new Set(organizationsAfter(consent.organizations))]
      const added = after.filter((id) => !consent.organizations.includes(id))
      const joined = await membershipsAmong(queryOf(trx), userId, added)
      if (joined.length < added.length) throw problem('organization.require_membership')
      await setConsentOrganizations(trx, { userId, clientId }, after)
    })

  const requirePair = async (on: Knex, { clientId, userId }: Between) => {
    thirdParty(await findApplication(on, clientId), clientId)
    requireFound(await findUser(on, userId), userId)
  }

  return {
    async listScopes(applicationId: string): Promise<ConsentScopes> {
      thirdParty(await findApplication(knex, applicationId), applicationId)
      return findConsentScopes(query, applicationId)
    },

    /** Those that it may ask for already are left alone. */
    addScopes: (context: OperationContext, applicationId: string, input: NewConsentScopes): Promise<void> =>
      mutate(context, async ({ trx }) => {
        thirdParty(await lockApplication(trx, applicationId), applicationId)
        const named = [...input.resourceScopes, ...input.organizationResourceScopes]
        if ((await managementScopesAmong(queryOf(trx), named)).length > 0)
          throw problem('application.consent_management_api_scopes_not_allowed')
        for (const [kind, name] of Object.entries(bodyNames) as [ConsentScopeKind, keyof NewConsentScopes][]) {
          const found = await addConsentScopes(queryOf(trx), applicationId, kind, input[name])
          const unknown = input[name].filter((id) => !found.some((one) => one.id === id))
          if (unknown.length > 0) throw problem('application.user_consent_scopes_not_found', { data: { ids: unknown } })
        }
      }),

    /** What people allowed of it counts no more. */
    removeScope: (
      context: OperationContext,
      applicationId: string,
      kind: ConsentScopeKind,
      scopeId: string,
    ): Promise<void> =>
      mutate(context, async ({ trx }) => {
        thirdParty(await lockApplication(trx, applicationId), applicationId)
        if (!(await removeConsentScope(queryOf(trx), applicationId, kind, scopeId))) throw notFound(scopeId)
      }),

    async listOrganizations(between: Between, page: Page | undefined) {
      await requirePair(knex, between)
      return listConsentOrganizations(knex, between, page)
    },

    replaceOrganizations: (context: OperationContext, between: Between, organizationIds: readonly string[]) =>
      changeOrganizations(context, between, () => organizationIds),

    addOrganizations: (context: OperationContext, between: Between, organizationIds: readonly string[]) =>
      changeOrganizations(context, between, (before) => [...before, ...organizationIds]),

    removeOrganization: (context: OperationContext, between: Between, organizationId: string) =>
      changeOrganizations(context, between, (before) => {
        requireAllowed(before, organizationId)
        return before.filter((id) => id !== organizationId)
      }),
  }
}

const requireAllowed = (organizationIds: readonly string[], organizationId: string) => {
  if (!organizationIds.includes(organizationId)) throw notFound(organizationId)
}
