import { expect, test } from 'vitest'
import type { KeptDecision } from '../../../gateway/inspection/decision-record.ts'
import { createDecisionRing, mostFound } from '../../../gateway/inspection/decision-ring.ts'

const keep = 2_000_000

const kept = (number: number, size: number, members: Partial<KeptDecision> = {}): KeptDecision => ({
  bytes: Buffer.from(JSON.stringify({ number, text: 'x'.repeat(size) })),
  time: number,
  request: `request-${number}`,
  sid: undefined,
  subject: `user-${number % 7}`,
  route: 'orders',
  verdict: 'allowed',
  ...members,
})

const numbers = async (ring: ReturnType<typeof createDecisionRing>, filter: object, limit: number) => {
  const { decisions, more } = await ring.find(filter, limit)
  return { numbers: decisions.map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()).number as number), more }
}

test('it never holds more bytes than it may, and the oldest go first', async () => {
  const ring = createDecisionRing({ keep })
  for (let number = 0; number < 20_000; number++) {
    ring.add(kept(number, number % 100 === 0 ? 65_536 : 300))
    if (ring.bytes > keep) expect.unreachable(`${ring.bytes} after ${number}`)
  }
  const found = await numbers(ring, {}, 1_000)
  expect(found.more).toBe(true)
  expect(found.numbers).toEqual(Array.from({ length: 1_000 }, (_, index) => 19_999 - index))
  expect((await ring.find({ request: 'request-0' }, 1)).decisions).toEqual([])
  expect((await numbers(ring, { request: 'request-19999' }, 1)).numbers).toEqual([19_999])
  // What is counted is what is there.
  const all = (await ring.find({}, 100_000)).decisions
  expect(all.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThanOrEqual(ring.bytes)
  expect(ring.bytes).toBeGreaterThan(keep - 70_000)
})

test('one that is larger than all of it is not kept', async () => {
  const ring = createDecisionRing({ keep: 10_000 })
  ring.add(kept(1, 20_000))
  expect([ring.bytes, await ring.find({}, 10)]).toEqual([0, { decisions: [], more: false }])
})

test('an answer is bounded by bytes too', async () => {
  const ring = createDecisionRing({ keep: 64_000_000 })
  for (let number = 0; number < 300; number++) ring.add(kept(number, 65_536))
  const { decisions, more } = await ring.find({}, 1_000)
  expect(more).toBe(true)
  expect(decisions.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThanOrEqual(mostFound)
  expect(decisions.length).toBeGreaterThan(100)
})

test('followers get what fits, until they end', () => {
  const ring = createDecisionRing({ keep })
  const told: string[] = []
  const end = ring.follow(
    { verdict: 'denied', subject: 'user-1' },
    { decisions: (records) => told.push(...records.map((one) => Buffer.from(one).toString())), lost: () => {} },
  )
  ring.add(kept(1, 1))
  ring.add(kept(1, 2, { verdict: 'denied' }))
  ring.add(kept(2, 3, { verdict: 'denied' }))
  end()
  ring.add(kept(1, 4, { verdict: 'denied' }))
  expect(told).toEqual([JSON.stringify({ number: 1, text: 'xx' })])
})
