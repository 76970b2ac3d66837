import type { Knex } from 'knex'
import type { z } from 'zod'
import type { EventContent } from '../../events/catalogue.ts'
import type { EventRequest } from '../../events/outbox.ts'
import type { ManagementScope } from './authorization.ts'
import type { ProblemCode } from './errors/problems.ts'
import type { Page } from './lists/list-store.ts'
import type { VersionedEntity } from './versions/entities.ts'
import type { IfMatch } from './versions/if-match.ts'

export type { ManagementScope } from './authorization.ts'

/**
 * An operation of the issuer as data. One definition gives the route, its authorization, its validation, the `request`
 * member of its events and its entry in the OpenAPI document; `router.ts` of each room exports an array of them and
 * `api/routes.ts` lists those.
 */
export interface Operation<
  Params extends z.ZodType = z.ZodType,
  QueryString extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Paged extends Paging = Paging,
> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/api`, parameters as `:name`. It is the `matchedRoute` of events. */
  path: string
  /** Unique, camelCase, a verb first: `createUser`. */
  operationId: string
  summary: string
  params?: Params
  query?: QueryString
  /** An absent body is parsed as `{}`. */
  body?: Body
  /** The status of success, which is also what events report. */
  status: number
  /** It answers 201 instead when it makes something new. */
  mayCreate?: boolean
  /** The body of 202, which is answered instead when somebody has to agree first. */
  pending?: z.ZodType
  /** The body of success; absent when there is none. */
  response?: z.ZodType
  /** Instead of `response`: a value of each line, when the handler answers `lines`. */
  lines?: z.ZodType
  /** Instead of `response`: the `data` of each server-sent event, when the handler answers `events`. */
  stream?: z.ZodType
  /** Answers with `Total-Number` and `Link`: the handler returns `total`. */
  paged?: Paged
  /**
   * What `Idempotency-Key` does to this POST. `atomic` (default): the kept answer is part of the transaction of the
   * change. `deferred`: the handler needs its change committed while it still runs, so the answer is kept a moment
   * later. `none`: the header is ignored.
   */
  idempotency?: 'atomic' | 'deferred' | 'none'
  /** The problems that callers meet here, besides those of every route. */
  problems?: readonly ProblemCode[]
  /** Of those, what is answered with another status than the problem table's. */
  problemStatuses?: Readonly<Partial<Record<ProblemCode, number>>>
  handle(
    context: RouteContext<z.output<Params>, z.output<QueryString>, z.output<Body>, PageOf<Paged>>,
  ): Promise<RouteResult> | Promise<void>
}

/** A list is answered in pages always, or only when the caller asks for one. */
type Paging = 'always' | 'optional' | undefined

type PageOf<Paged extends Paging> = Paged extends 'always' ? Page : Page | undefined

/** Of the Management API: machine-to-machine callers, whose tokens carry scopes. */
export interface ManagementAccess {
  access: 'management'
  /** The finer scopes of which one suffices besides `all` (and `read` for GET, unless `secret`). */
  scope: ManagementScope | readonly ManagementScope[]
  /** A GET whose answer holds secrets or digests is not for holders of `read`. */
  secret?: boolean
  /**
   * A person must have proven lately who they are (`requireFreshProof`): it shows or replaces a secret, concerns keys,
   * acts as somebody, or deletes what others hang on. Machines go on as they did. A GET leaves a row in the audit
   * trail, whoever calls.
   */
  freshProof?: boolean
}

/** Of people: while they sign in, about themselves once they have, and in the console. */
export type PersonalAccess = { access: 'interaction' } | { access: 'account' } | { access: 'console' }

/** An operation and whom it is for; `access` decides where `api/` mounts it and how its caller is proven. */
export type Route = Operation & (ManagementAccess | PersonalAccess)

export type RouteFor<Access extends Route['access']> = Extract<Route, { access: Access }>
export type ManagementRoute = RouteFor<'management'>

export const routesFor = <Access extends Route['access']>(access: Access, routes: readonly Route[]) =>
  routes.filter((candidate): candidate is RouteFor<Access> => candidate.access === access)

export interface RouteContext<Params, QueryString, Body, Asked = Page | undefined> extends OperationContext {
  params: Params
  query: QueryString
  body: Body
  /** Undefined when the route is not paged, or the caller of an optional one asked for no page. */
  page: Asked
  /** The header `Last-Event-ID`, for streams. */
  lastEventId?: string | undefined
}

/** What an operation needs to know of the call that started it; every `RouteContext` is one. `mutate` takes it. */
export interface OperationContext {
  operationId: string
  /** Before the operation in the audit trail. Default: `Management`. */
  auditArea?: 'Management' | 'Account' | 'Console' | undefined
  caller: Caller
  /** What events say of the request that caused them. */
  request: EventRequest
  /** The names of the body's members, for the audit trail; values may be secret. */
  fields: readonly string[]
  /**
   * The transaction that the change becomes part of, when its answer is kept with it (`idempotency.ts`). `mutate` joins
   * it.
   */
  joined?: JoinedTransaction
  /** Of a PATCH, PUT or DELETE: what it changes, if that has a version. */
  entity?: ConcernedEntity | undefined
  dryRun?: DryRun | undefined
}

/** A change that is made and undone, to see what it would do. `mutate` calls both. */
export interface DryRun {
  begin(trx: Knex.Transaction): Promise<void>
  /** Throws, so that nothing stays; `events` are those that were recorded. */
  end(trx: Knex.Transaction, events: readonly EventContent[]): Promise<never>
}

/** What a change is about, with the versions before and after it. */
export interface ConcernedEntity extends VersionedEntity {
  /** What its version must be; `mutate` sees to that, and takes it away once the change is made. */
  ifMatch?: IfMatch | undefined
  /** As `mutate` left it. */
  version?: number
}

export interface JoinedTransaction {
  trx: Knex.Transaction
  /** Before the answer. */
  afterCommit(work: () => void | Promise<void>): void
}

/** A person who calls the Management API, through the console. */
export interface CallingPerson {
  userId: string
  /** The authorization that the token came of. */
  sid: string | undefined
  /** They proved lately who they are. */
  isFresh: boolean
}

/** Who calls the Management API: the verified access token. */
export interface Caller {
  /** `sub`: the application of a machine-to-machine token. */
  subject: string
  clientId: string
  scopes: ReadonlySet<string>
  /** Absent: a machine. */
  person?: CallingPerson | undefined
  /** Those that the token has now. Rejects when it no longer counts. */
  scopesNow?: () => Promise<ReadonlySet<string>>
}

/** `id` is where a caller goes on that has lost the connection. */
export interface ServerSentEvent {
  id?: string
  event: string
  data: unknown
}

/** `status` overrides the route's (a PUT that may create). */
export interface RouteResult {
  body?: unknown
  /**
   * Instead of a body: values that are streamed as lines of JSON (`application/x-ndjson`), as fast as the caller reads.
   */
  lines?: AsyncIterable<unknown>
  /** Instead of a body: `text/event-stream`. Undefined stands for a comment; `signal` aborts when the caller leaves. */
  events?: (signal: AbortSignal) => AsyncIterable<ServerSentEvent | undefined>
  total?: number
  /** There are more than `total`. */
  isCapped?: boolean
  status?: number
  headers?: Record<string, string>
}

/** Whether `Idempotency-Key` means something to the route. */
export const takesKey = ({ method, idempotency }: Pick<Operation, 'method' | 'idempotency'>): boolean =>
  method === 'POST' && idempotency !== 'none'

/** Infers the types of `handle` from the schemas beside it. Without `access` it is for the Management API. */
export const route = <
  Params extends z.ZodType = z.ZodType<Record<string, never>>,
  QueryString extends z.ZodType = z.ZodType<Record<string, never>>,
  Body extends z.ZodType = z.ZodType<Record<string, never>>,
  Paged extends Paging = undefined,
>(
  definition: Operation<Params, QueryString, Body, Paged> &
    ((Omit<ManagementAccess, 'access'> & { access?: 'management' }) | PersonalAccess),
): Route => ({ access: 'management', ...definition }) as unknown as Route
