import { z } from 'zod'
import { id, jsonObject, tenantId, timestamp } from '../../base/schemas.ts'

/** A row of the audit trail as the database holds it. */
export interface LogRow {
  id: string
  key: string
  payload: Record<string, unknown>
  created_at: Date
}

export const log = z.strictObject({ tenantId, id, key: z.string(), payload: jsonObject, createdAt: timestamp })

export const toLog = (row: LogRow): z.output<typeof log> => ({
  tenantId: 'default',
  id: row.id,
  key: row.key,
  payload: row.payload,
  createdAt: row.created_at.getTime(),
})
