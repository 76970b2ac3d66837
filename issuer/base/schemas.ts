import { z } from 'zod'

/** Pieces that the schemas of several records share. */

/** An id in a path or a list: only looked up, so any short text will do. */
export const id = z.string().min(1).max(128)

/** Ids to assign; order and repetition mean nothing. */
export const ids = z
  .array(id)
  .max(5_000)
  .transform((list) => [...new Set(list)])

/** As they were sent, for answers that repeat them. */
export const someIdsAsSent = z.array(id).min(1).max(5_000)

export const someIds = someIdsAsSent.transform((list) => [...new Set(list)])

export const jsonObject = z.record(z.string(), z.unknown())

/** A field that null or "" clears. */
export const clearable = <Schema extends z.ZodType<string>>(schema: Schema) =>
  z.union([schema, z.literal(''), z.null()]).transform((value) => (value === '' ? null : (value as string | null)))

/** Milliseconds since the epoch, until the year 9999. */
export const timestamp = z.number().int().max(253_402_300_799_999)

/** The same in a query string. */
export const timestampText = z
  .string()
  .regex(/^\d{1,15}$/, 'must be milliseconds since the epoch')
  .transform((text) => new Date(Number(text)))

export const tenantId = z.literal('default')
