import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Connector, createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import { type Factory, factories, findFactory } from '../../deliveries/messages/factories.ts'
import type { Channel } from '../../deliveries/messages/message.ts'
import type { MessageConfig } from '../../deliveries/messages/settings.ts'
import { isRelayAlive } from '../../deliveries/test-send-store.ts'
import { type Database, type Query, queryOf, type Transaction } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { createTargetPolicy } from '../../platform/http/outbound.ts'
import { newId } from '../../platform/ids.ts'
import { changesOf } from '../base/change.ts'
import { notFound, requireFound } from '../base/errors/not-found.ts'
import { problem } from '../base/errors/problems.ts'
import type { Mutate } from '../base/mutate.ts'
import type { OperationContext } from '../base/route.ts'
import type { Settings } from '../directory/sign-in-experience/settings.ts'
import { type ConnectorPatch, type NewConnector, unmasked } from './connector.ts'

export interface ConnectorDependencies {
  database: Pick<Database, 'query'>
  mutate: Mutate
  envelope: Envelope
  messageConfig: MessageConfig
  settings: Pick<Settings, 'refreshed'>
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

/** Where messages go. Connectors emit no events. */
export const connectorOperations = (dependencies: ConnectorDependencies) => {
  const { database, mutate, envelope, messageConfig, settings, testMessages } = dependencies
  const store = createConnectorStore(envelope)

  /** What was changed is in force here before it is answered. */
  const change = async <Result>(
    context: OperationContext,
    work: (query: Query) => Promise<Result>,
  ): Promise<Result> => {
    const result = await mutate(context, ({ trx }) => work(queryOf(trx)))
    await settings.refreshed()
    return result
  }

  const { allowedNetworks } = messageConfig
  const targets = createTargetPolicy({ allowedNetworks, allowHttp: 'allowed_networks' })
  const mocks = messageConfig.mockFolder !== undefined

  const requireFactory = (connectorId: string): Factory => {
    const factory = findFactory(connectorId, { mocks })
    if (factory === undefined)
      throw problem('entity.not_found', { detail: `There is no connector factory ${connectorId}.` })
    return factory
  }

  /** The relay looks again at every connect. */
  const refuseAddress = async (config: Record<string, unknown>): Promise<void> => {
    const { endpoint, host } = config as { endpoint?: string; host?: string }
    // Only its addresses matter: mail servers listen where webhooks must not go.
    const url = endpoint ?? (host && `https://${isIP(host) === 6 ? `[${host}]` : host}/`)
    const refused = url === undefined ? undefined : await targets.refusal(url)
    if (refused !== undefined) throw problem('connector.target_not_allowed', { detail: refused })
  }

  /** `stored`: the secrets that masked ones stand for. */
  const readConfig = async (
    factory: Factory,
    given: Record<string, unknown>,
    stored: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> => {
    const config = unmasked(factory, given, stored)
    if (config === undefined)
      throw problem('connector.invalid_config', {
        detail: 'config: where the connector leads changes, so its secrets must be given anew',
      })
    const parsed = factory.config.safeParse(config)
    if (!parsed.success) {
      // Names of members and what they must be; never what they are.
      const detail = parsed.error.issues.map(({ path, message }) => `config.${path.join('.')}: ${message}`).join('; ')
      throw problem('connector.invalid_config', { detail })
    }
    await refuseAddress(parsed.data)
    return parsed.data
  }

  const requireRelay = async () => {
    const deadline = performance.now() + relayWaitMs
    while (!(await isRelayAlive(database.query))) {
      if (performance.now() > deadline) throw problem('hook.relay_unavailable')
      await delay(pollMs)
    }
  }

  return {
    factories: (): Factory[] => factories.map((row) => row as Factory).filter(({ mock }) => mocks || !mock),

    list: () => store.list(database.query),

    async get(id: string): Promise<Connector> {
      return requireFound(await store.find(database.query, id), id)
    },

    async create(context: OperationContext, input: NewConnector): Promise<Connector> {
      const factory = requireFactory(input.connectorId)
      const config = await readConfig(factory, input.config)
      return change(context, async (query) => {
        const id = newId()
        const { connectorId, syncProfile, metadata } = input
        await store.insert(query, { id, connectorId, type: factory.type, config, syncProfile, metadata })
        return requireFound(await store.find(query, id), id)
      })
    },

    async update(context: OperationContext, id: string, patch: ConnectorPatch): Promise<Connector> {
      const known = await store.find(database.query, id)
      if (known === undefined) throw problem('entity.not_exists', { data: { id } })
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
        if (!(await store.remove(query, id))) throw notFound(id)
      }),

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
