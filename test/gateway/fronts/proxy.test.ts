import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { caddy } from '../../support/caddy.ts'
import { audience, type Front, host, type RunningFront, startFront } from '../../support/fronts.ts'
import { haproxy } from '../../support/haproxy.ts'
import { nginx } from '../../support/nginx.ts'

/** deploy/in-front: proxies that terminate TLS and pass every request on to the gateway. */

const programs: [Front, string | undefined][] = [
  ['nginx', nginx],
  ['caddy', caddy],
  ['haproxy', haproxy],
]

describe.each(programs)('%s', (name, program) => {
  describe.skipIf(program === undefined)('before the gateway', () => {
    let front: RunningFront
    beforeAll(async () => {
      front = await startFront(name, 'proxy')
    })
    afterAll(() => front?.close())
    beforeEach(() => {
      front.seen.length = 0
    })
    const bearer = () => ({ authorization: `Bearer ${front.token}` })

    describe.each(['ask', 'askHttp2'] as const)('%s', (ask) => {
      test('what is allowed arrives, with an identity and an origin that cannot be forged', async () => {
        const forged = {
          'x-auth-sub': 'root',
          x_auth_act: 'root',
          'x-forwarded-for': '203.0.113.7, 198.51.100.1',
          'x-forwarded-host': 'other.test',
          'x-forwarded-proto': 'http',
          forwarded: 'for=203.0.113.7;host=other.test',
          'x-http-method-override': 'DELETE',
          'x-request-id': 'forged',
        }
        const path = '/orders/a%20b?x=1&y=%2F'
        const answer = await front[ask](path, { headers: { ...forged, ...bearer() } })
        expect(answer).toMatchObject({ status: 200, body: 'of the API' })
        expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{32,36}$/)
        const { url, method, headers, rawHeaders } = front.seen[0]!
        expect({ url, method }).toEqual({ url: path, method: 'GET' })
        expect(headers).toMatchObject({
          'x-auth-sub': 'u1',
          'x-auth-act': 'agent',
          // The client and the proxy, each on this machine.
          'x-forwarded-for': '127.0.0.1, 127.0.0.1',
          'x-forwarded-proto': 'https',
          'x-forwarded-host': host,
          'x-request-id': answer.headers['x-request-id'],
        })
        expect(JSON.stringify(rawHeaders)).not.toMatch(/root|203\.0|198\.51|other\.test|DELETE|forged/)
      })

      test('refusals arrive as the gateway wrote them', async () => {
        const missing = await front[ask]('/orders/1')
        expect(missing).toMatchObject({
          status: 401,
          headers: { 'content-type': 'application/problem+json', 'www-authenticate': expect.stringMatching(/^Bearer/) },
        })
        expect(JSON.parse(missing.body)).toMatchObject({ status: 401, code: 'token_missing' })
        const write = await front[ask]('/orders/1', { method: 'POST', headers: bearer(), body: 'x' })
        expect(write.headers['www-authenticate']).toContain('error="insufficient_scope"')
        expect(JSON.parse((await front[ask]('/nowhere')).body).code).toBe('not_found')
        expect(JSON.parse((await front[ask]('/public/a%2fb')).body).code).toBe('invalid_request')
        expect(front.seen).toEqual([])
      })

      test('bodies arrive whole', async () => {
        const token = await front.gateway.issuer.sign({ aud: audience, scope: 'write:orders' })
        const body = 'x'.repeat(300_000)
        const headers = { authorization: `Bearer ${token}` }
        expect((await front[ask]('/orders/1', { method: 'PUT', headers, body })).status).toBe(200)
        expect(front.seen.map((one) => [one.method, one.body.length])).toEqual([['PUT', body.length]])
      })
    })

    test('an upload is with the API before it has ended', async () => {
      const token = await front.gateway.issuer.sign({ aud: audience, scope: 'write:orders' })
      const head = ['PUT /orders/1 HTTP/1.1', `host: ${host}`, `authorization: Bearer ${token}`, 'connection: close']
      const bodyLines = ['transfer-encoding: chunked', '', '3', 'abc', '']
      // Never ended: the answer of the API comes when it has seen the beginning.
      front.answerEarly(true)
      const answer = await front.send([...head, ...bodyLines].join('\r\n'), /early/)
      front.answerEarly(false)
      expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*early/)
    })

    // Caddy passes the answer on when the client goes on sending.
    if (name !== 'caddy') {
      test('a body that is too large is refused before it has come', async () => {
        const token = await front.gateway.issuer.sign({ aud: audience, scope: 'write:orders' })
        const lines = ['PUT /orders/1 HTTP/1.1', `host: ${host}`, `authorization: Bearer ${token}`]
        const answer = await front.send(
          [...lines, `content-length: ${100 * 1024 ** 2 + 1}`, '', 'x'].join('\r\n'),
          /413/,
        )
        expect(answer).toMatch(/^HTTP\/1\.1 413 /)
        expect(front.seen).toEqual([])
      })
    }

    test('no spelling of a target reaches what it may not', async () => {
      const targets = [
        '/public/../orders/1',
        '/public/..%2forders/1',
        '//orders/1',
        '/public/..;/orders/1',
        '/public/%2e%2e/orders/1',
      ]
      for (const target of targets) {
        const answer = await front.send(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
        expect(answer, target).toMatch(/^HTTP\/1\.1 40[01] /)
      }
      expect(front.seen).toEqual([])
    })

    test('the host that chooses the route is the one that the client asked for', async () => {
      const lines = ['GET /public/x HTTP/1.1', `host: other.test`, `x-forwarded-host: ${host}`, 'connection: close']
      const answer = await front.send([...lines, '', ''].join('\r\n'))
      expect(answer).not.toMatch(/^HTTP\/1\.1 200 [\s\S]*of the API/)
      expect(front.seen).toEqual([])
    })

    test('decisions are not given to whoever asks from outside', async () => {
      const headers = { ...bearer(), 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/orders/1' }
      for (const path of ['/.surrogate/auth', '/.surrogate/auth?x', '/.surrogate/auth/x']) {
        expect(await front.ask(path, { headers })).toMatchObject({ status: 404 })
      }
    })

    test('an event arrives while the stream is open', async () => {
      const request = `GET /public/events HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`
      expect(await front.send(request, /data: first/)).toMatch(/content-type: text\/event-stream[\s\S]*data: first/i)
    })

    test('WebSockets open with a token, and not without', async () => {
      expect(await front.echo('/live/x', bearer())).toBe('there and back')
      expect(front.api.handshakes.map(({ headers }) => [headers['x-auth-sub'], headers['x-forwarded-proto']])).toEqual([
        ['u1', 'https'],
      ])
      expect(await front.echo('/live/x')).toBe('answered 401')
      expect(front.api.handshakes).toHaveLength(1)
    })
  })

  test.skipIf(program === undefined)('answers 502, 503 or 504 when the gateway is gone', async () => {
    const front = await startFront(name, 'proxy')
    try {
      expect((await front.ask('/public/x')).status).toBe(200)
      await front.gateway.close()
      expect([502, 503, 504]).toContain((await front.ask('/public/x')).status)
    } finally {
      await front.close()
    }
  })
})
