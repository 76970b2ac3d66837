import type { AttemptRow, DeliveryRow } from '../../events/delivery-log-store.ts'

/** Deliveries and attempts as the API shows them. */

const open = new Set(['pending', 'sending', 'retrying', 'held'])

export const toDelivery = ({ nextAttemptAt, createdAt, ...row }: DeliveryRow) => ({
  ...row,
  nextAttemptAt: open.has(row.state) ? nextAttemptAt.getTime() : null,
  createdAt: createdAt.getTime(),
})

/** In the shape of the audit log's rows, as existing clients read it. */
export const toHookLog = (hookId: string, row: AttemptRow) => {
  const key = `TriggerHook.${row.type}`
  return {
    tenantId: 'default' as const,
    id: row.id,
    key,
    payload: {
      key,
      result: row.succeeded ? 'Success' : 'Error',
      hookId,
      hookRequest: { body: row.payload === null ? null : { hookId, ...JSON.parse(row.payload.toString()) } },
      ...(row.status === null
        ? {}
        : { response: { statusCode: row.status, body: row.responseBody?.toString('utf8') ?? '' } }),
      ...(row.error === null ? {} : { error: row.error }),
    },
    createdAt: row.at.getTime(),
  }
}
