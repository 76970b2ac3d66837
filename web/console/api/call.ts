import type { Calls } from '../generated/api.ts'
import { rememberCall } from './call-log.ts'
import { type Input, type OperationId, operations, pathOf } from './operations.ts'
import { Problem, unreachable } from './problem.ts'

export interface Answer<Body> {
  body: Body
  /** Of a list: rows on all pages together. */
  total: number | undefined
  /** There are more: they were counted no further. */
  isCapped: boolean
  /** The version that `If-Match` of a change names. */
  etag: string | undefined
}

export interface CallOptions {
  signal?: AbortSignal
  /** Changes only this version; another one is 412. */
  ifMatch?: string | undefined
}

/** Calls an operation of the Management API through the session of this browser. Throws a `Problem`. */
export const call = async <Id extends OperationId>(
  id: Id,
  input: Input<Id> = {},
  options: CallOptions = {},
): Promise<Answer<Calls[Id]['answer']>> => {
  const { method } = operations[id]
  const path = pathOf(id, input)
  const started = performance.now()
  const response = await send(`/console/api${path}`, { method, body: input.body, ...options })
  const requestId = requestIdOf(response)
  const ms = Math.round(performance.now() - started)
  rememberCall({ id, method, path, status: response.status, ms, requestId, at: Date.now() })
  const total = response.headers.get('total-number')
  return {
    body: (await bodyOf(response)) as Calls[Id]['answer'],
    total: total === null ? undefined : Number(total),
    isCapped: response.headers.has('total-number-is-capped'),
    etag: response.headers.get('etag') ?? undefined,
  }
}

/** Calls what is the console's own: below `/console`, not of the Management API. */
export const callConsole = async <Body>(
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Body> => (await bodyOf(await send(`/console${path}`, { method, body, ...(signal && { signal }) }))) as Body

const send = (
  address: string,
  { method, body, ifMatch, signal }: CallOptions & { method: string; body: unknown },
): Promise<Response> =>
  fetch(address, {
    method,
    headers: {
      accept: 'application/json',
      ...(method !== 'GET' && { 'content-type': 'application/json' }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    redirect: 'error',
  }).catch((error: unknown) => {
    throw signal?.aborted ? error : unreachable(error)
  })

const requestIdOf = ({ headers }: Response): string | undefined => headers.get('logto-core-request-id') ?? undefined

const bodyOf = async (response: Response): Promise<unknown> => {
  const text = await response.text()
  const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '')
  const body = isJson && text !== '' ? JSON.parse(text) : undefined
  if (!response.ok) throw new Problem({ status: response.status, requestId: requestIdOf(response), body })
  return body
}
