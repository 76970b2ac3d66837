import type { z } from 'zod'
import type { ProblemCode } from '../../base/errors/problems.ts'
import { type Operation, type Route, type RouteContext, type RouteResult, route } from '../../base/route.ts'
import type { AccountContext } from '../person.ts'

type Nothing = z.ZodType<Record<string, never>>

interface Definition<Params extends z.ZodType, QueryString extends z.ZodType, Body extends z.ZodType>
  extends Omit<Operation<Params, QueryString, Body, undefined>, 'handle' | 'paged' | 'idempotency'> {
  handle(
    call: RouteContext<z.output<Params>, z.output<QueryString>, z.output<Body>> & AccountContext,
  ): Promise<RouteResult> | Promise<void>
}

/** An operation of the Account API: `person` is who has signed in. */
export const accountRoute = <
  Params extends z.ZodType = Nothing,
  QueryString extends z.ZodType = Nothing,
  Body extends z.ZodType = Nothing,
>(
  definition: Definition<Params, QueryString, Body>,
): Route => route({ ...definition, access: 'account', idempotency: 'none' } as never)

/** Of a change of this field. */
export const editProblems: readonly ProblemCode[] = ['account_center.not_enabled', 'account_center.field_not_editable']

/** Of one that needs that the person proved again who they are. */
export const reauthenticatedProblems: readonly ProblemCode[] = [
  ...editProblems,
  'verification_record.permission_denied',
]
