import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

const configOf = (members: object) =>
  parseGatewayConfig(stringify({ version: 1, ...members }), { file: 'g.yaml', env: { TOKEN: 's3cret' } })
const otlp = 'https://collector.test'

test('a collector is enough', () => {
  expect(configOf({ telemetry: { otlp } }).telemetry).toEqual({ otlp, sample: 0.01, headers: {}, resource: {} })
  expect(configOf({}).telemetry).toBeUndefined()
})

test('header fields are secrets, and may come from the environment', () => {
  const { telemetry } = configOf({ telemetry: { otlp, headers: { Authorization: 'Bearer ${TOKEN}' } } })
  expect(telemetry!.headers['authorization']!.reveal()).toBe('Bearer s3cret')
  expect(JSON.stringify(telemetry)).not.toContain('s3cret')
})

test.each([
  ['0%', 0],
  ['0.1%', 0.001],
  ['0.0001%', 0.000001],
  ['12.5%', 0.125],
  ['100%', 1],
  ['100.0%', 1],
])('sample: %s', (sample, share) => {
  expect(configOf({ telemetry: { otlp, sample } }).telemetry!.sample).toBeCloseTo(share, 10)
})

test.each([
  [{ sample: '100.1%' }, 'telemetry.sample: must be a share from 0% to 100%'],
  [{ sample: '1' }, 'telemetry.sample'],
  [{ sample: 0.01 }, 'telemetry.sample'],
  [{ sample: '.5%' }, 'telemetry.sample'],
  [{ sample: '-1%' }, 'telemetry.sample'],
  [{ otlp: 'collector.test:4318' }, 'telemetry.otlp: must be an http or https URL'],
  [{ otlp: 'grpc://collector.test:4317' }, 'telemetry.otlp'],
  [{ otlp: 'https://collector.test/v1/traces' }, 'telemetry.otlp: must end before /v1/traces'],
  [{ otlp: 'https://user:s3cret@collector.test' }, 'telemetry.otlp'],
  [{ headers: { authorization: 'a\nb: c' } }, 'telemetry.headers.authorization: must be a header value'],
  [{ headers: { authorization: '' } }, 'telemetry.headers.authorization'],
  [{ headers: { 'a b': 'c' } }, 'must be a header name'],
  [{ resource: { 'a b': 'c' } }, 'must be the name of an attribute'],
  [{ interval: '5s' }, 'unknown key interval'],
])('%j is refused', (members, message) => {
  expect(() => configOf({ telemetry: { otlp, ...members } })).toThrow(message)
})

test.each([{ allowed: '1%', denied: '100.5%' }, { allowed: 1 }, { failed: '1%' }])(
  'decisionLog.sample: %j',
  (sample) => {
    expect(() => configOf({ decisionLog: { to: 'stdout', sample } })).toThrow(/sample/)
  },
)
