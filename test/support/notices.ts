import { createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import { openMessage } from '../../deliveries/messages/message.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { smtpConfig } from './messages.ts'

export interface WaitingMessage {
  type: string
  channel: string
  to: string
  locale: string
  subject: string
  text: string
}

/** Messages that no relay sends: what is in the ledger, opened. */
export const createMessageReader = ({
  database,
  envelope,
  refreshed,
}: {
  database: Database
  envelope: Envelope
  /** Makes the issuer see what was changed behind its back. */
  refreshed(): Promise<unknown>
}) => ({
  /** Mail and text messages can be sent; by default to nowhere. */
  async connect(port = 2525) {
    const store = createConnectorStore(envelope)
    const common = { syncProfile: false, metadata: {} }
    await database.transaction(async (query) => {
      const mail = { connectorId: 'simple-mail-transfer-protocol', config: smtpConfig(port) }
      await store.insert(query, { id: newId(), type: 'Email', ...mail, ...common })
      const sms = { connectorId: 'http-sms', config: { endpoint: 'http://127.0.0.1:9', templates: [] } }
      await store.insert(query, { id: newId(), type: 'Sms', ...sms, ...common })
    })
    await refreshed()
  },
  /** What waits, the oldest first, but for codes. */
  async waiting(to?: string): Promise<WaitingMessage[]> {
    const { rows } = await database.pool.query<{ id: string; type: string; channel: string; sealed: Buffer }>(
      `SELECT id, type, channel, sealed FROM messages WHERE state = 'waiting' ORDER BY created_at, id`,
    )
    return rows
      .map(({ id, type, channel, sealed }) => ({ type, channel, ...openMessage(envelope, id, sealed) }))
      .filter((message) => to === undefined || message.to === to)
      .map(({ type, channel, to: recipient, locale, subject, text }) => ({
        ...{ type, channel, to: recipient, locale, subject, text },
      }))
  },
})

export type MessageReader = ReturnType<typeof createMessageReader>
