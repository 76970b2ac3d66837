import { afterEach, describe, expect, test } from 'vitest'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const gatewayWith = async (route: Record<string, unknown>, base = ''): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url + base, pathEquality: { case: 'insensitive' } } },
      routes: [{ id: 'all', path: '/v1/**', auth: 'none', upstream: 'api', ...route }],
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

const pathUpstream = async (gateway: TestGateway, target: string): Promise<string> => {
  await sendRaw(gateway.port, `GET ${target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`)
  return gateway.upstream.seen.splice(0)[0]?.url ?? 'none'
}

describe('the path upstream', () => {
  test.each([
    ['/v1', '/', '/v1/a?b=/v1', '/a?b=/v1'],
    ['/v1', '/', '/v1', '/'],
    ['/v1', '/', '/v1/', '/'],
    ['/v1', '/api', '/v1', '/api'],
    ['/v1', '/api/', '/v1/', '/api/'],
    ['/v1', '/api/v2', '/v1/v1/x', '/api/v2/v1/x'],
    ['/v1/', '/api', '/V1/x', '/api/x'],
    ['/', '/api', '/v1/x', '/api/v1/x'],
    ['/v1', '/api', '/v1/a%20b/%41', '/api/a%20b/A'],
    ['/v1', '/api', '/v1/%252e%252e/b', 'none'],
    ['/v1', '/', '/v1/../admin', 'none'],
    ['/v1', '/', '/v1/%2e%2e/admin', 'none'],
    ['/v1', '/', '/v1//admin', 'none'],
    ['/v1', '/', '/v1%2Fadmin', 'none'],
    ['/v1', '/', '/v1/..%5cadmin', 'none'],
    ['/v1', '/', '/v1x/a', 'none'],
  ])('from %s to %s: %s is %s', async (from, to, target, expected) => {
    const gateway = await gatewayWith({ rewrite: { prefix: { from, to } } })
    expect(await pathUpstream(gateway, target)).toBe(expected)
  })

  test('stands behind the base path of the upstream', async () => {
    const gateway = await gatewayWith({ rewrite: { prefix: { from: '/v1', to: '/api' } } }, '/base')
    expect(await pathUpstream(gateway, '/v1/x')).toBe('/base/api/x')
  })

  test('of a segment with parameters', async () => {
    const rewrite = { prefix: { from: '/v1', to: '/api' } }
    const gateway = await gatewayWith({ rewrite, matrixParameters: 'keep' })
    expect(await pathUpstream(gateway, '/v1;a=1/x;b=2')).toBe('/api/x;b=2')
  })

  test('keeps the encoded slashes of segments that are not rewritten', async () => {
    const rewrite = { prefix: { from: '/v1', to: '/api' } }
    const gateway = await gatewayWith({ path: '/v1/{name}/x', rewrite, encodedSlash: 'keep' })
    expect(await pathUpstream(gateway, '/v1/a%2Fb/x?c=%2F..')).toBe('/api/a%2Fb/x?c=%2F..')
    expect(await pathUpstream(gateway, '/v1%2Fa/x')).toBe('none')
  })
})

describe('header fields of answers', () => {
  const responseHeaders = {
    remove: ['Server', 'x-powered-by'],
    set: { 'strict-transport-security': 'max-age=63072000', 'X-Frame-Options': 'DENY' },
  }

  test('of the upstream are removed and replaced', async () => {
    const gateway = await gatewayWith({ responseHeaders })
    gateway.upstream.answer = (_, response) =>
      response
        .writeHead(200, { server: 'a/1', 'x-powered-by': 'b', 'x-frame-options': 'ALLOW', 'x-other': 'stays' })
        .end()
    const { headers } = await fetch(`${gateway.url}/v1/x`)
    expect(headers.get('server')).toBe(null)
    expect(headers.get('x-powered-by')).toBe(null)
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('strict-transport-security')).toBe('max-age=63072000')
    expect(headers.get('x-other')).toBe('stays')
  })

  test('cookies that are set take the place of those of the upstream', async () => {
    const gateway = await gatewayWith({ responseHeaders: { set: { 'Set-Cookie': 'a=1; HttpOnly' } } })
    gateway.upstream.answer = (_, response) => response.writeHead(200, { 'set-cookie': ['b=2', 'c=3'] }).end()
    expect((await fetch(`${gateway.url}/v1/x`)).headers.getSetCookie()).toEqual(['a=1; HttpOnly'])
  })

  test('are not on interim answers, which nobody gets', async () => {
    const gateway = await gatewayWith({ responseHeaders })
    gateway.upstream.answer = (_, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' })
      response.end()
    }
    const text = await sendRaw(gateway.port, 'GET /v1/x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
    expect(text.match(/x-frame-options/gi)).toHaveLength(1)
  })

  test('that are set stand on refusals of the gateway too, which keep their own', async () => {
    const set = { ...responseHeaders.set, 'cache-control': 'public', 'content-type': 'text/plain' }
    const gateway = await gatewayWith({ responseHeaders: { set }, bodySize: 1 })
    const { status, headers } = await fetch(`${gateway.url}/v1/x`, { method: 'POST', body: 'long' })
    expect([status, headers.get('strict-transport-security')]).toEqual([413, 'max-age=63072000'])
    expect([headers.get('cache-control'), headers.get('content-type')]).toEqual([
      'no-store',
      'application/problem+json',
    ])
  })
})

