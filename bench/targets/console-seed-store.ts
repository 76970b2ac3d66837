import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Connection } from '../harness/database-store.ts'

/** A delivery of a test event to this hook, as if a relay had it before it; answers its id. */
export const addDelivery = async (connection: Connection, hookId: string): Promise<string> => {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<{ id: string }>(
      `INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, test, payload)
       VALUES ($1, $2, 'User.Created', 'hook', $2::uuid::text, 1, true, '{"event":"User.Created"}') RETURNING id::text`,
      [hookId, randomUUID()],
    )
    return rows[0]!.id
  } finally {
    await client.end()
  }
}
