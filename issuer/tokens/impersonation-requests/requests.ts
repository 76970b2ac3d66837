import { randomInt } from 'node:crypto'
import type { z } from 'zod'
import type { EventContent } from '../../../events/catalogue.ts'
import type { impersonationRequest } from '../../../events/records.ts'
import { newId } from '../../../platform/ids.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Mutation } from '../../base/mutate.ts'
import {
  type ActorFacts,
  type AskedFor,
  countRequests,
  findRequest,
  insertRequest,
  type RequestRow,
  type UsedRequest,
  useRequest,
} from './request-store.ts'

export type ImpersonationRequest = z.output<typeof impersonationRequest>

export const toRequest = ({ createdAt, expiresAt, decidedAt, ...row }: RequestRow): ImpersonationRequest => ({
  ...row,
  createdAt: createdAt.getTime(),
  expiresAt: expiresAt.getTime(),
  decidedAt: decidedAt?.getTime() ?? null,
})

/** The event of what a request has become, without the HTTP request that caused it. */
export const requestEvent = (
  type: 'Impersonation.Requested' | 'Impersonation.Approved' | 'Impersonation.Refused',
  row: RequestRow,
): EventContent => ({ type, entity: { kind: 'impersonation-request', id: row.id }, data: toRequest(row) })

/** So many a person is asked within an hour, whoever asks: they must not learn to agree to get rid of it. */
const mostAnHour = 3

/** Two digits, of which the person is not being shown others. */
const newNumber = (taken: readonly string[]): string => {
  const number = String(randomInt(10, 100))
  return taken.includes(number) ? newNumber(taken) : number
}

/** Asks a person. Throws 429 when they were asked too often. */
export const openRequest = async (
  { trx, record }: Pick<Mutation, 'trx' | 'record'>,
  asked: AskedFor & { creatorId: string; actor: ActorFacts | undefined },
): Promise<RequestRow> => {
  const { count, numbers, nextIn } = await countRequests(trx, asked.userId)
  if (count >= mostAnHour) {
    throw problem('impersonation.too_many_requests', { headers: { 'Retry-After': String(Math.max(1, nextIn)) } })
  }
  const row = await insertRequest(trx, { ...asked, id: newId(), number: newNumber(numbers) })
  await record(requestEvent('Impersonation.Requested', row), { status: 202 })
  return row
}

/** Takes an approval, once, for the application that asked. Throws 404 for an unknown one, 409 when there is none. */
export const takeApproval = async (
  { trx }: Pick<Mutation, 'trx'>,
  request: { id: string; creatorId: string },
): Promise<UsedRequest> => {
  const used = await useRequest(trx, request)
  if (used) return used
  const row = await findRequest(trx, request.id)
  if (row?.creatorId !== request.creatorId) throw unknownId(request.id)
  throw problem('impersonation.request_not_approved', { data: { status: row.status } })
}
