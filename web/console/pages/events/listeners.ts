import { useRead } from '../../api/queries.ts'
import { useRefusal } from '../../api/session.tsx'
import type { Calls } from '../../generated/api.ts'
import { eventTypes } from '../../generated/events.ts'

type Hook = Calls['listHooks']['answer'][number]

/** Undefined for whoever may not read them, and until they are there. */
export const useHooks = (): readonly Hook[] | undefined => {
  const refusal = useRefusal('listHooks')
  return useRead('listHooks', {}, { when: refusal === undefined }).data?.body
}

/** The hooks that get events of a type. */
export const listenersOf = (hooks: readonly Hook[], type: string): Hook[] => {
  const patterns = eventTypes.find((row) => row.type === type)?.patterns ?? []
  return hooks.filter(
    ({ enabled, event, events }) => enabled && [...events, event].some((one) => one && patterns.includes(one)),
  )
}
