import { z } from 'zod'
import type { AttemptRow, DeliveryAttempt, DeliveryRow, KeptDelivery } from '../../../events/delivery-log-store.ts'
import { jsonObject, tenantId, timestamp } from '../../base/schemas.ts'

/** Deliveries and attempts as the API shows them. */

export const deliveryStates = ['pending', 'sending', 'succeeded', 'retrying', 'held', 'dead', 'cancelled'] as const

export const delivery = z.object({
  id: z.string(),
  hookId: z.string(),
  eventId: z.string(),
  event: z.string(),
  entity: z.object({ kind: z.string(), id: z.string() }),
  version: z.number(),
  state: z.enum(deliveryStates),
  /** POSTs since it was queued, or queued again. */
  attempts: z.number(),
  /** Null once nothing more is tried. */
  nextAttemptAt: timestamp.nullable(),
  createdAt: timestamp,
  lastStatus: z.number().nullable(),
  lastError: z.string().nullable(),
  /** A test-send: nothing happened. */
  test: z.boolean(),
})

/** One delivery with what is sent: null when that is no longer kept. */
export const wholeDelivery = delivery.extend({ body: jsonObject.nullable() })

const headers = z.record(z.string(), z.string())

export const attempt = z.object({
  id: z.string(),
  at: timestamp,
  durationMs: z.number(),
  succeeded: z.boolean(),
  /** The values of a hook's own headers are not kept. */
  requestHeaders: headers,
  status: z.number().nullable(),
  responseHeaders: headers.nullable(),
  /** Its first 16 kB, read as UTF-8. */
  responseBody: z.string().nullable(),
  error: z.string().nullable(),
  /** Of the receiver. */
  address: z.string().nullable(),
})

/** A row of `/recent-logs`, in the shape of the audit log. */
export const hookLog = z.object({
  tenantId,
  id: z.string(),
  key: z.string(),
  payload: jsonObject,
  createdAt: timestamp,
})

const open = new Set(['pending', 'sending', 'retrying', 'held'])

export const toDelivery = ({ nextAttemptAt, createdAt, ...row }: DeliveryRow): z.input<typeof delivery> => ({
  ...row,
  nextAttemptAt: open.has(row.state) ? nextAttemptAt.getTime() : null,
  createdAt: createdAt.getTime(),
})

const bodyOf = (hookId: string, payload: Buffer | null) =>
  payload === null ? null : { hookId, ...JSON.parse(payload.toString()) }

export const toWholeDelivery = ({ payload, ...row }: KeptDelivery): z.input<typeof wholeDelivery> => ({
  ...toDelivery(row),
  body: bodyOf(row.hookId, payload),
})

export const toAttempt = ({ at, responseBody, ...row }: DeliveryAttempt): z.input<typeof attempt> => ({
  ...row,
  at: at.getTime(),
  responseBody: responseBody?.toString('utf8') ?? null,
})

/** In the shape of the audit log's rows, as existing clients read it. */
export const toHookLog = (hookId: string, row: AttemptRow): z.input<typeof hookLog> => {
  const key = `TriggerHook.${row.type}`
  return {
    tenantId: 'default' as const,
    id: row.id,
    key,
    payload: {
      key,
      result: row.succeeded ? 'Success' : 'Error',
      hookId,
      hookRequest: { body: bodyOf(hookId, row.payload) },
      ...(row.status === null
        ? {}
        : { response: { statusCode: row.status, body: row.responseBody?.toString('utf8') ?? '' } }),
      ...(row.error === null ? {} : { error: row.error }),
    },
    createdAt: row.at.getTime(),
  }
}
