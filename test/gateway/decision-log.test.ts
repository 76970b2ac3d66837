import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { createDecisionLog } from '../../gateway/decision-log.ts'
import { type Exchange, newExchange } from '../../gateway/exchange.ts'
import { silentLogger } from '../../platform/logger.ts'
import { startTestGateway } from '../support/gateway.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async (mask: string[] = []) => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const file = join(folder, 'logs', 'decisions.jsonl')
  const gateway = await startTestGateway({ config: () => ({ decisionLog: { to: file, mask } }) })
  cleanup.push(() => gateway.close())
  const lines = async (count: number) => {
    const events: Record<string, unknown>[] = []
    await vi.waitFor(async () => {
      const text = await readFile(file, 'utf8')
      events.splice(
        0,
        events.length,
        ...text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line)),
      )
      expect(events).toHaveLength(count)
    })
    return events
  }
  return { gateway, lines }
}

test('one line a request, in the shape of OPA, whatever ended it', async () => {
  const { gateway, lines } = await start()
  await gateway.call('/orders/42')
  await gateway.call('/orders', { scope: '' })
  await fetch(`${gateway.url}/orders`)
  await fetch(`${gateway.url}/nowhere`)
  const events = await lines(4)
  expect(events[0]).toEqual({
    labels: { app: 'surrogate-gateway', config: expect.stringMatching(/^[0-9a-f]{12}$/) },
    bundles: { policies: { revision: expect.any(String) } },
    decision_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    path: 'surrogate/gateway/decision',
    input: expect.objectContaining({ version: 1, subject: { id: 'u1' } }),
    result: { allow: true, headers: {} },
    requested_by: '127.0.0.1',
    http: { status: 200, route: 'orders-read' },
    metrics: { timer_server_handler_ns: expect.any(Number) },
  })
  expect(events.map(({ http, result }) => [http, result])).toMatchObject([
    [{ status: 200 }, { allow: true }],
    [
      { status: 401, route: 'orders-read' },
      { allow: false, reason: 'insufficient_scope' },
    ],
    [
      { status: 401, route: 'orders-read' },
      { allow: false, reason: 'token_missing' },
    ],
    [{ status: 404 }, { allow: false, reason: 'not_found' }],
  ])
})

test('tokens never stand in it, and masked members are named but gone', async () => {
  const { gateway, lines } = await start(['/input/token/claims/email', '/input/subject', '/input/token/nothing'])
  const token = await gateway.issuer.sign({ scope: 'read:orders', email: 'a@b.test' })
  for (let round = 0; round < 2; round++) expect((await gateway.call('/orders', { token })).status).toBe(200)
  for (const event of await lines(2)) {
    const text = JSON.stringify(event)
    expect(text).not.toContain('a@b.test')
    expect(text).not.toContain(token.split('.')[2])
    expect(event).toMatchObject({ erased: ['/input/token/claims/email', '/input/subject'] })
    expect(event['input']).not.toHaveProperty('subject')
    expect(event['input']).toHaveProperty('token.claims.sub', 'u1')
  }
})

test('a claim nested too deep to be written costs the line its input, not the line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const settings = { to, mask: ['/http/status'] }
  const log = createDecisionLog({ settings, labels: {}, revision: () => 'r1', logger: silentLogger })
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const exchange = newExchange({ url: '/' } as Exchange['incoming'], { headersSent: false } as Exchange['response'])
  log.write({ ...exchange, id: 'deep', input: { token: { claims: { deep } } } as unknown as Exchange['input'] })
  log.write({ ...exchange, id: 'next' })
  await log.close()
  const lines = (await readFile(to, 'utf8')).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { decision_id: 'deep', result: { allow: true }, unwritable: ['input'], erased: ['/http/status'] },
    { decision_id: 'next', input: expect.anything() },
  ])
})
