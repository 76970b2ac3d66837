import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { capturedLogger } from '../../support/captured-logger.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startOtlpCollector } from '../../support/otlp-collector.ts'
import { until } from '../../support/until.ts'

/** A collector that is down, slow or refuses changes nothing for requests, and is told of once. */

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async () => {
  const collector = await startOtlpCollector()
  cleanup.push(collector.close)
  const { logger, lines } = capturedLogger()
  const gateway = await startTestGateway({
    logger,
    config: () => ({ telemetry: { otlp: `${collector.url}/`, sample: '100%' } }),
  })
  let closed = false
  const close = async () => {
    if (!closed) await gateway.close()
    closed = true
  }
  cleanup.push(close)
  const dropped = async (because: string) => {
    const metric = (await gateway.metrics.snapshot()).find(
      ({ name }) => name === 'surrogate_gateway_spans_dropped_total',
    )
    const values = metric?.values as { labels: { because: string }; value: number }[]
    return values.find(({ labels }) => labels.because === because)?.value ?? 0
  }
  const complaints = () => lines.filter(({ msg }) => String(msg).startsWith('telemetry cannot be sent'))
  const status = async (path = '/public/1') => (await fetch(gateway.url + path)).status
  return { collector, gateway, close, dropped, complaints, lines, status }
}

test('one that refuses: spans are counted as lost, one line says so, and one that it is over', async () => {
  const { collector, dropped, complaints, lines, status } = await start()
  collector.answer = () => 400
  expect(await status()).toBe(200)
  // The request, what it was decided in, and what was sent upstream.
  await until(async () => expect(await dropped('refused')).toBe(4))
  expect(await status()).toBe(200)
  await until(async () => expect(await dropped('refused')).toBe(8))
  expect(complaints()).toMatchObject([{ level: 'warn', signal: 'traces' }])
  collector.answer = () => 200
  expect(await status()).toBe(200)
  await until(() => expect(collector.spans).toHaveLength(4))
  await until(() =>
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'the telemetry collector takes everything again', signal: 'traces' }),
    ),
  )
})

test('one that takes no connection: the same, and the gateway ends in time', async () => {
  const { collector, close, complaints, status } = await start()
  await collector.close()
  expect(await status()).toBe(200)
  await until(() => expect(complaints()).toHaveLength(1))
  await close()
})

test('one that never answers: what waits is bounded, and requests go on', async () => {
  const { collector, close, dropped, status } = await start()
  collector.answer = () => 'hang'
  // The first batch is on its way.
  expect(await status()).toBe(200)
  await until(() => expect(collector.requests.some(({ path }) => path === '/v1/traces')).toBe(true))
  for (let sent = 0; sent < 600; sent += 50) {
    const statuses = await Promise.all(Array.from({ length: 50 }, () => status()))
    expect(new Set(statuses)).toEqual(new Set([200]))
  }
  // 2 400 spans and more, of which 2 048 can wait.
  expect(await dropped('full')).toBeGreaterThanOrEqual(300)
  await close()
})

test('another one after a reload gets what comes from then on', async () => {
  const [first, second] = [await startOtlpCollector(), await startOtlpCollector()]
  cleanup.push(first.close, second.close)
  const folder = await mkdtemp(join(tmpdir(), 'telemetry-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const gateway = await startTestGateway({
    file: join(folder, 'gateway.yaml'),
    config: () => ({ telemetry: { otlp: first.url, sample: '100%' } }),
  })
  const ask = () => fetch(`${gateway.url}/public/1`)
  await ask()
  await gateway.write({ telemetry: { otlp: second.url, sample: '100%' } })
  await gateway.reload()
  await ask()
  // What the first one was to get is sent when the gateway before has ended, and so are the last metrics.
  await until(() => expect(first.spans).toHaveLength(4))
  await until(() => expect(first.metrics).not.toEqual([]))
  await gateway.close()
  expect(second.spans).toHaveLength(4)
  expect(second.metrics).not.toEqual([])
  expect(first.spans).toHaveLength(4)
})
