import { expect, test } from 'vitest'
import { follow } from '../../web/console/pages/live/follow.ts'
import { createTail } from '../../web/console/pages/live/tail.ts'

/** A clock that goes on when it is told to. */
const manualClock = () => {
  let time = 0
  let due: { at: number; run: () => void }[] = []
  return {
    now: () => time,
    later(run: () => void, ms: number) {
      const entry = { at: time + ms, run }
      due.push(entry)
      return () => void (due = due.filter((other) => other !== entry))
    },
    pass(ms: number) {
      time += ms
      const ready = due.filter(({ at }) => at <= time)
      due = due.filter((entry) => !ready.includes(entry))
      for (const { run } of ready) run()
    },
  }
}

const row = (second: number, key = `edge ${second}`) => ({
  key,
  timestamp: new Date(second * 1_000).toISOString(),
})

const start = (keep = 3) => {
  const clock = manualClock()
  const tail = createTail<ReturnType<typeof row>>({ keep, everyMs: 125, ...clock })
  let paints = 0
  tail.subscribe(() => paints++)
  return { clock, tail, paints: () => paints, keys: () => tail.view().rows.map(({ key }) => key) }
}

test('200 rows a second are at most ten paints, and of the rows only the newest are kept', () => {
  const { clock, tail, paints, keys } = start(500)
  for (let number = 0; number < 2_000; number++) {
    tail.add([row(number)])
    clock.pass(5)
  }
  clock.pass(125)
  expect(paints()).toBeLessThanOrEqual(100)
  expect(keys()).toEqual(Array.from({ length: 500 }, (_, place) => `edge ${1_999 - place}`))
})

test('rows that come out of order, or twice, stand in order and once', () => {
  const { clock, tail, keys } = start()
  tail.add([row(2), row(1)])
  clock.pass(125)
  tail.add([row(1), row(3), row(2)])
  clock.pass(125)
  expect(keys()).toEqual(['edge 3', 'edge 2', 'edge 1'])
  tail.add([row(4)])
  clock.pass(125)
  // It has left the view, and does not come back.
  tail.add([row(1)])
  clock.pass(125)
  expect(keys()).toEqual(['edge 4', 'edge 3', 'edge 2'])
})

test('two at the same time keep their order when others come', () => {
  const { clock, tail, keys } = start()
  tail.add([row(1, 'a'), row(1, 'b')])
  clock.pass(125)
  expect(keys()).toEqual(['b', 'a'])
  tail.add([row(2, 'c')])
  clock.pass(125)
  expect(keys()).toEqual(['c', 'b', 'a'])
})

test('while it is held nothing moves, and afterwards the newest are there', () => {
  const { clock, tail, keys } = start()
  tail.add([row(1)])
  clock.pass(125)
  const { rows } = tail.view()
  tail.hold(true)
  for (let number = 2; number < 100; number++) tail.add([row(number)])
  clock.pass(125)
  expect(tail.view()).toEqual({ rows, waiting: 98 })
  expect(tail.view().rows).toBe(rows)
  tail.hold(false)
  clock.pass(125)
  expect(keys()).toEqual(['edge 99', 'edge 98', 'edge 97'])
  expect(tail.view().waiting).toBe(0)
})

interface Told {
  at?: string
  name: string
}

/** Follows connections one after the other; each is a list of events, or an error instead. */
const followAll = async (connections: readonly (Told | Error)[][]) => {
  const end = new AbortController()
  const asked: (string | undefined)[] = []
  const events: string[] = []
  const states: string[] = []
  const waits: number[] = []
  await follow<Told>({
    async *open(since) {
      asked.push(since)
      for (const event of connections[asked.length - 1]!) {
        if (event instanceof Error) throw event
        yield event
      }
      if (asked.length === connections.length) end.abort()
    },
    timeOf: ({ at }) => at,
    onEvent: ({ name }) => events.push(name),
    onState: ({ kind }) => states.push(kind),
    isFinal: (error) => (error as Error).message === 'forbidden',
    signal: end.signal,
    async wait(ms) {
      waits.push(ms)
    },
  })
  return { asked, events, states, waits }
}

test('a stream that breaks goes on a little before where it was', async () => {
  const { asked, events, states } = await followAll([
    [{ name: 'gateway' }, { name: 'one', at: '2026-01-01T00:01:00.000Z' }, new Error('broken')],
    [{ name: 'gateway' }, { name: 'one', at: '2026-01-01T00:01:00.000Z' }, { name: 'two' }],
  ])
  expect(asked).toEqual([undefined, '2026-01-01T00:00:55.000Z'])
  expect(events).toEqual(['gateway', 'one', 'gateway', 'one', 'two'])
  expect(states).toEqual(['opening', 'live', 'broken', 'live'])
})

test('what cannot be reached is asked for ever more rarely, and in vain no more', async () => {
  const broken = Array.from({ length: 7 }, () => [new Error('away')])
  const { waits, states } = await followAll([...broken, [new Error('forbidden')]])
  expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000])
  expect(states.at(-1)).toBe('over')
})
