import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readHeaders } from '../../../gateway/request/headers.ts'
import { answerHeaders } from '../../../gateway/upstream/answer-headers.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

/** Which of the fields would go upstream. */
const forwarded = (...fields: [string, string][]) => {
  const { forwardable } = readHeaders(fields.flat())
  return forwardable.filter((_, index) => index % 2 === 0)
}

describe('what never reaches an upstream from a client', () => {
  test.each([
    ...['x-auth-sub', 'X-Auth-Sub', 'X_Auth_Sub', 'x_auth-sub', 'x.auth.sub', 'X-AUTH-ANYTHING', 'x-auth'],
    ...[
      'X-Forwarded-For',
      'x-forwarded-proto',
      'X_Forwarded_Host',
      'x-forwarded-user',
      'Forwarded',
      'X-Real-IP',
      'x_real_ip',
    ],
    ...[
      'X-Original-URL',
      'X-Original-Method',
      'X-Rewrite-URL',
      'X-HTTP-Method-Override',
      'x_http_method',
      'X-Method-Override',
    ],
    ...[
      'Connection',
      'Keep-Alive',
      'Proxy-Connection',
      'Proxy-Authorization',
      'TE',
      'Trailer',
      'Transfer-Encoding',
      'Upgrade',
    ],
    ...[
      'Transfer_Encoding',
      'Content_Length',
      'Host',
      'Expect',
      'HTTP2-Settings',
      'Proxy',
      'Authorization',
      'Via',
      'X-Request-Id',
    ],
  ])('%s', (name) => {
    expect(forwarded([name, 'x'], ['accept', '*/*'])).toEqual(['accept'])
  })

  test('what Connection lists, in any case, over several fields', () => {
    expect(
      forwarded(
        ['X-One', '1'],
        ['connection', 'close, x-one'],
        ['x-two', '2'],
        ['Connection', 'X-Two ,keep-alive'],
        ['x-three', '3'],
      ),
    ).toEqual(['x-three'])
  })
})

test('everything else goes on, in order, repeated fields too', () => {
  expect(
    readHeaders(['Accept', 'a', 'Cookie', 'x=1', 'Accept', 'b', 'x_custom', '1', 'Authority', 'z', 'x-authority', 'y'])
      .forwardable,
  ).toEqual(['accept', 'a', 'cookie', 'x=1', 'accept', 'b', 'x_custom', '1', 'authority', 'z', 'x-authority', 'y'])
})

test.each(['Host', 'Authorization', 'Content-Length', 'Transfer-Encoding', 'Content-Type', 'Expect'])(
  'two %s fields are refused, whatever their case',
  (name) => {
    expect(() => readHeaders([name, 'a', name.toLowerCase(), 'a'])).toThrow('more than one')
  },
)

test("an upstream's answer loses what belongs to its connection", () => {
  expect(
    answerHeaders(
      200,
      {
        'content-length': '3',
        'transfer-encoding': 'chunked',
        connection: 'close, X-Hop',
        'x-hop': '1',
        'keep-alive': 'timeout=5',
        'x-request-id': 'theirs',
        'set-cookie': ['a=1', 'b=2'],
        etag: '"x"',
      },
      { toIssuer: false, responseHeaders: undefined },
    ),
  ).toEqual(['content-length', '3', 'set-cookie', 'a=1', 'set-cookie', 'b=2', 'etag', '"x"'])
})

describe('who is believed about where a request came from', () => {
  let closed: TestGateway
  let open: TestGateway
  beforeAll(async () => {
    closed = await startTestGateway()
    open = await startTestGateway({ config: () => ({ trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] }) })
  })
  afterAll(async () => {
    await closed.close()
    await open.close()
  })

  const seenAfter = async (gateway: TestGateway, fields: string[]) => {
    const answer = await sendRaw(
      gateway.port,
      ['GET /public HTTP/1.1', 'Host: Gate.Test:80', ...fields, 'Connection: close', '', ''].join('\r\n'),
    )
    return { answer, headers: gateway.upstream.seen.at(-1)?.headers ?? {} }
  }
  const claims = [
    'X-Forwarded-For: 198.51.100.7, 10.1.1.1',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: Shop.Test',
    'X-Request-Id: abc-1',
  ]

  test('nobody, by default', async () => {
    const { headers, answer } = await seenAfter(closed, claims)
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'gate.test',
    })
    expect(headers['x-request-id']).not.toBe('abc-1')
    expect(answer).toContain(`x-request-id: ${headers['x-request-id']}`)
  })

  test('a trusted proxy', async () => {
    const { headers } = await seenAfter(open, claims)
    expect(headers).toMatchObject({
      'x-forwarded-for': '198.51.100.7, 10.1.1.1, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'shop.test',
      'x-request-id': 'abc-1',
    })
  })

  test.each([
    ['ws', 'http'],
    ['wss', 'https'],
    ['WSS', 'https'],
  ])('what it says of a WebSocket is said of HTTP: %s', async (proto, scheme) => {
    const { answer, headers } = await seenAfter(open, [`X-Forwarded-Proto: ${proto}`])
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
    expect(headers).toMatchObject({ 'x-forwarded-proto': scheme })
  })

  test.each(['Gate.Test.', 'gate.test.:80', 'gate.test'])(
    'the final dot of a name is no part of it: %s',
    async (host) => {
      const { answer, headers } = await seenAfter(open, [`X-Forwarded-Host: ${host}`])
      expect(answer).toMatch(/^HTTP\/1.1 200 /)
      expect(headers).toMatchObject({ 'x-forwarded-host': 'gate.test' })
    },
  )

  test.each([
    ['two protocols', 'X-Forwarded-Proto: https, http'],
    ['two of a WebSocket', 'X-Forwarded-Proto: wss, wss'],
    ['two final dots', 'X-Forwarded-Host: a.test..'],
    ['nothing but a dot', 'X-Forwarded-Host: .'],
    ['another protocol', 'X-Forwarded-Proto: javascript'],
    ['a broken host', 'X-Forwarded-Host: a b'],
    ['two hosts', 'X-Forwarded-Host: a.test, b.test'],
  ])('but not %s', async (_, field) => {
    expect((await seenAfter(open, [field])).answer).toMatch(/^HTTP\/1.1 400 /)
  })
})
