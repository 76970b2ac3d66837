import { setTimeout as delay } from 'node:timers/promises'
import { type Connector, createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import type { Factory } from '../../deliveries/messages/factories.ts'
import type { Channel } from '../../deliveries/messages/message.ts'
import type { MessageConfig } from '../../deliveries/messages/settings.ts'
import { isRelayAlive } from '../../deliveries/test-send-store.ts'
import type { Database, Query, Transaction } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { createTargetPolicy } from '../../platform/http/outbound.ts'
import { newId } from '../../platform/ids.ts'
import { changesOf } from '../base/change.ts'
import { notFound, requireFound } from '../base/errors/not-found.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import type { OperationContext } from '../base/route.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'
import { type ConnectorPatch, factories, type NewConnector } from './connector.ts'
import { createConnectorChange } from './connector-change.ts'
import { createConfigReader } from './connector-config.ts'
import type { Federation } from './federation.ts'
import { socialOperations } from './social-operations.ts'

export interface ConnectorDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  envelope: Envelope
  messageConfig: MessageConfig
  settings: Pick<Settings, 'refreshed'>
  federation: Federation
  /** A message by a connector that is being tried out; relays send it. */
  testMessages: {
    sendTest(
      trx: Transaction,
      test: {
        channel: Channel
        to: string
        locale: string
        connector: { connectorId: string; config: Record<string, unknown> }
      },
    ): Promise<{ id: string } | 'invalid_recipient' | 'limited'>
    outcome(query: Query, id: string, waitMs: number): Promise<{ state: string; error: string | null }>
  }
}

/** For the provider's answer, in ms. */
const testWaitMs = 25_000
/** For a relay that is just being started or replaced, in ms. */
const relayWaitMs = 2_000
const pollMs = 50

/** Where messages go, and where people are known already. Connectors emit no events. */
export const connectorOperations = (dependencies: ConnectorDependencies) => {
  const { database, mutate, envelope, messageConfig, testMessages } = dependencies
  const store = createConnectorStore(envelope)

  const change = createConnectorChange(dependencies)

  const { allowedNetworks } = messageConfig
  const targets = createTargetPolicy({ allowedNetworks, allowHttp: 'allowed_networks' })
  const mocks = messageConfig.mockFolder !== undefined

  const requireFactory = (connectorId: string): Factory => {
    const factory = factories.find(({ id }) => id === connectorId)
    if (factory === undefined || (factory.mock && !mocks))
      throw problem('entity.not_found', { detail: `There is no connector factory ${connectorId}.` })
    return factory
  }

  const readConfig = createConfigReader(targets)

  const social = socialOperations({ ...dependencies, change, readConfig })

  const requireRelay = async () => {
    const deadline = performance.now() + relayWaitMs
    while (!(await isRelayAlive(database.query))) {
      if (performance.now() > deadline) throw problem('hook.relay_unavailable')
      await delay(pollMs)
    }
  }

  return {
    factories: (): Factory[] => factories.filter(({ mock }) => mocks || !mock),

    async list(): Promise<Connector[]> {
      const rows = [...(await store.list(database.query)), ...(await social.list())]
      return rows.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
    },

    async get(id: string): Promise<Connector> {
      return requireFound((await store.find(database.query, id)) ?? (await social.find(id)), id)
    },

    async create(context: OperationContext, input: NewConnector): Promise<Connector> {
      const factory = requireFactory(input.connectorId)
      if (factory.type === 'Social') return social.create(context, factory, input)
      const config = await readConfig(factory, input.config)
      const { type } = factory
      return change(context, async (query) => {
        const id = newId()
        const { connectorId, syncProfile, metadata } = input
        await store.insert(query, { id, connectorId, type, config, syncProfile, metadata })
        return requireFound(await store.find(query, id), id)
      })
    },

    async update(context: OperationContext, id: string, patch: ConnectorPatch): Promise<Connector> {
      const known = await store.find(database.query, id)
      if (known === undefined) return social.update(context, id, patch)
      const factory = requireFactory(known.connectorId)
      const config = patch.config && (await readConfig(factory, patch.config, known.config))
      return change(context, async (query) => {
        const current = await store.lock(query, id)
        if (current === undefined) throw problem('entity.not_exists', { data: { id } })
        const { syncProfile, metadata } = patch
        const changes = changesOf<Pick<Connector, 'config' | 'syncProfile' | 'metadata'>>(current, {
          ...(config && { config }),
          ...(syncProfile !== undefined && { syncProfile }),
          ...(metadata && { metadata }),
        })
        if (changes === undefined) return current
        await store.update(query, { ...current, ...changes })
        return requireFound(await store.find(query, id), id)
      })
    },

    remove: (context: OperationContext, id: string): Promise<void> =>
      change(context, async (query) => {
        if (!(await store.remove(query, id)) && !(await social.remove(query, id))) throw notFound(id)
      }),

    authorizationUri: social.authorizationUri,

    /** Sends one message, to `to`, and tells what came of it: a category, nothing that the provider said. */
    async test(
      context: OperationContext,
      factoryId: string,
      input: {
        email?: string | undefined
        phone?: string | undefined
        config: Record<string, unknown>
        locale: string
      },
    ): Promise<void> {
      const factory = requireFactory(factoryId)
      const channel: Channel = input.email === undefined ? 'sms' : 'email'
      const wanted = channel === 'email' ? 'Email' : 'Sms'
      if (factory.type !== wanted)
        throw problem('guard.invalid_input', {
          detail: `This factory sends no ${channel === 'email' ? 'mail' : 'SMS'}.`,
        })
      const stored = (await store.list(database.query)).find(({ connectorId }) => connectorId === factoryId)
      const config = await readConfig(factory, input.config, stored?.config)
      await requireRelay()
      const to = input.email ?? input.phone ?? ''
      const sent = await mutate(context, ({ trx }) =>
        testMessages.sendTest(trx, {
          channel,
          to,
          locale: input.locale,
          connector: { connectorId: factoryId, config },
        }),
      )
      if (sent === 'limited') throw problem('request.message_rate_limited')
      if (sent === 'invalid_recipient') throw problem('guard.invalid_input', { detail: 'This is no recipient.' })
      const { state, error } = await testMessages.outcome(database.query, sent.id, testWaitMs)
      if (state !== 'sent')
        throw problem('connector.send_failed', { detail: error ?? state, data: { error: error ?? state } })
    },
  }
}
