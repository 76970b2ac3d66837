import { z } from 'zod'
import { id, jsonObject, tenantId, timestamp } from '../../events/records.ts'

export { id, jsonObject, tenantId, timestamp }

/** Pieces that the schemas of several records share. */

/** Ids to assign; order and repetition mean nothing. */
export const ids = z
  .array(id)
  .max(5_000)
  .transform((list) => [...new Set(list)])

/** As they were sent, for answers that repeat them. */
export const someIdsAsSent = z.array(id).min(1).max(5_000)

export const someIds = someIdsAsSent.transform((list) => [...new Set(list)])

/** A field that null or "" clears. */
export const clearable = <Schema extends z.ZodType<string>>(schema: Schema) =>
  z.union([schema, z.literal(''), z.null()]).transform((value) => (value === '' ? null : (value as string | null)))

/** The same in a query string. */
export const timestampText = z
  .string()
  .regex(/^\d{1,15}$/, 'must be milliseconds since the epoch')
  .transform((text) => new Date(Number(text)))
