import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { canonicalTarget } from '../../../gateway/request/canonical-target.ts'
import { caddy } from '../../support/caddy.ts'
import { type Front, host, type RunningFront, startFront } from '../../support/fronts.ts'
import { haproxy } from '../../support/haproxy.ts'
import { nginx } from '../../support/nginx.ts'
import { until } from '../../support/until.ts'

/** deploy/in-front: proxies that ask the gateway about every request and forward it themselves. */

const programs: [Front, string | undefined][] = [
  ['nginx', nginx],
  ['caddy', caddy],
  ['haproxy', haproxy],
]

/** A path as the laxest API might read it: decoded until nothing changes, without parameters, dots and cases. */
const laxest = (target: string): string => {
  let path = target.split(/[?#]/)[0]!
  for (let before = ''; before !== path; ) {
    before = path
    path = path.replace(/%([0-9a-f]{2})/gi, (_, octet) => String.fromCharCode(Number.parseInt(octet, 16)))
  }
  const segments: string[] = []
  for (const segment of path.replaceAll('\\', '/').split('/')) {
    const name = segment.split(';')[0]!.trim()
    if (name === '..') segments.pop()
    else if (name !== '.' && name !== '') segments.push(name.toLowerCase())
  }
  return `/${segments.join('/')}`
}

/** Spellings of `/orders/1` or of something public, which one reader or another takes for the other. */
const targets = [
  '/public/../orders/1',
  '/public/%2e%2e/orders/1',
  '/public/..%2forders/1',
  '/public/..%252forders/1',
  '/public/%252e%252e/orders/1',
  '/public/..;/orders/1',
  '/public/..;x=1/orders/1',
  '/public/.%2e/orders/1',
  '/public/..\\orders\\1',
  '/public/..%5corders/1',
  '/public/.../x',
  '/public/./x',
  '/public//x',
  '//orders/1',
  '/public/a%2fb',
  '/public/%2F..%2Forders/1',
  '/public/x%00y',
  '/public/x%0d%0aX-Auth-Sub:%20root',
  '/public/x;v=1',
  '/public/x%3bv=1',
  '/public/x%3f/../../orders/1',
  '/public/x%23/../../orders/1',
  '/public/x#/../../orders/1',
  '/orders/1#/public/x',
  '/public#/../orders/1',
  '/PUBLIC/x',
  '/Orders/1',
  '/orders/1?/public/x',
  '/orders/1;/public/x',
  '/public/?../orders/1',
  '/public/x?a=1;b=2&c=%2e%2e%2f',
  '/public/x?a=1&&a=2',
  '/public/%34%32',
  '/public/%c3%a9',
  '/public/%C3%28',
  '/public/é',
  '/public/%',
  '/public/%zz',
  '/public/x?',
  '/public/',
  '/public',
  "/public/a'b(c)!*",
  '/public/a"b',
  '/public/{x}|y^z`',
  'http://api.example.test/public/x',
  'https://api.example.test/orders/1',
  'http://other.test/public/x',
  'http://api.example.test',
  'http://api.example.test?x=/public/x',
  'http://api.example.test//public/x',
  '*',
  'public/x',
  '?/public/x',
]

describe.each(programs)('%s', (name, program) => {
  describe.skipIf(program === undefined)('beside the gateway', () => {
    let front: RunningFront
    beforeAll(async () => {
      front = await startFront(name, 'forward-auth')
    })
    afterAll(() => front?.close())
    beforeEach(() => {
      front.seen.length = 0
    })
    const bearer = (token = front.token) => ({ authorization: `Bearer ${token}` })

    describe.each(['ask', 'askHttp2'] as const)('%s', (ask) => {
      test('forwards what is allowed, with an identity that cannot be forged', async () => {
        const forged = {
          'x-auth-sub': 'root',
          'x-auth-sid': 'forged',
          'x-auth-assertion': 'forged',
          // nginx removes fields by name only, and knows those that the gateway sets.
          ...(name !== 'nginx' && { 'x-auth-other': 'forged' }),
          x_auth_act: 'root',
          'x.auth.act': 'root',
          'x-original-uri': '/public/x',
          'x-forwarded-uri': '/public/x',
          'x-forwarded-method': 'GET',
          'x-forwarded-for': '203.0.113.7',
          'x-forwarded-host': 'other.test',
          'x-forwarded-proto': 'gopher',
          'x-http-method-override': 'DELETE',
          'x-original-url': '/orders/2',
          forwarded: 'for=203.0.113.7',
          proxy: 'http://evil.test',
        }
        const answer = await front[ask]('/orders/%34%32?x=1&y=%20', { headers: { ...forged, ...bearer() } })
        expect(answer).toMatchObject({ status: 200, body: 'of the API' })
        expect(front.seen).toHaveLength(1)
        const { url, method, headers } = front.seen[0]!
        expect({ url, method }).toEqual({ url: '/orders/%34%32?x=1&y=%20', method: 'GET' })
        expect(headers).toMatchObject({
          host,
          authorization: `Bearer ${front.token}`,
          'x-auth-sub': 'u1',
          'x-auth-act': 'agent',
          'x-auth-act-chain': 'agent',
          'x-auth-scope': 'read:orders',
          'x-auth-client-id': 'c1',
          'x-forwarded-for': '127.0.0.1',
          'x-forwarded-proto': 'https',
          'x-forwarded-host': host,
          'x-request-id': expect.stringMatching(/^[0-9a-f-]{32,36}$/),
        })
        expect(headers['x-auth-sid'] ?? '').toBe('')
        expect(headers['x-auth-assertion'] ?? '').toBe('')
        expect(JSON.stringify(front.seen[0]!.rawHeaders)).not.toMatch(
          /root|forged|other\.test|203\.0\.113|gopher|DELETE|evil|orders\/2|public/,
        )
      })

      test('answers refusals with the status, challenge and problem of the gateway', async () => {
        const powerless = await front.gateway.issuer.sign({ aud: 'https://api.example.test/orders', scope: 'other' })
        const answers = [
          await front[ask]('/orders/1'),
          await front[ask]('/orders/1', { headers: bearer(powerless) }),
          await front[ask]('/orders/1', { headers: bearer('nonsense') }),
          await front[ask]('/orders/1', { method: 'POST', headers: bearer(), body: 'x' }),
          await front[ask]('/nowhere'),
          await front[ask]('/public/a%2fb'),
        ]
        expect(answers.map(({ status, headers }) => [status, headers['www-authenticate']])).toEqual([
          [401, expect.stringMatching(/^Bearer/)],
          [401, expect.stringContaining('error="insufficient_scope"')],
          [401, expect.stringContaining('error="invalid_token"')],
          [401, expect.stringContaining('error="insufficient_scope"')],
          [404, undefined],
          [400, undefined],
        ])
        // nginx passes on neither body nor type of a 401.
        const told = answers.slice(name === 'nginx' ? 4 : 0)
        expect(told.map(({ headers }) => headers['content-type'])).toEqual(told.map(() => 'application/problem+json'))
        expect(told.slice(-2).map(({ body }) => JSON.parse(body).code)).toEqual(['not_found', 'invalid_request'])
        expect(front.seen).toEqual([])
      })

      test('bodies arrive whole, with the method that was decided on', async () => {
        const token = await front.gateway.issuer.sign({
          aud: 'https://api.example.test/orders',
          scope: 'write:orders',
        })
        const body = 'x'.repeat(300_000)
        const { status } = await front[ask]('/orders/1', { method: 'PUT', headers: bearer(token), body })
        expect(status).toBe(200)
        expect(front.seen.map((one) => [one.method, one.body.length])).toEqual([['PUT', body.length]])
      })
    })

    test('the token stays here where the API must not have it; public routes have nobody', async () => {
      expect((await front.ask('/live/x', { headers: bearer() })).status).toBe(200)
      expect((await front.ask('/public/x', { headers: { 'x-auth-sub': 'root', x_auth_sub: 'root' } })).status).toBe(200)
      expect(front.seen.map(({ headers }) => [headers['authorization'] ?? '', headers['x-auth-sub'] ?? ''])).toEqual([
        ['', 'u1'],
        ['', ''],
      ])
    })

    test('nobody takes a field of the identity away by naming it in Connection', async () => {
      const lines = ['GET /orders/1 HTTP/1.1', `host: ${host}`, `authorization: Bearer ${front.token}`]
      const listed = 'connection: close, X-Auth-Act, X-Auth-Sub, Authorization, X-Forwarded-For, X-Forwarded-Uri'
      await front.send([...lines, listed, '', ''].join('\r\n'))
      await front.send([...lines, 'connection: x-auth-act', 'connection: close', '', ''].join('\r\n'))
      for (const { headers } of front.seen) {
        expect(headers).toMatchObject({ 'x-auth-sub': 'u1', 'x-auth-act': 'agent' })
        expect(headers['connection'] ?? '').not.toMatch(/auth/i)
      }
    })

    test('what reaches the API is what was decided on, whatever the spelling', async () => {
      for (const target of targets) {
        for (const headers of [[], [`authorization: Bearer ${front.token}`]]) {
          const before = front.seen.length
          const lines = [`GET ${target} HTTP/1.1`, `host: ${host}`, 'connection: close', ...headers, '', '']
          const answer = await front.send(Buffer.from(lines.join('\r\n'), 'utf8').toString('latin1'))
          const reached = front.seen.slice(before)
          if (reached.length > 0) expect(answer, target).toMatch(/^HTTP\/1\.1 200 /)
          for (const { url } of reached) {
            const area = laxest(url).split('/')[1]
            expect({ target, url, area }).toEqual({ target, url, area: headers.length > 0 ? area : 'public' })
          }
        }
      }
      const decided = await until(async () => {
        const paths = await front.decidedPaths()
        for (const { headers } of front.seen) expect(paths.has(headers['x-request-id']!)).toBe(true)
        return paths
      })
      expect(front.seen.length).toBeGreaterThan(10)
      for (const { url, headers } of front.seen) {
        expect({ url, path: canonicalTarget(url).path }).toEqual({ url, path: decided.get(headers['x-request-id']!) })
        expect(headers['host']).toBe(host)
      }
    })

    test('a request that hides in the body of another is decided on, or never read', async () => {
      const inner = `GET /orders/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      const framings = [
        `Content-Length: ${inner.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
        'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
        'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
        'Content-Length: 0\r\nContent-Length: 5\r\n\r\n',
        '\r\n',
      ]
      for (const framing of framings) {
        await front.send(
          `GET /public/x HTTP/1.1\r\nHost: ${host}\r\n${framing}${inner}GET /public/y HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
        )
      }
      expect(front.seen.filter(({ url }) => !url.startsWith('/public/'))).toEqual([])
    })

    test('decisions are not given to whoever asks from outside', async () => {
      for (const path of ['/.surrogate/auth', '/.surrogate/auth?x', '/.surrogate/auth/x', '/.surrogate//auth']) {
        const headers = {
          ...bearer(),
          'x-forwarded-method': 'GET',
          'x-forwarded-uri': '/orders/1',
          'x-original-method': 'GET',
          'x-original-uri': '/orders/1',
        }
        const { status, headers: told } = await front.ask(path, { headers })
        expect([400, 404]).toContain(status)
        expect(told).not.toHaveProperty('x-auth-sub')
      }
      expect(front.seen).toEqual([])
    })

    test('WebSockets open with a token, and not without', async () => {
      const forged = { 'x-auth-sub': 'root', x_auth_sub: 'root' }
      expect(await front.echo('/live/x', { ...bearer(), ...forged })).toBe('there and back')
      expect(front.api.handshakes.map(({ headers }) => [headers['x-auth-sub'], headers['x-auth-act']])).toEqual([
        ['u1', 'agent'],
      ])
      expect(JSON.stringify(front.api.handshakes[0]!.rawHeaders)).not.toContain('root')
      expect(await front.echo('/live/x', forged)).toBe('answered 401')
      expect(front.api.handshakes).toHaveLength(1)
    })

    test('an event arrives while the stream is open', async () => {
      const request = `GET /public/events HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`
      expect(await front.send(request, /data: first/)).toMatch(/content-type: text\/event-stream[\s\S]*data: first/i)
    })
  })

  test.skipIf(program === undefined)('refuses everything when the gateway is gone', async () => {
    const front = await startFront(name, 'forward-auth')
    try {
      const headers = { authorization: `Bearer ${front.token}` }
      expect((await front.ask('/orders/1', { headers })).status).toBe(200)
      await front.gateway.close()
      for (const path of ['/orders/1', '/public/x']) {
        expect((await front.ask(path, { headers })).status).toBeGreaterThanOrEqual(500)
      }
      expect(front.seen).toHaveLength(1)
    } finally {
      await front.close()
    }
  })
})

describe.skipIf(haproxy === undefined)('the script for HAProxy', () => {
  test('that fails lets nothing pass', async () => {
    const failing = (text: string) => text.replace('local answer =', 'error("broken") local answer =')
    const front = await startFront('haproxy', 'forward-auth', { editScript: failing })
    try {
      const headers = { authorization: `Bearer ${front.token}` }
      expect((await front.ask('/orders/1', { headers })).status).toBe(503)
      expect((await front.ask('/public/x')).status).toBe(503)
      expect(front.output()).toContain('broken')
      expect(front.seen).toEqual([])
    } finally {
      await front.close()
    }
  })

  test('takes every header of a policy, in the place of all spellings of the client', async () => {
    const rules = `package front

# METADATA
# entrypoint: true
decision := {"allow": true, "headers": {"x-plan": "gold", "x-seats": "12"}}
`
    const front = await startFront('haproxy', 'forward-auth', { rules })
    try {
      const forged = { 'x-plan': 'platinum', X_Plan: 'platinum', 'x.plan': 'platinum' }
      const headers = { authorization: `Bearer ${front.token}`, ...forged }
      expect((await front.ask('/orders/1', { headers })).status).toBe(200)
      expect(front.seen[0]!.headers).toMatchObject({ 'x-plan': 'gold', 'x-seats': '12' })
      expect(JSON.stringify(front.seen[0]!.rawHeaders)).not.toContain('platinum')
    } finally {
      await front.close()
    }
  })
})
