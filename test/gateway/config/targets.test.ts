import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { configWarnings } from '../../../gateway/config/warnings.ts'
import { StartupError } from '../../../platform/startup-error.ts'

const configOf = (api: object, others: object = {}) =>
  parseGatewayConfig(stringify({ version: 1, upstreams: { api, ...others } }), { file: 'g.yaml', env: {} })

const problemsOf = (api: object, file: object = {}): string[] => {
  try {
    parseGatewayConfig(stringify({ version: 1, upstreams: { api }, ...file }), { file: 'g.yaml', env: {} })
    return []
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return error.message.split('\n').slice(1)
  }
}

const url = 'https://a.test'
const targets = [{ url }, { url: 'https://b.test' }]

test('a file with a url means what it meant: one target, that nobody checks or leaves out', () => {
  const { dns, health, ejection } = configOf({ url }).upstreams['api']!
  expect([dns, health, ejection]).toEqual([undefined, undefined, undefined])
})

test('what is left out has a default', () => {
  const settings = configOf({ targets, dns: {}, health: { path: '/healthz' }, ejection: {} }).upstreams['api']
  expect(settings).toMatchObject({
    targets: [{ url, weight: 1, labels: {} }, { weight: 1 }],
    dns: { refresh: 30_000, family: 'any' },
    balance: 'least-requests',
    health: { path: '/healthz', interval: 5_000, timeout: 2_000, healthyAfter: 2, unhealthyAfter: 3, status: [200] },
    ejection: { consecutiveFailures: 5, for: 30_000, maxShare: 0.5 },
    slowStart: 10_000,
  })
})

describe('is refused', () => {
  test.each<[object, RegExp]>([
    [{}, /g\.yaml:3:8: url or targets is needed/],
    [{ url, targets }, /g\.yaml:6:7: name url or targets, not both/],
    [{ targets: [] }, /targets/],
    [{ targets: [...targets, { url: 'https://A.test:443/' }] }, /g\.yaml:7:14: this target is listed twice/],
    [{ targets: [{ url: 'http://a.test' }] }, /g\.yaml:5:14: insecure/],
    [{ targets: [{ url, weight: 0 }] }, /weight/],
    [{ targets: [{ url, labels: { track: 'a b' } }] }, /must be letters, digits/],
    [{ url: 'https://10.0.0.1', dns: {} }, /5:10: needs a target with a name/],
    [{ url, dns: { refresh: '500ms' } }, /from 1s to 1h/],
    [{ url, dns: { servers: ['dns.test'] } }, /must be an address with an optional port/],
    [{ url, balance: 'random' }, /must be least-requests, round-robin or/],
    [{ url, balance: { hash: 'cookie:a' } }, /must be/],
    [{ url, health: {} }, /path/],
    [{ url, health: { path: '/x', interval: '1s', timeout: '2s' } }, /timeout must not be longer than interval/],
    [{ url, retries: { on: [500] } }, /on\[0\]: must be one of connect, refused-stream, 502, 503, 504$/],
    [{ url, ejection: { maxShare: '120%' } }, /from 0% to 100%/],
    [{ url, ejection: { maxshare: '10%' } }, /did you mean maxShare/],
  ])('%j', (api, problem) => {
    expect(problemsOf(api).join('\n')).toMatch(problem)
  })

  test('labels that no target has, unless it cannot be known which targets there are', () => {
    const route = {
      ...{ id: 'a', path: '/a', auth: 'none', upstream: 'api' },
      targets: { match: { header: 'x-track', value: 'canary' }, labels: { track: 'canary' } },
    }
    expect(problemsOf({ targets }, { routes: [route] })).toEqual([expect.stringContaining('has these labels')])
    expect(problemsOf({ targets, balance: 'random' }, { routes: [route] })).toEqual([
      expect.stringContaining('balance'),
    ])
  })
})

test('the version of TLS is what it is in quotes and without', () => {
  const tls = (minVersion: unknown) => ({ certificates: [{ cert: './a.pem', key: './a.key' }], minVersion })
  const minVersion = (written: unknown) =>
    parseGatewayConfig(stringify({ version: 1, listen: { tls: tls(written) } }), { file: 'g.yaml', env: {} }).listen.tls
      ?.minVersion
  expect([minVersion(1.3), minVersion('1.3')].map(String)).toEqual(['1.3', '1.3'])
  expect(() => minVersion(1.1)).toThrow('must be one of 1.2, 1.3')
})

test.each(['10.0.0.53', '10.0.0.53:53', 'fd00::53', '[fd00::53]:5353'])('%s is a name server', (server) => {
  expect(problemsOf({ url, dns: { servers: [server] } })).toEqual([])
})

test('a target of its own cannot be left out, which is said', () => {
  expect(configWarnings(configOf({ url, ejection: {} }))).toEqual([
    'the upstream api has one target, which is used whatever upstreams.api.ejection says',
  ])
  expect(configWarnings(configOf({ targets, ejection: {} }))).toEqual([])
  expect(configWarnings(configOf({ url, dns: {}, ejection: {} }))).toEqual([])
})

test('one server behind two upstreams is found among their targets', () => {
  expect(configWarnings(configOf({ targets }, { same: { url, pathEquality: { case: 'insensitive' } } }))).toEqual([
    'the upstreams api and same are one server, and differ in pathEquality',
  ])
})
