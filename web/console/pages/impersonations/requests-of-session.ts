import { useState } from 'react'
import { useDecisionStream } from '../../api/gateway-stream.ts'
import { type Decision, type Missing, useDecisions } from '../../api/gateways.ts'

/** What gateways decided about the requests of a session, and which of them do not say. */
export interface RequestsOfSession {
  decisions: readonly Decision[]
  /** There are more than are shown: the last ones are. */
  more: boolean
  missing: readonly Missing[]
  error: unknown
}

const mostShown = 1_000
/** The stream begins before the list ends, so that there is no hole between them. In ms. */
const overlap = 10_000

/** Those that gateways keep, and with `isLive` each further one as it is made. */
export const useRequests = (sid: string, isLive: boolean): RequestsOfSession => {
  const { data, error } = useDecisions({ sid, limit: mostShown })
  const [since] = useState(() => new Date(Date.now() - overlap).toISOString())
  const [live, setLive] = useState<readonly Decision[]>([])
  const stream = useDecisionStream(
    { sid },
    { when: isLive, since, onDecisions: (batch) => setLive((before) => [...before, ...batch].slice(-mostShown)) },
  )
  const all = new Map([...(data?.decisions ?? []), ...live].map((one) => [`${one.gateway} ${one.decision_id}`, one]))
  return {
    decisions: [...all.values()],
    more: data?.more ?? false,
    missing: isLive && stream.state === 'open' ? missingOf(stream.gateways) : (data?.missing ?? []),
    error,
  }
}

const missingOf = (gateways: ReturnType<typeof useDecisionStream>['gateways']): Missing[] =>
  Object.entries(gateways).flatMap(([gateway, { state, because = '' }]) =>
    state === 'answers' ? [] : [{ gateway, because }],
  )
