import { findFactory } from '../../deliveries/messages/factories.ts'
import type { Channel } from '../../deliveries/messages/message.ts'
import type { MessageConfig } from '../../deliveries/messages/settings.ts'
import { type AddressGuard, createAddressGuard } from '../../platform/http/address-guard.ts'
import { createOutboundAgent, createTargetPolicy, type Resolve } from '../../platform/http/outbound.ts'
import { createMockSender, createOutboxSender } from './senders/files.ts'
import { createHttpSender, isHttpProvider, type Sign } from './senders/http.ts'
import type { Sender } from './senders/sender.ts'
import { createSmtpSender } from './senders/smtp.ts'

/** A connector as it is stored, or as it is tried out. */
export interface Configured {
  connectorId: string
  config: unknown
}

export interface Senders {
  /**
   * What sends for a connector; kept, with its connections, as long as `key` is the same. Throws when the configuration
   * is none.
   */
  of(channel: Channel, key: string, connector: Configured): Sender
  /** For a channel without a connector. Undefined: nothing does. */
  withoutConnector(channel: Channel): Sender | undefined
  /** Its connections are given up; the next message opens new ones. */
  drop(channel: Channel): void
  close(): Promise<void>
}

export interface SendersOptions {
  config: MessageConfig
  resolve?: Resolve | undefined
  sign: Sign
}

/** Answers of providers are short. */
const maxBodyBytes = 65_536

export const createSenders = ({ config, resolve, sign }: SendersOptions): Senders => {
  const { allowedNetworks, outbox, mockFolder } = config
  const policy = createTargetPolicy({ allowedNetworks, allowHttp: 'allowed_networks', resolve })
  const guard: AddressGuard = createAddressGuard({ allowedNetworks })
  const agent = createOutboundAgent({ policy, connections: 20, maxBodyBytes })
  const kept = new Map<Channel, { key: string; sender: Sender }>()
  const outboxes = new Map<Channel, Sender>()

  const make = (channel: Channel, { connectorId, config: raw }: Configured): Sender => {
    const factory = findFactory(connectorId, { mocks: mockFolder !== undefined })
    if (factory === undefined) throw new Error(`There is no connector factory ${connectorId} here.`)
    const parsed = factory.config.parse(raw)
    if (factory.mock) return createMockSender(mockFolder!, channel, (parsed as { templates: [] }).templates)
    if (isHttpProvider(connectorId))
      return createHttpSender(connectorId, parsed as never, { agent, policy, sign, owner: channel })
    return createSmtpSender(parsed as Parameters<typeof createSmtpSender>[0], { policy, guard })
  }

  const drop = (channel: Channel) => {
    kept.get(channel)?.sender.close()
    kept.delete(channel)
  }

  return {
    of(channel, key, connector) {
      const known = kept.get(channel)
      if (known?.key === key) return known.sender
      const sender = make(channel, connector)
      // A test must not end the connections of what is in use.
      if (key === '') return sender
      drop(channel)
      kept.set(channel, { key, sender })
      return sender
    },
    withoutConnector(channel) {
      if (outbox === undefined) return undefined
      const sender = outboxes.get(channel) ?? createOutboxSender(outbox, channel)
      outboxes.set(channel, sender)
      return sender
    },
    drop,
    async close() {
      for (const channel of [...kept.keys()]) drop(channel)
      await agent.close()
    },
  }
}
