import type { Database } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { createTargetPolicy } from '../../../platform/http/outbound.ts'
import { newId } from '../../../platform/ids.ts'
import { changesOf } from '../../base/change.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutate } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import type { Settings } from '../../directory/sign-in-experience/settings.ts'
import { createConnectorChange } from '../connector-change.ts'
import { createConfigReader } from '../connector-config.ts'
import type { Federation } from '../federation.ts'
import { asProblems } from '../federation-problem.ts'
import { type SsoProviderName, ssoProviders, ssoSecrets } from '../providers/factories.ts'
import { createIdentityProviderStore, type IdentityProvider } from '../providers/identity-provider-store.ts'
import { keepOrigin } from '../providers/origin-store.ts'
import { type NewSsoConnector, publicDomains, type SsoConnectorPatch } from './sso-connector.ts'

export interface SsoDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  envelope: Envelope
  messageConfig: { allowedNetworks: readonly string[] }
  settings: Pick<Settings, 'refreshed'>
  federation: Federation
}

/** Enterprises whose people sign in at their own provider. Connectors emit no events. */
export const ssoOperations = (dependencies: SsoDependencies) => {
  const { database, envelope, messageConfig, federation } = dependencies
  const change = createConnectorChange(dependencies)
  const store = createIdentityProviderStore(envelope)
  const { allowedNetworks } = messageConfig
  const readConfig = createConfigReader(createTargetPolicy({ allowedNetworks, allowHttp: 'allowed_networks' }))

  const find = async (id: string) => {
    const row = await store.find(database.query, id)
    return row?.kind === 'sso' ? row : undefined
  }

  const checkDomains = (domains: readonly string[]): void => {
    const twice = domains.filter((domain, index) => domains.indexOf(domain) !== index)
    if (twice.length > 0) throw problem('single_sign_on.duplicated_domains', { data: { domains: twice } })
    const forbidden = domains.filter((domain) => publicDomains.has(domain))
    if (forbidden.length > 0) throw problem('single_sign_on.forbidden_domains', { data: { domains: forbidden } })
  }

  /** As it may be stored; the provider's document is read. */
  const configured = async (row: IdentityProvider, given: Record<string, unknown>): Promise<IdentityProvider> => {
    const { config: schema } = ssoProviders[row.provider as SsoProviderName]
    const config = await readConfig({ config: schema, ...ssoSecrets }, given, row.config)
    const changed = { ...row, config }
    if (config.issuer !== undefined) await asProblems(() => federation.check(changed))
    return changed
  }

  return {
    list: () => store.list(database.query, 'sso'),

    async get(id: string): Promise<IdentityProvider> {
      return requireFound(await find(id), id)
    },

    async create(context: OperationContext, input: NewSsoConnector): Promise<IdentityProvider> {
      const { providerName, connectorName, domains, branding, syncProfile, config } = input
      checkDomains(domains)
      const bare: IdentityProvider = {
        ...{ id: newId(), kind: 'sso', provider: providerName, name: connectorName, target: null, config: {} },
        ...{ domains, syncProfile, look: branding, createdAt: new Date(0), updatedAt: new Date(0) },
      }
      const row = config === undefined ? bare : await configured(bare, config)
      return change(context, async (query) => {
        await store.insert(query, row)
        return requireFound(await store.find(query, row.id), row.id)
      })
    },

    async update(context: OperationContext, id: string, patch: SsoConnectorPatch): Promise<IdentityProvider> {
      const known = requireFound(await find(id), id)
      if (patch.domains) checkDomains(patch.domains)
      const config = patch.config && (await configured(known, patch.config)).config
      return change(context, async (query) => {
        const current = requireFound(await store.lock(query, id), id)
        if (config) await keepOrigin(query, current, config)
        const changes = changesOf<Pick<IdentityProvider, 'name' | 'config' | 'domains' | 'look' | 'syncProfile'>>(
          current,
          {
            ...(patch.connectorName !== undefined && { name: patch.connectorName }),
            ...(config && { config }),
            ...(patch.domains && { domains: patch.domains }),
            ...(patch.branding && { look: patch.branding }),
            ...(patch.syncProfile !== undefined && { syncProfile: patch.syncProfile }),
          },
        )
        if (changes === undefined) return current
        await store.update(query, { ...current, ...changes })
        return requireFound(await store.find(query, id), id)
      })
    },

    /** With the identities of its people, and what organizations say of who comes by it. */
    remove: (context: OperationContext, id: string): Promise<void> =>
      change(context, async (query) => {
        if (!(await store.remove(query, id, 'sso'))) throw notFound(id)
      }),
  }
}
