import { createConnectorStore } from '../../deliveries/messages/connector-store.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import type { Connection } from '../harness/database-store.ts'

/** A connector that sends mail to an SMTP server of this machine. */
export const seedMail = async (connection: Connection, { key, port }: { key: string; port: number }): Promise<void> => {
  const database = createDatabase({ connection, logger: silentLogger })
  const connectors = createConnectorStore(createEnvelope({ current: Buffer.from(key, 'hex') }))
  await database.transaction((query) =>
    connectors.insert(query, {
      id: newId(),
      connectorId: 'simple-mail-transfer-protocol',
      type: 'Email',
      config: {
        ...{ host: '127.0.0.1', port, requireTLS: false, templates: [] },
        fromEmail: 'Bench <no-reply@surrogate.example>',
      },
      ...{ syncProfile: false, metadata: {} },
    }),
  )
  await database.close()
}
