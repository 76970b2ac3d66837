import type { Database } from '../../platform/database/database.ts'
import { insertLog } from '../base/audit/log-store.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { consoleClientId } from '../base/console-roles.ts'
import { problem } from '../base/errors/problems.ts'
import { signedLines } from '../tokens/impersonations/signed-lines.ts'
import { readTimeline } from '../tokens/impersonations/timeline.ts'
import type { SigningKeys } from '../tokens/keys/signing-keys.ts'
import type { ConsoleSession } from './session-store.ts'

/** What gateways decided about requests of one session, and which of them did not say. */
export interface DecisionsOfSession {
  decisions: readonly { gateway: string; timestamp: string; [member: string]: unknown }[]
  /** There were more than an answer holds. */
  more: boolean
  missing: readonly { gateway: string; because: string }[]
}

export interface ImpersonationExportDependencies {
  database: Pick<Database, 'query'>
  keys: Pick<SigningKeys, 'active'>
  /** The `iss` of tokens. */
  issuer: string
  decisionsOf(session: ConsoleSession, sid: string): Promise<DecisionsOfSession>
  now(): Date
}

/** Signed lines of JSON: everything that issuer and gateways know of a session of impersonation. */
export type ImpersonationExport = (session: ConsoleSession, id: string, origin: RequestOrigin) => Promise<string>

/** `read` reads all. */
const permissions = ['all', 'read', 'impersonation']
const mostChanges = 10_000

/**
 * The first line is what the session is, and what is missing; then comes what happened, in the order of time; the last
 * one signs the others. Who took it is in the audit trail. Throws 403 `auth.forbidden`, 404.
 */
export const createImpersonationExport =
  ({ database, keys, issuer, decisionsOf, now }: ImpersonationExportDependencies): ImpersonationExport =>
  async (session, id, origin) => {
    const { user, scopes } = session
    if (!permissions.some((name) => scopes.includes(name)))
      throw problem('auth.forbidden', { detail: 'This takes one of the permissions read, impersonation, all.' })
    const at = now()
    const [timeline, decided] = await Promise.all([
      readTimeline(database.query, id, mostChanges, at),
      decisionsOf(session, id),
    ])
    const head = {
      kind: 'impersonation',
      version: 1,
      issuer,
      exportedAt: at.getTime(),
      exportedBy: { id: user.id, name: user.name ?? user.username ?? user.primaryEmail },
      session: timeline.session,
      names: timeline.names,
      // Never silently less than there was.
      isComplete: !timeline.more && !decided.more && decided.missing.length === 0,
      moreChanges: timeline.more,
      moreRequests: decided.more,
      missingGateways: decided.missing,
    }
    const requests = decided.decisions.map(({ gateway, ...decision }) => ({
      ...{ kind: 'request', at: beginOf(decision), gateway, decision },
    }))
    const happened = [...timeline.entries, ...requests].toSorted((one, other) => one.at - other.at)
    await insertLog(database.query, {
      key: 'Console.exportImpersonation',
      result: 'Success',
      applicationId: consoleClientId,
      userId: timeline.session.subjectId,
      payload: { ...origin, person: { userId: user.id, sid: session.authorizationId }, params: { id } },
    })
    return signedLines([head, ...happened], { id, at }, { keys, issuer })
  }

/** A record is made when the request ends. */
const beginOf = ({ timestamp, duration }: { timestamp: string; duration?: unknown }): number =>
  Math.floor(Date.parse(timestamp) - (typeof duration === 'number' ? duration : 0))
