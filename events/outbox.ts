import type { Transaction } from '../platform/database.ts'

/** What an event tells of the HTTP request that caused it; built by the router. `path` and `matchedRoute` are below `/api`. */
export interface EventRequest {
  ip: string
  userAgent: string | undefined
  method: string
  path: string
  matchedRoute: string
  params: Record<string, string>
  /** The status of the answer. */
  status: number
  /** Ties the events of one request together. Default: one is made. */
  correlationId?: string
}

export type EntityKind =
  | 'user'
  | 'role'
  | 'scope'
  | 'organization'
  | 'organization-role'
  | 'organization-scope'
  | 'impersonation'
  | 'hook'

export interface NewEvent {
  /** A type of `catalogue.ts`. */
  type: string
  entity: { kind: EntityKind; id: string }
  organizationId?: string
  /** The answer of the Management API, null when there is none. */
  data: unknown
  /** Members beside `data`: `roleId`, `addedUserIds`, … */
  extras?: Record<string, unknown>
  request: EventRequest
}

/** Placeholder until the ledger's tables land. */
export const recordEvent = async (_transaction: Transaction, _event: NewEvent): Promise<void> => {}
