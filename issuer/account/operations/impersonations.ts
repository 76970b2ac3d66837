import { type Query, queryOf, type Transaction } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import {
  approveRequest,
  findRequestsOf,
  type RequestRow,
  refuseRequest,
  type SeenRequest,
} from '../../tokens/impersonation-requests/request-store.ts'
import { requestEvent } from '../../tokens/impersonation-requests/requests.ts'
import { endSessionOfSubject } from '../../tokens/impersonations/impersonation-store.ts'
import { recordEnded } from '../../tokens/impersonations/operations.ts'
import { findImpersonationsOf, type SeenImpersonation } from '../../tokens/impersonations/seen-store.ts'
import { type ChangeAccount, requireReadable } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'

/** What a person lets somebody do who asks to act as them. */
export interface Agreement {
  /** The one that they were shown, so that they agree to nothing else. */
  number: string
  readOnly?: boolean | undefined
  /** In seconds, from the exchange on. */
  maxTtl?: number | undefined
}

const always = { fields: [] } as const

/** Who asks to act as a person, who has, and how they end it: theirs wherever people look after their accounts. */
export const accountImpersonationOperations = ({ query, change }: { query: Query; change: ChangeAccount }) => {
  const decide = (
    context: AccountContext,
    requestId: string,
    {
      event,
      number,
      write,
    }: {
      event: 'Impersonation.Approved' | 'Impersonation.Refused'
      number?: string
      write(trx: Transaction, request: { id: string; userId: string }): Promise<RequestRow | undefined>
    },
  ): Promise<void> => {
    const isApproval = event === 'Impersonation.Approved'
    return change(context, { ...always, reauthenticated: isApproval }, async (mutation) => {
      const { trx, record } = mutation
      const { userId } = context.person
      const [asked] = await findRequestsOf(queryOf(trx), userId, requestId)
      if (!asked) throw unknownId(requestId)
      if (number !== undefined && number !== asked.number) throw problem('impersonation.number_mismatch')
      const row = await write(trx, { id: requestId, userId })
      if (!row) throw problem('impersonation.request_not_pending', { data: { status: asked.status } })
      const { readOnly, maxTtl } = row
      mutation.note({ userId, details: { requestId, ...(isApproval && { readOnly, maxTtl }) } })
      await record(requestEvent(event, row))
    })
  }

  return {
    /** Newest first, 100 at most. */
    async requests(person: AccountPerson): Promise<SeenRequest[]> {
      await requireReadable(query, person, always)
      return findRequestsOf(query, person.userId)
    },

    /** Throws 404, 409 when it is not pending any more, 422 for another number, 401 without a fresh proof. */
    approve: (context: AccountContext, requestId: string, { number, ...limits }: Agreement): Promise<void> =>
      decide(context, requestId, {
        ...{ event: 'Impersonation.Approved', number },
        write: (trx, request) => approveRequest(trx, request, limits),
      }),

    /** What was allowed too, until somebody acts by it. Throws 404, 409 when there is nothing to refuse any more. */
    refuse: (context: AccountContext, requestId: string): Promise<void> =>
      decide(context, requestId, { event: 'Impersonation.Refused', write: refuseRequest }),

    /** Who acted, newest first, 100 at most. */
    async list(person: AccountPerson): Promise<SeenImpersonation[]> {
      await requireReadable(query, person, always)
      return findImpersonationsOf(query, person.userId)
    },

    /** At once, at every gateway. What has ended stays as it ended. Throws 404. */
    end: (context: AccountContext, id: string): Promise<void> =>
      change(context, always, async (mutation) => {
        const { userId } = context.person
        const ended = await endSessionOfSubject(mutation.trx, id, userId)
        mutation.note({ userId, details: { impersonationId: id } })
        if (ended.length > 0) return recordEnded(mutation, ended)
        if ((await findImpersonationsOf(queryOf(mutation.trx), userId, id)).length === 0) throw unknownId(id)
      }),
  }
}
export type AccountImpersonations = ReturnType<typeof accountImpersonationOperations>
