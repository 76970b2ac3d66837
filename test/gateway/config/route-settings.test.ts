import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

const parse = (route: object, more: object = {}) =>
  parseGatewayConfig(
    stringify({
      version: 1,
      issuers: [{ issuer: 'https://id.test' }],
      upstreams: { api: { url: 'http://localhost:1' } },
      routes: [{ id: 'r', path: '/x', audience: ['a'], upstream: 'api', ...route }],
      ...more,
    }),
    { file: 'gateway.yaml', env: {} },
  )
const problemOf = (route: object, more?: object): string => {
  try {
    parse(route, more)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('settings of traffic', () => {
  test('have defaults', () => {
    const { routes, upstreams, limits, drain, forwardedBy } = parse({
      rateLimit: { by: 'subject', requests: 10, per: '1m' },
      cors: { origins: ['https://a.test'] },
    })
    expect(routes[0]).toMatchObject({
      websocket: false,
      rateLimits: [{ name: 'subject', by: 'subject', requests: 10, per: 60_000, burst: 10 }],
    })
    expect(routes[0]!.cors!.allowed('https://a.test')).toBe('https://a.test')
    expect(upstreams).toMatchObject({ api: { maxWebSockets: 4_096, webSocketIdleTimeout: 300_000 } })
    expect([limits.keepAliveTimeout, drain, forwardedBy]).toEqual([
      75_000,
      { delay: 0, timeout: 10_000 },
      'x-forwarded',
    ])
  })

  const limit = { by: 'client', requests: 1, per: '1s' }
  test.each<[string, object, string]>([
    [
      'credentials for any page',
      { cors: { origins: ['*'], credentials: true } },
      'credentials for pages of any origin',
    ],
    ['an origin with a path', { cors: { origins: ['https://a.test/x'] } }, 'must be an origin'],
    ['no origin', { cors: { origins: [] } }, 'cors.origins'],
    ['two limits of one name', { rateLimit: [limit, limit] }, 'two limits have the same name'],
    ['a limit of nobody', { rateLimit: { ...limit, by: 'cookie' } }, 'rateLimit'],
    ['a limit in no time', { rateLimit: { ...limit, per: '0s' } }, 'rateLimit'],
    [
      'a limit by client where nobody is known',
      { auth: 'none', audience: [], rateLimit: limit },
      'can only be limited by address',
    ],
    ['a body of a WebSocket', { websocket: true, policyBody: { type: 'json' } }, 'opens a WebSocket has no body'],
    ['a body of another type', { policyBody: { type: 'xml' } }, 'policyBody.type: must be json'],
    ['a body without a type', { policyBody: {} }, 'policyBody.type: must be json'],
    ['a body that is too long', { policyBody: { type: 'json', maxBytes: '257kB' } }, 'must be from 1 to 262144 bytes'],
    ['a WebSocket without GET', { websocket: true, methods: ['POST'] }, 'opened with GET'],
  ])('%s is an error', (_what, route, problem) => {
    expect(problemOf(route)).toContain(problem)
  })

  test('a body for the policy needs an upstream, and room', () => {
    const policyBody = { type: 'json', maxBytes: '256kB' }
    const forwardAuth = { trustedProxies: ['10.0.0.1'], forwardAuth: { dialect: 'nginx' } }
    expect(problemOf({ policyBody, upstream: '' }, forwardAuth)).toContain('forward-auth is asked about requests')
    expect(problemOf({ policyBody, upstream: '' }, { extAuthz: { port: 9191 } })).not.toContain('policyBody')
    expect(problemOf({ policyBody })).toBe('')
    expect(problemOf({ policyBody }, { limits: { policyBodies: '300kB' } })).toContain('must be at least 524288')
    expect(problemOf({}, { limits: { policyBodies: '300kB' } })).toBe('')
  })

  test('a stop cannot be longer than what stops the process waits', () => {
    expect(problemOf({}, { drain: { timeout: '51s' } })).toContain('drain.timeout')
  })
})
