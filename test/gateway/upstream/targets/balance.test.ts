import { describe, expect, test } from 'vitest'
import { type Candidate, createBalancer } from '../../../../gateway/upstream/targets/balance/balancer.ts'

const candidate = (name: string, currentWeight = 1, running = 0): Candidate => ({ name, currentWeight, running })

const keys = Array.from({ length: 20_000 }, (_, index) => `user-${index}`)

/** How many of the turns each got, as a share. */
const sharesOf = (turns: readonly Candidate[]) => {
  const count = (name: string) => turns.filter((turn) => turn.name === name).length
  return Object.fromEntries(
    [...new Set(turns.map(({ name }) => name))].map((name) => [name, count(name) / turns.length]),
  )
}

describe('round-robin', () => {
  test('takes turns by weight, spread out', () => {
    const balance = createBalancer('round-robin')
    const candidates = [candidate('a', 5), candidate('b'), candidate('c')]
    const turns = Array.from({ length: 14 }, () => balance(candidates, undefined).name).join('')
    expect(turns).toBe('aabacaa'.repeat(2))
  })

  test('gives those that stay their turns when one goes', () => {
    const balance = createBalancer('round-robin')
    const [a, b, c] = [candidate('a'), candidate('b'), candidate('c')]
    for (let turn = 0; turn < 4; turn++) balance([a, b, c], undefined)
    const turns = Array.from({ length: 100 }, () => balance([a, c], undefined))
    expect(sharesOf(turns)['a']).toBeCloseTo(0.5, 1)
  })
})

describe('least-requests', () => {
  const balance = createBalancer('least-requests')

  test('of idle ones takes each by its weight', () => {
    const candidates = [candidate('a', 6), candidate('b', 3), candidate('c', 1)]
    const shares = sharesOf(keys.map(() => balance(candidates, undefined)))
    expect(shares['a']).toBeCloseTo(0.6, 1)
    expect(shares['b']).toBeCloseTo(0.3, 1)
    expect(shares['c']).toBeCloseTo(0.1, 1)
  })

  test('of two takes the one that has less to do for its weight', () => {
    const [busy, idle] = [candidate('busy', 1, 1), candidate('idle')]
    expect(sharesOf(keys.map(() => balance([busy, idle], undefined)))).toEqual({ idle: 1 })
    const [large, small] = [candidate('large', 9, 8), candidate('small', 1, 1)]
    expect(sharesOf(keys.map(() => balance([large, small], undefined)))).toEqual({ large: 1 })
  })

  test('does not send all to the one that is the least busy, which may fail at once', () => {
    const candidates = [candidate('broken'), ...Array.from({ length: 9 }, (_, index) => candidate(`t${index}`, 1, 5))]
    expect(sharesOf(keys.map(() => balance(candidates, undefined)))['broken']).toBeCloseTo(0.2, 1)
  })
})

describe('hash', () => {
  const balance = createBalancer({ hash: 'subject' })
  const five = [1, 2, 3, 4, 5].map((index) => candidate(`http://10.0.0.${index}:8080`))
  const placesOf = (candidates: readonly Candidate[]) => keys.map((key) => balance(candidates, key).name)

  test('sends a key to the same one, by weight', () => {
    const [first, ...others] = five
    const weighted = [candidate(first!.name, 4), ...others]
    const shares = sharesOf(keys.map((key) => balance(weighted, key)))
    expect(shares[first!.name]).toBeCloseTo(0.5, 1)
    for (const { name } of others) expect(shares[name]).toBeCloseTo(0.125, 1)
    expect(placesOf(weighted)).toEqual(placesOf(weighted.toReversed()))
  })

  test('of one that goes moves its own keys only, to all others', () => {
    const before = placesOf(five)
    const gone = five[2]!.name
    const after = placesOf(five.filter(({ name }) => name !== gone))
    expect(before.every((name, index) => name === gone || name === after[index])).toBe(true)
    const moved = after.filter((_, index) => before[index] === gone)
    for (const { name } of five.filter((one) => one.name !== gone))
      expect(moved.filter((other) => other === name).length / moved.length).toBeCloseTo(0.25, 1)
  })

  test('of a larger weight moves keys to that one only', () => {
    const before = placesOf(five)
    const grown = five[0]!.name
    const after = placesOf(five.map((one) => (one.name === grown ? candidate(grown, 2) : one)))
    expect(after.every((name, index) => name === before[index] || name === grown)).toBe(true)
    expect(after.filter((name) => name === grown).length).toBeGreaterThan(
      before.filter((name) => name === grown).length,
    )
  })

  test('is that of other processes: the places of some keys are these', () => {
    expect(['alice', 'bob', 'carol', ''].map((key) => balance(five, key).name)).toMatchInlineSnapshot(`
      [
        "http://10.0.0.1:8080",
        "http://10.0.0.1:8080",
        "http://10.0.0.4:8080",
        "http://10.0.0.2:8080",
      ]
    `)
  })

  test('without a key takes the less busy one', () => {
    expect(balance([candidate('busy', 1, 3), candidate('idle')], undefined).name).toBe('idle')
  })
})
