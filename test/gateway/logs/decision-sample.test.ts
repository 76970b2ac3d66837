import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createDecisionSample } from '../../../gateway/logs/decision-sample.ts'
import { problem } from '../../../gateway/refusals/problems.ts'
import type { RequestContext } from '../../../gateway/request/request-context.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { freePort } from '../../support/free-port.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startLogCollector } from '../../support/log-collector.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const finished = (members: object) => ({ response: { writableFinished: true }, ...members }) as RequestContext
const allowed = finished({ decision: { allow: true, headers: {} } })
const denied = finished({
  decision: { allow: false, reason: 'no', headers: {} },
  error: problem('policy_denied', { data: { reason: 'no' } }),
})

test('a share of each outcome is written, and what is left out is counted', async () => {
  const metrics = createMetrics()
  const lots = [0, 0.009, 0.01, 0.5, 0.999]
  let drawn = 0
  const sample = createDecisionSample({
    shares: { allowed: 0.01, denied: 0.5 },
    metrics,
    random: () => lots[drawn++ % lots.length]!,
  })
  expect(lots.map(() => sample.take(allowed))).toEqual([0.01, 0.01, 0, 0, 0])
  expect(lots.map(() => sample.take(denied))).toEqual([0.5, 0.5, 0.5, 0, 0])
  expect(await metrics.render()).toMatchObject({
    text: expect.stringMatching(
      /sampled_out_total\{outcome="allowed"\} 3\n.*sampled_out_total\{outcome="denied"\} 2\n/s,
    ),
  })
})

test('failures of ours are always written', () => {
  const sample = createDecisionSample({
    shares: { allowed: 0, denied: 0 },
    metrics: createMetrics(),
    random: () => 0.5,
  })
  const failed = [
    finished({ error: problem('server.error') }),
    finished({ decision: allowed.decision, error: problem('upstream_unavailable') }),
    finished({ decision: { allow: false, reason: 'policy_error', headers: {} }, error: problem('policy_error') }),
  ]
  expect(failed.map((context) => sample.take(context))).toEqual([1, 1, 1])
  const others = [allowed, denied, finished({ error: problem('not_found') }), finished({})]
  expect(others.map((context) => sample.take(context))).toEqual([0, 0, 0, 0])
})

const denials = { allowed: '0%', denied: '100%' }

test('with allowed requests left out the log has the denials and failures', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-sample-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const port = await freePort()
  const gateway = await startTestGateway({
    config: ({ upstream }) => ({
      decisionLog: { to, sample: denials },
      upstreams: { orders: { url: upstream.url }, gone: { url: `http://127.0.0.1:${port}` } },
      routes: [
        { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
        { id: 'gone', path: '/gone', auth: 'none', upstream: 'gone' },
      ],
    }),
  })
  await gateway.call('/public/1')
  await gateway.call('/nowhere')
  await gateway.call('/gone')
  await gateway.close()
  const lines = (await readFile(to, 'utf8')).split('\n').filter(Boolean)
  const events = lines.map((line) => JSON.parse(line))
  expect(events).toMatchObject([{ http: { status: 404 } }, { http: { status: 502 } }])
  // Whole lines stand for themselves.
  expect(events.some((event) => 'sample' in event)).toBe(false)
})

test('what is uploaded is sampled too, and says its share', async () => {
  const collector = await startLogCollector()
  cleanup.push(collector.close)
  const gateway = await startTestGateway({
    config: () => ({ decisionLog: { to: collector.url, sample: { allowed: '99.9999%', denied: '0%' } } }),
  })
  await gateway.call('/public/1')
  await gateway.call('/nowhere')
  await gateway.close()
  expect(collector.taken).toMatchObject([{ http: { status: 200 }, sample: 0.999999 }])
})
