import { expect, test } from 'vitest'
import type { GatewayInspection } from '../../../gateway/inspection/upstreams.ts'
import { mergeInspections } from '../../../gateway/workers/merged-inspections.ts'
import { mergeReadiness } from '../../../gateway/workers/merged-readiness.ts'

/** Several accounts become one. */

type Target = GatewayInspection['upstreams'][number]['targets'][number]

const target = (members: Partial<Target>): Target => ({
  ...{ name: 'http://a', labels: {}, weight: 9, state: 'in', health: 'healthy', share: 1 },
  ...{ ejections: 0, running: 0, answered: 0, failed: 0, neither: 0 },
  ...members,
})

const inspection = (one: Partial<Target>, problem?: string): GatewayInspection => ({
  revision: 'r',
  upstreams: [
    {
      ...{ name: 'orders', balance: 'least-requests', running: 1, overdrawn: problem !== undefined },
      targets: [target(one)],
      names: [{ host: 'a', addresses: ['10.0.0.1'], ...(problem !== undefined && { problem }) }],
    },
  ],
})

test('requests are added up, and of how a target is the worst is told', () => {
  const merged = mergeInspections('r', [
    inspection({ running: 1, answered: 5, share: 0.5 }),
    inspection({ state: 'out', ejectedForMs: 9_000, ejections: 1, answered: 2, failed: 3, neither: 1 }, 'ENOTFOUND'),
  ])
  expect(merged).toEqual({
    revision: 'r',
    upstreams: [
      {
        ...{ name: 'orders', balance: 'least-requests', running: 2, overdrawn: true },
        targets: [
          target({
            ...{ state: 'out', ejectedForMs: 9_000, share: 0.5 },
            ...{ ejections: 1, running: 1, answered: 7, failed: 3, neither: 1 },
          }),
        ],
        names: [{ host: 'a', addresses: ['10.0.0.1'], problem: 'ENOTFOUND' }],
      },
    ],
  })
  expect(mergeInspections('r', [])).toEqual({ revision: 'r', upstreams: [] })
})

test('a check is good when it is in all workers, and says whose detail it is where they differ', () => {
  const answer = (keys: boolean, detail: string) => ({
    ok: keys,
    checks: { keys: { ok: keys }, targets: { ok: true, detail }, policies: { ok: true, detail: 'revision 1' } },
  })
  expect(
    mergeReadiness(
      [
        { worker: 2, answer: answer(false, '1 of 2 well') },
        { worker: 1, answer: answer(true, '2 of 2 well') },
        { worker: 3, answer: undefined },
      ],
      3,
    ),
  ).toEqual({
    'gateway workers': { ok: false, detail: '1 of 3 serve; worker 3 does not answer' },
    keys: { ok: false },
    targets: { ok: true, detail: 'worker 1: 2 of 2 well; worker 2: 1 of 2 well' },
    policies: { ok: true, detail: 'revision 1' },
  })
})
