import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { type DecisionQuery, listDecisions, type StreamEvent, streamDecisions } from '../../api/gateways.ts'
import { isProblem } from '../../api/problem.ts'
import { type DecisionRow, rowOf } from './decision-row.ts'
import { type FollowState, follow } from './follow.ts'
import { createTail } from './tail.ts'

/** Rows that a tab keeps. */
export const kept = 500
/** Eight paints a second: often enough to look alive, and less than the ten that are allowed. In ms. */
const everyMs = 125
/** What is there when the page opens. */
const first = 100

export interface GatewayState {
  state: 'answers' | 'away' | 'refuses'
  because?: string | undefined
}

export interface TailStatus {
  stream: FollowState
  /** By name. */
  gateways: Readonly<Record<string, GatewayState>>
  /** That somebody on the way was too slow for. */
  lost: number
}

const opening: TailStatus = { stream: { kind: 'opening' }, gateways: {}, lost: 0 }

/** The decisions of all gateways that fit, from the last ones on, as they are made. */
export const useTail = (filter: Readonly<Record<string, string>>) => {
  const client = useQueryClient()
  const [tail] = useState(() => createTail<DecisionRow>({ keep: kept, everyMs }))
  const [status, setStatus] = useState(opening)
  const asked = JSON.stringify(filter)

  useEffect(() => {
    const end = new AbortController()
    const query = JSON.parse(asked) as DecisionQuery
    tail.clear()
    setStatus(opening)
    void follow<StreamEvent>({
      open: (since, signal) => openStream(query, since, signal),
      timeOf: (event) => (event.name === 'decision' ? event.data.timestamp : undefined),
      onEvent(event) {
        if (event.name === 'decision') return tail.add([rowOf(event.data)])
        setStatus((before) => told(before, event))
      },
      onState(stream) {
        setStatus((before) => ({ ...before, stream }))
        // Whoever is signed out is told so by what the page asks otherwise.
        if (stream.kind === 'over') void client.invalidateQueries()
      },
      isFinal: (error) => isProblem(error) && error.status >= 400 && error.status < 500 && error.status !== 429,
      signal: end.signal,
    })
    return () => end.abort()
  }, [asked, tail, client])

  return { tail, view: useSyncExternalStore(tail.subscribe, tail.view), status }
}

/** The last ones are asked for when the stream is open: what is decided in between comes twice, and is shown once. */
async function* openStream(query: DecisionQuery, since: string | undefined, signal: AbortSignal) {
  const stream = streamDecisions({ ...query, ...(since !== undefined && { since }) }, signal)
  let isFirst = since === undefined
  for await (const event of stream) {
    yield event
    if (!isFirst) continue
    isFirst = false
    const { decisions } = await listDecisions({ ...query, limit: first }, signal)
    for (const data of decisions.toReversed()) yield { name: 'decision', data } satisfies StreamEvent
  }
}

const told = (status: TailStatus, event: StreamEvent): TailStatus => {
  if (event.name === 'lost') return { ...status, lost: status.lost + event.data.lost }
  if (event.name !== 'gateway') return status
  const { gateway, state, because } = event.data
  return { ...status, gateways: { ...status.gateways, [gateway]: { state, because } } }
}