describe('mistakes', () => {
  const mistakeOf = (route: object, upstream: object = { url: 'http://127.0.0.1:1' }): string => {
    const file = {
      version: 1,
      upstreams: { api: upstream },
      routes: [{ id: 'all', path: '/v1/{id}/**', auth: 'none', upstream: 'api', ...route }],
    }
    try {
      parseGatewayConfig(JSON.stringify(file), { file: 'gateway.yaml', env: {} })
      return 'none'
    } catch (error) {
      return (error as Error).message.replace(/[\s\S]*gateway\.yaml:\d+:\d+: /, '')
    }
  }
  const prefix = (from: string, to: string) => ({ rewrite: { prefix: { from, to } } })
  const labels = { match: { header: 'x-track', value: 'canary' }, labels: { track: 'canary' } }

  test.each([
    [prefix('/v1', '/'), 'none'],
    [prefix('/v1/x', '/'), 'literal beginning of the path'],
    [prefix('/v', '/'), 'literal beginning of the path'],
    [prefix('', '/'), 'literal beginning of the path'],
    [prefix('/v1', 'api'), 'must be a path without query'],
    [prefix('/v1', '/a/../b'), 'must be a path without query'],
    [prefix('/v1', '/a//b'), 'must be a path without query'],
    [prefix('/v1', '/a%2fb'), 'must be a path without query'],
    [prefix('/v1', '/a;b'), 'must be a path without query'],
    [prefix('/v1', '/a?b'), 'must be a path without query'],
    [{ ...prefix('/v1', '/'), stripPrefix: '/v1' }, 'stripPrefix or rewrite, not both'],
    [{ targets: labels }, 'no target of the upstream api has these labels'],
    [{ retries: true }, 'must be false'],
    [{ timeout: '0s' }, 'must be a duration'],
    [{ responseHeaders: { set: { 'content-length': '0' } } }, 'frames the answer'],
    [{ responseHeaders: { set: { 'x-request-id': 'a' } } }, 'frames the answer'],
    [{ responseHeaders: { set: { Connection: 'x-frame-options' } } }, 'frames the answer'],
    [{ responseHeaders: { set: { 'Sec-WebSocket-Protocol': 'a' } } }, 'frames the answer'],
    [{ responseHeaders: { remove: ['content-encoding'] } }, 'frames the answer'],
    [{ responseHeaders: { set: { 'x-a: b\r\nx-c': 'd' } } }, 'must be a header name'],
    [{ responseHeaders: { set: { 'x-a': 'b\u0000' } } }, 'visible ASCII'],
    [{ responseHeaders: { set: { 'x-a': '' } } }, 'visible ASCII'],
    [{ responseHeaders: { remove: ['Transfer-Encoding'] } }, 'frames the answer'],
    [{ responseHeaders: { set: { 'x-a': 'b\r\nx-c: d' } } }, 'visible ASCII'],
    [{ responseHeaders: { set: { 'x-a': 'b' }, remove: ['x-a'] } }, 'leave it out here'],
    [
      { cors: { origins: ['*'] }, responseHeaders: { set: { 'access-control-allow-origin': '*' } } },
      'is said by cors of this route',
    ],
  ])('%j: %s', (route, expected) => {
    expect(mistakeOf(route)).toContain(expected)
  })

  test.each([
    [{ url: 'http://127.0.0.1:1', tls: { serverName: 'a.test' } }, 'needs a target with https'],
    [{ url: 'https://a.test', tls: { cert: 'a.pem' } }, 'needs key'],
    [{ url: 'https://a.test', tls: { key: 'a.pem' } }, 'needs cert'],
    [{ url: 'https://a.test', tls: { serverName: 'a b' } }, 'must be a host name'],
    [{ url: 'https://a.test', tls: { rejectUnauthorized: false } }, 'rejectUnauthorized'],
    [{ url: 'https://a.test', retries: { attempts: 1 } }, 'at least 2'],
    [{ url: 'https://a.test', retries: { budget: '101%' } }, 'must be a share'],
  ])('%j: %s', (upstream, expected) => {
    expect(mistakeOf({}, upstream)).toContain(expected)
  })
})
