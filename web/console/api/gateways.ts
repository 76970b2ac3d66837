import { keepPreviousData, queryOptions, useMutation, useQuery } from '@tanstack/react-query'
import { type Inspection, type InspectionEvents, inspection } from '../generated/inspection.ts'
import { callConsole } from './call.ts'
import { curlOfRequest } from './curl.ts'
import { isProblem } from './problem.ts'
import { signInAgain } from './sign-in.ts'

/** The gateways that the console asks: all of them together, or one by its name. */

export type GatewayState = 'answers' | 'away' | 'refuses'

export interface Gateway {
  name: string
  state: GatewayState
  /** Why it does not answer: a sentence. */
  because?: string
  /** Of its configuration. */
  revision?: string
}

/** A gateway that has no part in an answer. */
export interface Missing {
  gateway: string
  because: string
}

/** With the gateway that it is of. */
export type Decision = Inspection['decision']['answer'] & { gateway: string }
export type Why = Inspection['why']['answer'] & { gateway: string }
export type StreamedDecision = InspectionEvents['decision'] & { gateway: string }
export type SessionEnd = { gateway: string; ended: boolean } | Missing

export interface DecisionFilter {
  request?: string | undefined
  sid?: string | undefined
  subject?: string | undefined
  route?: string | undefined
  verdict?: 'allowed' | 'denied' | 'failed' | undefined
  gateway?: string | undefined
}

export interface ListedDecisions {
  /** Newest first. */
  decisions: Decision[]
  more: boolean
  missing: Missing[]
}

export type EndpointName = Exclude<keyof Inspection & keyof typeof inspection, 'stream'>

export interface GatewayInput<Name extends EndpointName> {
  params?: Inspection[Name]['params']
  query?: Inspection[Name]['query']
  body?: Inspection[Name]['body']
}

export const withQuery = (path: string, query: object): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value))
  return search.size > 0 ? `${path}?${search}` : path
}

const pathOf = <Name extends EndpointName>(name: Name, { params = {}, query = {} }: GatewayInput<Name>): string => {
  const values = params as Record<string, string>
  const path = inspection[name].path.replaceAll(/:(\w+)/g, (_, one) => encodeURIComponent(values[one] ?? ''))
  return withQuery(path, query)
}

/** Asks one gateway. Throws a `Problem`: `console.gateway_unavailable` when it does not answer, or its own. */
export const askGateway = <Name extends EndpointName>(
  gateway: string,
  name: Name,
  input: GatewayInput<Name> = {},
  signal?: AbortSignal,
): Promise<Inspection[Name]['answer']> =>
  callConsole(inspection[name].method, `/gateways/${gateway}${pathOf(name, input)}`, input.body, signal)

/** The same for a shell, at the gateway: `$INSPECTION` is its address, `$TOKEN` an access token of its audience. */
export const curlOfGateway = <Name extends EndpointName>(name: Name, input: GatewayInput<Name> = {}): string =>
  curlOfRequest({
    method: inspection[name].method,
    url: `$INSPECTION${pathOf(name, input)}`,
    body: input.body === undefined ? undefined : JSON.stringify(input.body, null, 2),
  }).replace(`'$INSPECTION`, `"$INSPECTION"'`)

/** Those that there are, and whether they answer. */
export const useGateways = () =>
  useQuery({
    queryKey: ['gateways'],
    queryFn: ({ signal }) =>
      callConsole<{ gateways: Gateway[]; audience: string }>('GET', '/gateways', undefined, signal),
  })

/** An answer of one gateway; `gateway` undefined: not yet. `everyMs`: it is asked again while somebody looks. */
export const useGateway = <Name extends EndpointName>(
  gateway: string | undefined,
  name: Name,
  input: GatewayInput<Name> = {},
  { when = true, everyMs }: { when?: boolean; everyMs?: number } = {},
) =>
  useQuery({
    queryKey: ['gateways', gateway, name, input],
    queryFn: ({ signal }) => askGateway(gateway!, name, input, signal),
    enabled: when && gateway !== undefined,
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
    placeholderData: keepPreviousData,
  })

/** Work or a change at one gateway. Where a fresh proof of the person is missing, they sign in and come back. */
export const useAskGateway = <Name extends EndpointName>(name: Name) =>
  useMutation({
    mutationFn: ({ gateway, ...input }: GatewayInput<Name> & { gateway: string }) =>
      askGateway(gateway, name, input as GatewayInput<Name>),
    onError: (error) => {
      if (isProblem(error, 'console.step_up_required')) signInAgain({ stepUp: true })
    },
  })

/** The last decisions of all gateways, or of the one that the filter names. `limit`: at most 1 000. */
export const useDecisions = (filter: DecisionFilter & { limit?: number }, { when = true } = {}) =>
  useQuery({
    queryKey: ['gateways', 'decisions', filter],
    queryFn: ({ signal }) =>
      callConsole<ListedDecisions>('GET', withQuery('/gateways/decisions', filter), undefined, signal),
    enabled: when,
    placeholderData: keepPreviousData,
  })

/** 404 `entity.not_found` has `missing` among its `data`: the gateways that did not answer. */
export const decisionQuery = (request: string) =>
  queryOptions({
    queryKey: ['gateways', 'decision', request],
    queryFn: ({ signal }) =>
      callConsole<Decision>('GET', `/gateways/decisions/${encodeURIComponent(request)}`, undefined, signal),
  })

export const useDecision = (request: string) => useQuery(decisionQuery(request))

export const whyQuery = (request: string) =>
  queryOptions({
    queryKey: ['gateways', 'why', request],
    queryFn: ({ signal }) =>
      callConsole<Why>('GET', `/gateways/decisions/${encodeURIComponent(request)}/why`, undefined, signal),
  })

export const useWhy = (request: string) => useQuery(whyQuery(request))

/** Whether each gateway refuses the tokens of a session by now; asked again every `everyMs` until all do. */
export const useSessionEnd = (sid: string, { when = true, everyMs = 250 } = {}) =>
  useQuery({
    queryKey: ['gateways', 'session', sid],
    queryFn: ({ signal }) =>
      callConsole<{ gateways: SessionEnd[] }>(
        'GET',
        `/gateways/sessions/${encodeURIComponent(sid)}`,
        undefined,
        signal,
      ),
    enabled: when,
    refetchInterval: ({ state }) => {
      const open = state.data?.gateways.filter((one) => 'because' in one || !one.ended) ?? []
      if (state.data && open.length === 0) return false
      // What does not answer is asked more patiently.
      return state.data && open.every((one) => 'because' in one) ? 8 * everyMs : everyMs
    },
  })
