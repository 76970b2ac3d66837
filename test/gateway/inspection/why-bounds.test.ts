import { expect, test } from 'vitest'
import type { DecisionRecord } from '../../../gateway/inspection/decision-answers.ts'
import { explainDecision, type WhyParts } from '../../../gateway/inspection/why.ts'
import { createRouter } from '../../../gateway/routing/router.ts'

/** What an explanation may cost, and what it says when the gateway is another one by now. */

const scopes = Array.from({ length: 40 }, (_, index) => `s${index}`)

const record: DecisionRecord = {
  decision_id: 'r1',
  timestamp: '2026-01-01T00:00:00.000Z',
  path: 'surrogate/gateway/decision',
  input: {
    version: 1,
    request: { method: 'GET', host: 'a.test', path: '/x' },
    route: { scopes },
    token: { scopes: [], claims: {} },
  },
  result: { allow: false, reason: 'insufficient_scope', scope: scopes },
  labels: { config: 'then' },
  bundles: { policies: { revision: 'then' } },
  verdict: 'denied',
  status: 401,
  code: 'insufficient_scope',
  route: 'gone',
  duration: 1,
}

const explained = async (more: Partial<WhyParts> & { units: number; taken: number }) => {
  const { taken, ...parts } = more
  const questions: unknown[] = []
  const why = await explainDecision({
    record,
    routes: { routes: [], router: createRouter([]) },
    revisions: { configuration: 'then', policies: 'then' },
    evaluate: async (question) => {
      questions.push(question)
      return { units: taken, result: { allow: false, reason: 'insufficient_scope' } }
    },
    explain: async () => undefined,
    ...parts,
  })
  return { why, questions }
}

test('few scopes are tried one by one, and all of them together', async () => {
  const { why, questions } = await explained({ units: 100, taken: 1 })
  expect(questions).toHaveLength(1 + 8 + 1)
  expect(questions.at(-1)).toMatchObject({ input: { token: { scopes, claims: { scope: scopes.join(' ') } } } })
  expect(why.wouldAllow).toEqual([])
})

test('rules that take many units are not asked for long', async () => {
  const { why, questions } = await explained({ units: 100, taken: 100 })
  expect(questions).toHaveLength(1 + 4)
  expect(why.notes).toEqual(['Not everything was tried: the rules took too many units of work.'])
})

test('a configuration or policies that have changed since are named', async () => {
  const { why } = await explained({ units: 100, taken: 1, revisions: { configuration: 'now', policies: 'now' } })
  expect(why.notes).toEqual([
    'The configuration has changed since. Now no route takes it.',
    'The policies have changed since; those in force were asked.',
  ])
})

test('a change of what the record lacks is not tried', async () => {
  const { why, questions } = await explained({
    units: 100,
    taken: 1,
    record: { ...record, erased: ['/input/token/claims/scope'] },
  })
  expect(questions).toHaveLength(1)
  expect(why.notes[0]).toBe('The scope s0 was not tried, since the record lacks /input/token/claims/scope.')
})
