import { expect, test } from 'vitest'
import { rowOf } from '../../web/console/pages/live/decision-row.ts'
import { curlOfDecision } from '../../web/console/pages/why/curl-of-decision.ts'

const decision = {
  gateway: 'edge-1',
  decision_id: 'r1',
  timestamp: '2026-01-01T00:00:00.000Z',
  verdict: 'denied' as const,
  status: 403,
  duration: 1.5,
}

test('a line of the tail says who did what, as far as masks leave it', () => {
  const input = { request: { method: 'POST', path: '/orders' }, subject: { id: 'ada' }, actor: { id: 'sue' } }
  expect(rowOf({ ...decision, input, result: { reason: 'office_hours' } })).toMatchObject({
    key: 'edge-1 r1',
    what: 'POST /orders',
    code: 'office_hours',
    subject: 'ada',
    actor: 'sue',
  })
  for (const masked of [undefined, null, 'x', { request: 'x', subject: null }])
    expect(rowOf({ ...decision, input: masked })).toMatchObject({ what: 'A request that the masks do not name' })
})

test('the request of a decision as curl: with a token where there was one, and what is missing named', () => {
  const request = {
    method: 'GET',
    scheme: 'https',
    host: 'api.example',
    path: '/orders/4',
    query: { q: ["it's", 'b'] },
  }
  expect(curlOfDecision({ input: { request, token: {} } })).toBe(
    `curl 'https://api.example/orders/4?q=it%27s&q=b' \\\n  -H "Authorization: Bearer $TOKEN"`,
  )
  const posted = { method: 'POST', host: 'localhost:3000', path: '/a{b}', body: { a: 1 }, headers: { 'x-a': ["it's"] } }
  expect(curlOfDecision({ input: { request: posted }, masked: ['/input/request/query/key', '/input/token/x'] })).toBe(
    [
      '# Not kept by the gateway, put yours: /input/request/query/key',
      `curl -g -X POST 'http://localhost:3000/a{b}' \\`,
      `  -H 'x-a: it'\\''s' \\`,
      `  -H 'Content-Type: application/json' \\`,
      `  -d '{"a":1}'`,
    ].join('\n'),
  )
  expect(curlOfDecision({ input: { request: { method: 'GET' } } })).toBeUndefined()
})
