import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useId, useState } from 'react'
import { callConsole } from '../../api/call.ts'
import { useDecisionStream } from '../../api/gateway-stream.ts'
import { type DecisionFilter, type ListedDecisions, withQuery } from '../../api/gateways.ts'
import { type DecisionRow, rowOf } from './decision-row.ts'
import { emptyTail, released, type Tail, withRows } from './tail.ts'

/** Rows that a tab keeps. */
export const kept = 500
/** What is there when the page opens. */
const first = 100

/** The decisions of all gateways that fit, from the last ones on, as they are made. `isHeld`: nothing moves. */
export const useTail = (filter: Omit<DecisionFilter, 'request'>, isHeld: boolean) => {
  const client = useQueryClient()
  const asked = JSON.stringify(filter)
  const [tail, setTail] = useState<{ asked: string; rows: Tail<DecisionRow> }>({ asked, rows: emptyTail })
  // Another filter is another tail.
  if (tail.asked !== asked) setTail({ asked, rows: emptyTail })
  const change = (next: (rows: Tail<DecisionRow>) => Tail<DecisionRow>) =>
    setTail((now) => (now.asked === asked ? { asked, rows: next(now.rows) } : now))

  const stream = useDecisionStream(filter, {
    onDecisions: (decisions) => change((rows) => withRows(rows, decisions.map(rowOf), { keep: kept, isHeld })),
  })
  const hasOpened = stream.state === 'open' || stream.state === 'broken'
  // The last ones are asked for when the stream is open, and never twice: so nothing is between them and what comes.
  const { data: last, error } = useQuery({
    queryKey: ['last decisions', useId(), asked],
    queryFn: ({ signal }) =>
      callConsole<ListedDecisions>(
        'GET',
        withQuery('/gateways/decisions', { ...filter, limit: first }),
        undefined,
        signal,
      ),
    enabled: hasOpened,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each answer
  useEffect(() => {
    if (last) change((rows) => withRows(rows, last.decisions.map(rowOf).toReversed(), { keep: kept, isHeld: false }))
  }, [last])
  // biome-ignore lint/correctness/useExhaustiveDependencies: when somebody stops looking
  useEffect(() => {
    if (!isHeld) change((rows) => released(rows, kept))
  }, [isHeld])
  // Whoever is signed out is told so by what the page asks otherwise.
  useEffect(() => {
    if (stream.state === 'ended') void client.invalidateQueries()
  }, [stream.state, client])

  return { rows: tail.rows.rows, waiting: tail.rows.waiting, isKnown: last !== undefined, error, stream }
}
