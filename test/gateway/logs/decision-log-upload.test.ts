import { afterEach, expect, test } from 'vitest'
import { type LogOutput, openLog } from '../../../gateway/logs/output.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { Secret } from '../../../platform/secret.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { type LogCollector, startLogCollector } from '../../support/log-collector.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async (settings: { bufferSize?: number; batchSize?: number; interval?: number } = {}) => {
  const collector = await startLogCollector()
  const metrics = createMetrics()
  const { bufferSize = 1_048_576, ...http } = settings
  const log = openLog({
    name: 'decision',
    settings: {
      to: collector.url,
      bufferSize,
      http: { batchSize: 262_144, interval: 10, token: new Secret('s3cret'), ...http },
    },
    logger: silentLogger,
    metrics,
  })
  cleanup.push(
    () => collector.close(),
    () => log.close(),
  )
  const metric = async (line: RegExp) => line.exec((await metrics.render()).text)?.[1]
  return { collector, log, metric }
}

const write = (log: LogOutput, ...numbers: number[]) => {
  for (const n of numbers) log.write(JSON.stringify({ n, padding: 'x'.repeat(90) }))
}
const numbersOf = ({ taken }: LogCollector) => taken.map(({ n }) => n)
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

test('events arrive in order, gzipped, in batches, with the token', async () => {
  const { collector, log } = await start({ batchSize: 1_000 })
  write(log, ...upTo(25))
  await until(() => expect(numbersOf(collector)).toEqual(upTo(25)))
  expect(collector.received.every(({ events }) => events.length <= 10)).toBe(true)
  expect(collector.received[0]!.headers).toMatchObject({
    authorization: 'Bearer s3cret',
    'content-type': 'application/json',
    'content-encoding': 'gzip',
  })
})

test('a collector that fails is asked again until it takes them; nothing is lost and nothing comes twice', async () => {
  const { collector, log, metric } = await start({ batchSize: 1_000 })
  let failures = 0
  collector.answer = () => ({ status: failures++ < 2 ? 503 : 200, headers: { 'retry-after': '0' } })
  write(log, ...upTo(25))
  await until(() => expect(numbersOf(collector)).toEqual(upTo(25)))
  expect(await metric(/uploads_total\{log="decision",outcome="failed"\} (\d+)/)).toBe('2')
  expect(await metric(/log_dropped_total\{log="decision"\} (\d+)/)).toBe('0')
})

test('an event that the collector cannot take does not keep the others from it', async () => {
  const { collector, log, metric } = await start()
  collector.answer = ({ events }) => ({ status: events.some(({ n }) => n === 6) ? 413 : 200 })
  write(log, ...upTo(10))
  await until(() => expect(numbersOf(collector)).toEqual(upTo(10).filter((n) => n !== 6)))
  expect(await metric(/log_dropped_total\{log="decision"\} (\d+)/)).toBe('1')
})

test('when there is no room left the oldest that are not on their way go first, and are counted', async () => {
  const { collector, log, metric } = await start({ bufferSize: 65_536, batchSize: 1_024 })
  write(log, ...upTo(2_000))
  await until(() => expect(numbersOf(collector).at(-1)).toBe(1_999))
  const onTheirWay = collector.received[0]!.events.length
  const kept = collector.taken.length
  const all = upTo(2_000)
  expect(numbersOf(collector)).toEqual([...all.slice(0, onTheirWay), ...all.slice(onTheirWay - kept)])
  expect(await metric(/log_dropped_total\{log="decision"\} (\d+)/)).toBe(String(2_000 - kept))
})

test('a collector that does not answer costs no more memory than the buffer', async () => {
  const { collector, log, metric } = await start({ bufferSize: 65_536, batchSize: 1_024 })
  collector.answer = () => 'hang'
  write(log, ...upTo(100))
  await until(() => expect(collector.received).toHaveLength(1))
  write(log, ...upTo(2_000))
  expect(Number(await metric(/waiting_bytes\{log="decision"\} (\d+)/))).toBeLessThanOrEqual(65_536)
  await log.close()
  expect(await metric(/log_dropped_total\{log="decision"\} (\d+)/)).toBe('2100')
})

test('what is waiting at the end is sent at the end', async () => {
  const { collector, log } = await start({ interval: 600_000 })
  write(log, 1, 2, 3)
  await log.close()
  expect(numbersOf(collector)).toEqual([1, 2, 3])
  write(log, 4)
  expect(numbersOf(collector)).toEqual([1, 2, 3])
})

test('requests do not wait for a collector that does not answer', async () => {
  const collector = await startLogCollector()
  collector.answer = () => 'hang'
  const gateway = await startTestGateway({
    config: () => ({ decisionLog: { to: collector.url, http: { token: 's3cret', interval: '10ms' } } }),
  })
  cleanup.push(collector.close, gateway.close)
  for (let round = 0; round < 20; round++) expect((await gateway.call('/orders')).status).toBe(200)
  await until(() => expect(collector.received).toHaveLength(1))
  expect(collector.received[0]!.events[0]).toMatchObject({ http: { status: 200 }, result: { allow: true } })
})
