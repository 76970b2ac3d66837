import type { Calls } from '../generated/api.ts'
import { operations as generated } from '../generated/operations.ts'

export type OperationId = keyof Calls & keyof typeof generated

export interface Operation {
  id: OperationId
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/api`, parameters as `:name`. */
  path: string
  /** Of which one is enough. */
  scopes: readonly string[]
  /** It answers or takes secrets: `read` is not enough. */
  secret: boolean
  paged: 'always' | 'optional' | false
  /** With `dryRun=true` it only says what would come of it. */
  canDryRun: boolean
}

export const operations: Readonly<Record<OperationId, Operation>> = generated

/** What a call takes; members that an operation has not are left out. */
export interface Input<Id extends OperationId> {
  params?: Calls[Id]['params']
  query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  body?: Calls[Id]['body']
}

/** What something takes: the permissions of an operation, or these; one of them is enough. */
export type Need = OperationId | readonly string[]

export const neededScopes = (need: Need): readonly string[] =>
  typeof need === 'string' ? operations[need].scopes : need

/** Whoever holds `scopes` may do it; undefined: it takes none. */
export const isAllowed = (need: Need | undefined, scopes: readonly string[]): boolean =>
  need === undefined || neededScopes(need).some((scope) => scopes.includes(scope))

/** Below `/api`, with its parameters filled in. */
export const pathOf = <Id extends OperationId>(id: Id, { params = {}, query = {} }: Input<Id>): string => {
  const values = params as Record<string, string>
  const path = operations[id].path.replaceAll(/:(\w+)/g, (_, name) => encodeURIComponent(values[name] ?? ''))
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [value].flat().map((one) => [name, String(one)]),
    ),
  )
  return search.size > 0 ? `${path}?${search}` : path
}
