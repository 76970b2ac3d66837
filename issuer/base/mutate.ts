import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { EventContent } from '../../events/catalogue.ts'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { queryOf } from '../../platform/database/database.ts'
import { insertLog } from './audit/log-store.ts'
import { constraintError, isDeadlock } from './errors/constraint-errors.ts'
import { problem } from './errors/problems.ts'
import type { ConcernedEntity, OperationContext } from './route.ts'
import { type IfMatch, matches } from './versions/if-match.ts'
import { findVersion, lockVersion } from './versions/version-store.ts'

/** One change: its rows, its events and its audit row stand or fall together. */
export interface Mutation {
  trx: Knex.Transaction
  /**
   * Records an event of this request; the publisher is woken after the commit. `answer`: its status, where it is not
   * the route's.
   */
  record(event: EventContent, answer?: { status: number }): Promise<void>
  /**
   * What the audit row says besides, where path and events do not tell: whom the change is about, and particulars.
   * Never a secret.
   */
  note(about: AuditNote): void
}

export interface AuditNote {
  userId?: string
  details?: Record<string, unknown>
}

export type Mutate = <Result>(
  context: OperationContext,
  work: (mutation: Mutation) => Promise<Result>,
) => Promise<Result>

export interface MutateDependencies {
  knex: Knex
  /** The publisher of the outbox. */
  events: { wake(): void }
}

// Deadlock: PostgreSQL aborts one of two writers; it is retried after a pause.
const deadlockAttempts = 4
const pauseMs = () => randomInt(10, 60)

/**
 * Runs `work` in a transaction (its own, or the one that `context` is joined to) if `If-Match` allows it, writes the
 * audit row beside it, commits, and wakes the publisher when there is something to publish. A violated constraint
 * becomes its problem (`constraint-errors.ts`). `work` may run again after a deadlock: its only effects are in `trx`.
 */
export const createMutate = ({ knex, events }: MutateDependencies): Mutate => {
  const attempt = async <Result>(context: OperationContext, work: (mutation: Mutation) => Promise<Result>) => {
    const recorded: NewEvent[] = []
    let noted: AuditNote = {}
    const { entity, dryRun } = context
    let version: number | undefined
    // In a joined transaction this is a savepoint, so what fails leaves nothing behind there either.
    const result = await (context.joined?.trx ?? knex).transaction(async (trx) => {
      if (entity?.ifMatch) await requireMatch(trx, entity, entity.ifMatch)
      await dryRun?.begin(trx)
      const outcome = await work({
        trx,
        async record(event, answer) {
          const complete: NewEvent = { ...event, request: { ...context.request, ...answer } }
          await recordEvent(trx, complete)
          recorded.push(complete)
        },
        note(about) {
          noted = about
        },
      })
      await dryRun?.end(trx, recorded)
      await insertLog(trx, auditEntry(context, recorded, noted))
      if (entity) version = await findVersion(queryOf(trx), entity)
      return outcome
    })
    // What follows in the same request is about what it has just made.
    if (entity) Object.assign(entity, { version, ifMatch: undefined })
    if (recorded.length > 0) (context.joined?.afterCommit ?? now)(() => events.wake())
    return result
  }

  return async (context, work) => {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(context, work)
      } catch (error) {
        if (!isDeadlock(error) || tries === deadlockAttempts) throw constraintError(error)
        await delay(pauseMs())
      }
    }
  }
}

const now = (work: () => void) => work()

/** Throws 412; not for what does not exist, which the operation itself says. */
const requireMatch = async (trx: Knex.Transaction, entity: ConcernedEntity, condition: IfMatch) => {
  const version = await lockVersion(trx, entity)
  if (version !== undefined && !matches(condition, version)) throw problem('entity.version_mismatch')
}

const auditEntry = (
  { operationId, auditArea = 'Management', caller, request, fields }: OperationContext,
  recorded: readonly NewEvent[],
  { userId, details }: AuditNote,
) => ({
  key: `${auditArea}.${operationId}`,
  result: 'Success' as const,
  applicationId: caller.clientId,
  sessionId: request.sid,
  // Whom the change is about; of one that is about nobody, who made it.
  userId:
    userId ??
    request.params['userId'] ??
    recorded.find(({ entity }) => entity.kind === 'user')?.entity.id ??
    caller.person?.userId,
  payload: {
    ip: request.ip,
    userAgent: request.userAgent,
    subject: caller.subject,
    ...(caller.person && { person: { userId: caller.person.userId, sid: caller.person.sid } }),
    method: request.method,
    path: request.path,
    params: request.params,
    // Names only: values may be personal or secret.
    fields,
    events: recorded.map(({ type, entity }) => ({ type, entity })),
    ...details,
  },
})
