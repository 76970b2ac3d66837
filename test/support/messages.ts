import { randomBytes } from 'node:crypto'
import { createConnectorStore, findSenders } from '../../deliveries/messages/connector-store.ts'
import { type MessageConfig, noMessages } from '../../deliveries/messages/settings.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { createMessages, type MessageType, type NewMessage, type Refusal } from '../../issuer/messages/messages.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'

/** Networks that tests' providers stand in. */
export const localProviders: MessageConfig = { ...noMessages, allowedNetworks: ['127.0.0.0/8'] }

export const smtpConfig = (port: number, more: Record<string, unknown> = {}) => ({
  ...{ host: '127.0.0.1', port, requireTLS: false, fromEmail: 'Surrogate <no-reply@surrogate.test>', templates: [] },
  ...more,
})

/** What the issuer does with messages, on a ledger. */
export const startTestMessages = async (
  { database, envelope }: { database: Database; envelope: Envelope },
  config: MessageConfig = localProviders,
) => {
  const hmac = await createHmacs(database, envelope)
  let wakes = 0
  let senders = await findSenders(database.query)
  const messages = createMessages({
    query: database.query,
    senderOf: (type) => senders.find((sender) => sender.type === type),
    envelope,
    hmac,
    config,
    baseUrl: 'https://id.example.com',
    events: { wake: () => void wakes++ },
  })
  const connectors = createConnectorStore(envelope)
  return {
    ...messages,
    wakes: () => wakes,
    /** In a transaction of its own. */
    sendNow: <Type extends MessageType>(message: NewMessage<Type>) =>
      database.transaction((query) => messages.send(query, message)),
    /** A code by mail that must be taken. */
    async code(to: string, code = String(100_000 + (randomBytes(2).readUInt16BE() % 900_000))) {
      const sent = await database.transaction((query) =>
        messages.send(query, { channel: 'email', to, type: 'SignIn', variables: { code }, locale: 'en' }),
      )
      if (typeof sent === 'string') throw new Error(`not sent: ${sent satisfies Refusal}`)
      return { ...sent, code }
    },
    /** Configures the provider of a channel. */
    async connect(connectorId: string, type: 'Email' | 'Sms', connectorConfig: Record<string, unknown>) {
      await database.transaction((query) =>
        connectors.insert(query, {
          ...{ id: newId(), connectorId, type, config: connectorConfig, syncProfile: false, metadata: {} },
        }),
      )
      senders = await findSenders(database.query)
    },
  }
}

export type TestMessages = Awaited<ReturnType<typeof startTestMessages>>
