import { describe, expect, test } from 'vitest'
import { natsMissing } from '../support/nats.ts'
import { judgeVariant } from './judge-variant.ts'
import { judge } from './verdict.ts'

/**
 * The harness finds what is wrong with deliveries that lack one of the parts that make ours right. Here the variant
 * that takes the least time; `npm run chaos` begins with all of them.
 */
describe.skipIf(natsMissing() !== undefined)(
  'the harness fails what is broken on purpose',
  { timeout: 240_000 },
  () => {
    test('without lanes, a retry is overtaken by the next event of its entity', async () => {
      const { found, report } = await judgeVariant('no-lanes')
      expect(report.deliveries).toBeGreaterThan(300)
      expect(report.missing).toEqual([])
      expect(report.outOfOrder.length).toBeGreaterThan(0)
      expect(found).toBe(true)
    })
  },
)

describe('the verdict on what arrived', () => {
  const hooks = [{ name: 'people', events: ['User.Data.Updated'] }]
  const events = [1, 2, 3].map((version) => ({
    id: `e${version}`,
    type: 'User.Data.Updated',
    entity: 'user a',
    version,
  }))
  const taken = events.map(({ id, entity, version }) => ({ hook: 'people', eventId: id, entity, version }))
  const verdictOf = (arrived: typeof taken, confirmed = new Map([['user a', 2]])) =>
    judge({ events, taken: arrived, hooks, confirmed })

  test('everything once and in order is right', () => {
    expect(verdictOf(taken)).toMatchObject({ missing: [], outOfOrder: [], strange: [], unrecorded: [], duplicates: 0 })
  })

  test('an event that never arrives is lost', () => {
    expect(verdictOf([taken[0]!, taken[2]!]).missing).toEqual(['people e2'])
  })

  test('a change that was answered and not recorded is told', () => {
    expect(verdictOf(taken, new Map([['user a', 3]])).unrecorded).toHaveLength(1)
  })
})
