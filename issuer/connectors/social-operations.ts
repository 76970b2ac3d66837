import type { Connector } from '../../deliveries/messages/connector-store.ts'
import type { Factory } from '../../deliveries/messages/factories.ts'
import { type Database, type Query, queryOf } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { changesOf } from '../base/change.ts'
import { requireFound } from '../base/errors/not-found.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import type { OperationContext } from '../base/route.ts'
import { type ConnectorPatch, factories, type NewConnector } from './connector.ts'
import type { ConnectorChange } from './connector-change.ts'
import type { ReadConfig } from './connector-config.ts'
import type { Federation } from './federation.ts'
import { asProblems } from './federation-problem.ts'
import { createIdentityProviderStore, type IdentityProvider } from './providers/identity-provider-store.ts'
import { keepOrigin, refuseForeign } from './providers/origin-store.ts'
import { createRequestStore } from './providers/request-store.ts'

export interface SocialDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  change: ConnectorChange
  envelope: Envelope
  federation: Federation
  readConfig: ReadConfig
}

export type SocialConnector = Connector & { target: string }

const toSocial = (row: IdentityProvider): SocialConnector => ({
  id: row.id,
  connectorId: row.provider,
  type: 'Social',
  target: row.target ?? row.id,
  config: row.config,
  syncProfile: row.syncProfile,
  metadata: row.look,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
})

/** As a member's name in `identities`; never one that objects have by themselves. */
const targetForm = /^[a-z\d][\w.-]{0,127}$/i

/** Members of JSON that are stored in columns of their own, apart. */
const split = (metadata: Record<string, unknown>) => {
  const { target, ...look } = metadata
  return { target, look }
}

export const socialOperations = ({
  database,
  mutate,
  change,
  envelope,
  federation,
  readConfig,
}: SocialDependencies) => {
  const store = createIdentityProviderStore(envelope)
  const requests = createRequestStore(envelope)

  const find = async (query: Query, id: string) => {
    const row = await store.find(query, id)
    return row?.kind === 'social' ? row : undefined
  }

  const targetOf = (factory: Factory, given: unknown): string => {
    if (factory.target !== undefined) {
      if (given !== undefined && given !== factory.target)
        throw problem('connector.can_not_modify_target', { detail: `metadata.target: is ${factory.target} here` })
      return factory.target
    }
    if (typeof given === 'string' && targetForm.test(given)) return given
    throw problem('connector.should_specify_target', {
      detail: 'metadata.target: must be a name such as example, by which identities of users name the connector',
    })
  }

  /** What the operator typed is read now, so that a mistake is told to whom makes it. */
  const check = async (row: IdentityProvider): Promise<void> => {
    if (row.config.issuer !== undefined) await asProblems(() => federation.check(row))
  }

  return {
    list: async () => (await store.list(database.query, 'social')).map(toSocial),

    async find(id: string): Promise<SocialConnector | undefined> {
      const row = await find(database.query, id)
      return row && toSocial(row)
    },

    async create(context: OperationContext, factory: Factory, input: NewConnector): Promise<SocialConnector> {
      const { target: given, look } = split(input.metadata)
      const target = targetOf(factory, given)
      const config = await readConfig(factory, input.config)
      const row: IdentityProvider = {
        ...{ id: newId(), kind: 'social', provider: factory.id, name: null, target, config, domains: [], look },
        ...{ syncProfile: input.syncProfile, createdAt: new Date(0), updatedAt: new Date(0) },
      }
      await check(row)
      return change(context, async (query) => {
        await refuseForeign(query, row)
        await store.insert(query, row)
        return toSocial(requireFound(await store.find(query, row.id), row.id))
      })
    },

    async update(context: OperationContext, id: string, patch: ConnectorPatch): Promise<SocialConnector> {
      const known = await find(database.query, id)
      if (known === undefined) throw problem('entity.not_exists', { data: { id } })
      const factory = factories.find((row) => row.id === known.provider)!
      const { target: given = known.target, look } = split(patch.metadata ?? known.look)
      if (given !== known.target) throw problem('connector.can_not_modify_target')
      const config = patch.config && (await readConfig(factory, patch.config, known.config))
      if (config) await check({ ...known, config })
      return change(context, async (query) => {
        const current = await store.lock(query, id)
        if (current === undefined) throw problem('entity.not_exists', { data: { id } })
        if (config) await keepOrigin(query, current, config)
        const changes = changesOf<Pick<IdentityProvider, 'config' | 'syncProfile' | 'look'>>(current, {
          ...(config && { config }),
          ...(patch.syncProfile !== undefined && { syncProfile: patch.syncProfile }),
          ...(patch.metadata && { look }),
        })
        if (changes === undefined) return toSocial(current)
        await store.update(query, { ...current, ...changes })
        return toSocial(requireFound(await store.find(query, id), id))
      })
    },

    remove: (query: Query, id: string): Promise<boolean> => store.remove(query, id, 'social'),

    /** The answer to it is given to `POST /users/:id/identities`, within ten minutes. */
    async authorizationUri(
      context: OperationContext,
      id: string,
      { state, redirectUri }: { state: string; redirectUri: string },
    ): Promise<string> {
      requireFound(await find(database.query, id), id)
      const { url, kept } = await asProblems(async () => (await federation.open(id)).begin({ state, redirectUri }))
      await mutate(context, ({ trx }) => requests.keep(queryOf(trx), { providerId: id, state, redirectUri, kept }))
      return url
    },
  }
}
