import { useEffect, useEffectEvent, useState } from 'react'
import { type DecisionFilter, type GatewayState, type StreamedDecision, withQuery } from './gateways.ts'
import { createStreamPosition } from './stream-position.ts'

export interface DecisionStream {
  /** `ended`: the person may not read on. */
  state: 'connecting' | 'open' | 'broken' | 'ended'
  /** How each gateway does, by name. */
  gateways: Readonly<Record<string, { state: GatewayState; because?: string }>>
  /** Decisions that the gateways could not hand over, at least; since the stream began. */
  lost: number
}

export interface DecisionStreamOptions {
  /** Gets what has come, oldest first: at most ten times a second, and each decision once. */
  onDecisions: (decisions: readonly StreamedDecision[]) => void
  /** False: it is not open. What was made meanwhile comes when it is opened again. */
  when?: boolean
  /** RFC 3339: from when on, for a stream that has had nothing yet. Default: from now on. */
  since?: string | undefined
}

/** In ms: eight paints a second, of ten that are allowed, since other things are painted as well. */
const batchMs = 125
/** Of what waits for a page that is not shown. */
const mostWaiting = 2_000
const retryMs = { first: 300, longest: 5_000 }

/**
 * The decisions of all gateways as they are made, over breaks of any connection, without a hole and without one twice.
 * Another filter is another stream.
 */
export const useDecisionStream = (
  filter: Omit<DecisionFilter, 'request'>,
  { onDecisions, when = true, since }: DecisionStreamOptions,
): DecisionStream => {
  const [shown, setShown] = useState<DecisionStream>(nothing)
  const hand = useEffectEvent(onDecisions)
  const key = JSON.stringify(filter)
  // Outlives pauses, and is another one for another filter.
  const [held, setHeld] = useState(() => ({ key, position: createStreamPosition(since) }))
  if (held.key !== key) setHeld({ key, position: createStreamPosition(since) })
  const { position } = held

  useEffect(() => {
    setShown(nothing)
    if (!when) return
    const left = new AbortController()
    let waiting: StreamedDecision[] = []
    let lost = 0
    let timer: number | undefined
    const flush = () => {
      timer = undefined
      const [batch, more] = [waiting, lost]
      waiting = []
      lost = 0
      if (batch.length > 0) hand(batch)
      if (more > 0) setShown((now) => ({ ...now, lost: now.lost + more }))
    }
    const flushSoon = () => {
      timer ??= window.setTimeout(flush, batchMs)
    }
    const onEvent = (name: string, data: never) => {
      if (name === 'decision') {
        if (!position.take(data)) return
        waiting.push(data)
        // The oldest would be the first to leave a page too.
        if (waiting.length > 2 * mostWaiting) waiting = waiting.slice(-mostWaiting)
        flushSoon()
      } else if (name === 'gateway') {
        const { gateway, ...state } = data as { gateway: string; state: GatewayState; because?: string }
        position.gateway(gateway, state.state === 'answers')
        setShown((now) => ({ ...now, gateways: { ...now.gateways, [gateway]: state } }))
      } else if (name === 'lost') {
        lost += (data as { lost: number }).lost
        flushSoon()
      }
    }
    const run = async () => {
      for (let failures = 0; !left.signal.aborted; ) {
        const address = withQuery('/console/gateways/decisions/stream', { ...JSON.parse(key), since: position.since() })
        const opened = (at: Date) => {
          position.begin(at)
          failures = 0
          setShown((now) => ({ ...now, state: 'open' }))
        }
        const isOver = await readStream(address, left.signal, { onEvent, opened }).catch(() => false)
        if (left.signal.aborted) return
        setShown((now) => ({ ...now, state: isOver ? 'ended' : 'broken' }))
        if (isOver) return
        await pause(Math.min(retryMs.first * 2 ** failures++, retryMs.longest), left.signal)
      }
    }
    void run()
    return () => {
      left.abort()
      window.clearTimeout(timer)
      flush()
    }
  }, [key, when, position])

  return shown
}

const nothing: DecisionStream = { state: 'connecting', gateways: {}, lost: 0 }

/** Whether the person may not read on; else it is to be opened again. */
const readStream = async (
  address: string,
  signal: AbortSignal,
  told: { opened(at: Date): void; onEvent(name: string, data: never): void },
): Promise<boolean> => {
  const response = await fetch(address, { signal, headers: { accept: 'text/event-stream' }, redirect: 'error' })
  if (response.status === 401 || response.status === 403) return true
  if (!response.ok || !response.body) return false
  told.opened(new Date(response.headers.get('date') ?? Date.now()))
  let rest = ''
  let isOver = false
  for await (const text of textOf(response.body)) {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (name === undefined || data === undefined) continue
      const value = JSON.parse(data)
      if (name === 'end') isOver = value.because === 'signed_out'
      else told.onEvent(name, value as never)
    }
  }
  return isOver
}

const textOf = async function* (body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
