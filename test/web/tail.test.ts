import { expect, test } from 'vitest'
import { emptyTail, released, type Tail, withRows } from '../../web/console/pages/live/tail.ts'

const row = (second: number, key = `edge ${second}`) => ({ key, timestamp: new Date(second * 1_000).toISOString() })
type Row = ReturnType<typeof row>

const moving = { keep: 3, isHeld: false }
const held = { keep: 3, isHeld: true }
const after = (...steps: ((tail: Tail<Row>) => Tail<Row>)[]) =>
  steps.reduce<Tail<Row>>((tail, step) => step(tail), emptyTail)
const keysOf = ({ rows }: Tail<Row>) => rows.map(({ key }) => key)

test('only the newest are kept, however many come', () => {
  let tail: Tail<Row> = emptyTail
  for (let number = 0; number < 5_000; number += 20)
    tail = withRows(
      tail,
      Array.from({ length: 20 }, (_, more) => row(number + more)),
      { keep: 500, isHeld: false },
    )
  expect(keysOf(tail)).toEqual(Array.from({ length: 500 }, (_, place) => `edge ${4_999 - place}`))
})

test('rows that come out of order, or twice, stand in order and once', () => {
  const tail = after(
    (now) => withRows(now, [row(2), row(1)], moving),
    (now) => withRows(now, [row(1), row(3), row(2)], moving),
  )
  expect(keysOf(tail)).toEqual(['edge 3', 'edge 2', 'edge 1'])
  expect(withRows(tail, [row(2)], moving)).toBe(tail)
  // Older than all that there is room for.
  expect(keysOf(withRows(tail, [row(0)], moving))).toEqual(['edge 3', 'edge 2', 'edge 1'])
})

test('two at the same time keep their order when others come', () => {
  const two = after((now) => withRows(now, [row(1, 'a'), row(1, 'b')], moving))
  expect(keysOf(two)).toEqual(['b', 'a'])
  expect(keysOf(withRows(two, [row(2, 'c')], moving))).toEqual(['c', 'b', 'a'])
})

test('while it is held nothing moves, and afterwards the newest are there', () => {
  const before = after((now) => withRows(now, [row(1)], moving))
  let tail = before
  for (let number = 2; number < 100; number++) tail = withRows(tail, [row(number), row(number)], held)
  expect(tail.rows).toBe(before.rows)
  expect([tail.waiting, tail.held.length]).toEqual([98, 3])
  expect(released(tail, 3)).toEqual({ rows: [row(99), row(98), row(97)], held: [], waiting: 0 })
})
