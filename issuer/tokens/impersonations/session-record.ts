import type { z } from 'zod'
import type { impersonation } from '../../../events/records.ts'
import type { SessionRow } from './impersonation-store.ts'

export type SessionRecord = z.output<typeof impersonation>

/** A session as the API and its events show it. */
export const toSession = (row: SessionRow): SessionRecord => ({
  ...row,
  startedAt: row.startedAt.getTime(),
  expiresAt: row.expiresAt.getTime(),
  endedAt: row.endedAt?.getTime() ?? null,
})
