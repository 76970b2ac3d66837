import type { Filter } from '../../components/filters.tsx'
import type { Calls } from '../../generated/api.ts'
import { eventTypes } from '../../generated/events.ts'

/** What is to be sent again, in the address of the page. */

export type ReplayBody = NonNullable<Calls['createHookReplay']['body']>
type State = NonNullable<ReplayBody['states']>[number]

export const replayStates: Readonly<Record<State, string>> = {
  dead: 'given up',
  succeeded: 'delivered',
  cancelled: 'cancelled',
  missing: 'never queued for it',
}

const kinds = [...new Set(eventTypes.map(({ entity }) => entity))]

/** Of deliveries, too. */
export const aboutFilters: readonly Filter[] = [
  { kind: 'text', name: 'event', label: 'Event, such as User.*', suggestions: eventTypes.map(({ type }) => type) },
  {
    ...{ kind: 'choice', name: 'entityKind', label: 'About' },
    options: Object.fromEntries(kinds.map((kind) => [kind, kind])),
  },
  { kind: 'text', name: 'entityId', label: 'Id of the entity' },
  { kind: 'time', name: 'start_time', label: 'From' },
  { kind: 'time', name: 'end_time', label: 'Until' },
]

export const replayFilters: readonly Filter[] = [
  { kind: 'choice', name: 'state', label: 'What became of it', options: replayStates },
  ...aboutFilters,
]

const timeOf = (text: string | null): number | undefined => (text && /^\d{1,15}$/.test(text) ? Number(text) : undefined)

/** Undefined: nothing narrows it down, which would be everything. */
export const replayOf = (search: URLSearchParams): ReplayBody | undefined => {
  const [state, event, kind, id] = ['state', 'event', 'entityKind', 'entityId'].map((name) => search.get(name) ?? '')
  const [since, until] = [timeOf(search.get('start_time')), timeOf(search.get('end_time'))]
  const body: ReplayBody = {
    ...(state && { states: [state as State] }),
    ...(event && { events: [event] }),
    ...(kind && id && { entity: { kind, id } }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
  return Object.keys(body).length > 0 ? body : undefined
}

/** The way from a list of deliveries to sending again what it shows, all pages of it. */
export const replayPath = (hookId: string, search: URLSearchParams): string => {
  const names = replayFilters.map(({ name }) => name)
  const kept = [...search].filter(
    ([name, value]) => names.includes(name) && (name !== 'state' || value in replayStates),
  )
  return `/hooks/${hookId}/replays?${new URLSearchParams(kept)}`
}
