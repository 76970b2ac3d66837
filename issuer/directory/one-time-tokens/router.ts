import { z } from 'zod'
import { type Database, queryOf } from '../../../platform/database/database.ts'
import { newId, randomToken } from '../../../platform/ids.ts'
import { refuseEscalation } from '../../base/authorization.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import { managementScopesOfAddress } from '../../base/management-scope-store.ts'
import type { Mutate } from '../../base/mutate.ts'
import { type Route, route } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import { email, newOneTimeToken, oneTimeToken, oneTimeTokenStatuses, toOneTimeToken } from './one-time-token.ts'
import {
  deleteOneTimeToken,
  endOneTimeToken,
  findOneTimeToken,
  insertOneTimeToken,
  listOneTimeTokens,
} from './one-time-token-store.ts'
import { consumeOneTimeToken, type TokenRefusal } from './use.ts'

export interface OneTimeTokenDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
  /** The indicators of the Management API resource. */
  indicators: readonly string[]
}

const params = z.object({ id })
const refusals = [
  'one_time_token.token_not_found',
  'one_time_token.email_mismatch',
  'one_time_token.token_expired',
  'one_time_token.token_consumed',
  'one_time_token.token_revoked',
] as const satisfies TokenRefusal[]

/** Tokens for links by mail that an integrator sends: whoever has one has the mailbox. Each is good once. */
export const oneTimeTokensRoutes = ({ database, mutate, indicators }: OneTimeTokenDependencies): Route[] => [
  route({
    method: 'GET',
    path: '/one-time-tokens',
    operationId: 'listOneTimeTokens',
    summary: 'Lists one-time tokens, newest first; the tokens themselves are not kept.',
    scope: 'users',
    query: z.object({ email: z.string().max(128).optional(), status: z.enum(oneTimeTokenStatuses).optional() }),
    paged: 'optional',
    status: 200,
    response: z.array(oneTimeToken),
    async handle({ query, page }) {
      const { rows, total } = await listOneTimeTokens(database.knex, query, page)
      return { body: rows.map(toOneTimeToken), total }
    },
  }),
  route({
    method: 'POST',
    path: '/one-time-tokens',
    operationId: 'createOneTimeToken',
    summary: 'Makes a one-time token for an email address; it is shown here only.',
    scope: 'users',
    freshProof: true,
    body: newOneTimeToken,
    status: 201,
    response: oneTimeToken.extend({ token: z.string() }),
    handle: (context) =>
      mutate(context, async ({ trx, note }) => {
        const { email } = context.body
        // Whoever has it can sign in as whose address it is.
        await refuseEscalation(context.caller, () => managementScopesOfAddress(trx, indicators, email))
        const token = randomToken()
        const digest = tokenDigest('one-time-token', token)
        const created = toOneTimeToken(await insertOneTimeToken(trx, { id: newId(), digest, ...context.body }))
        note({ details: { oneTimeTokenId: created.id } })
        return { body: { ...created, token } }
      }),
  }),
  route({
    method: 'POST',
    path: '/one-time-tokens/verify',
    operationId: 'verifyOneTimeToken',
    summary: 'Uses a one-time token up, if it is good for the address.',
    scope: 'users',
    body: z.object({ email, token: z.string().min(1).max(256) }),
    status: 200,
    response: oneTimeToken,
    // A second use must be refused, whoever repeats it.
    idempotency: 'none',
    problems: refusals,
    handle: (context) =>
      mutate(context, async ({ trx, note }) => {
        const { row, refusal } = await consumeOneTimeToken(trx, context.body)
        if (!row) throw problem(refusal)
        note({ details: { oneTimeTokenId: row.id } })
        return { body: toOneTimeToken(row) }
      }),
  }),
  route({
    method: 'GET',
    path: '/one-time-tokens/:id',
    operationId: 'getOneTimeToken',
    summary: 'Reads a one-time token; the token itself is not kept.',
    scope: 'users',
    params,
    status: 200,
    response: oneTimeToken,
    problems: ['entity.not_exists_with_id'],
    async handle({ params: { id } }) {
      const row = requireFound(await findOneTimeToken(database.query, id), id)
      return { body: toOneTimeToken(row) }
    },
  }),
  route({
    method: 'PUT',
    path: '/one-time-tokens/:id/status',
    operationId: 'replaceOneTimeTokenStatus',
    summary: 'Ends a one-time token; what has ended stays as it ended.',
    scope: 'users',
    params,
    body: z.object({ status: z.enum(oneTimeTokenStatuses) }),
    status: 200,
    response: oneTimeToken,
    problems: ['entity.not_exists_with_id', 'one_time_token.cannot_reactivate_token'],
    handle: (context) =>
      mutate(context, async ({ trx }) => {
        const { id } = context.params
        const { status } = context.body
        if (status === 'active') throw problem('one_time_token.cannot_reactivate_token')
        const ended = (await endOneTimeToken(trx, id, status)) ?? (await findOneTimeToken(queryOf(trx), id))
        return { body: toOneTimeToken(requireFound(ended, id)) }
      }),
  }),
  route({
    method: 'DELETE',
    path: '/one-time-tokens/:id',
    operationId: 'deleteOneTimeToken',
    summary: 'Deletes a one-time token.',
    scope: 'users',
    params,
    status: 204,
    problems: ['entity.not_found'],
    handle: (context) =>
      mutate(context, async ({ trx }) => {
        const { id } = context.params
        if (!(await deleteOneTimeToken(trx, id))) throw notFound(id)
      }),
  }),
]
