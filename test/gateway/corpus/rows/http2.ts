import { type Field, requestFields } from '../../../support/http2-frames.ts'
import { type Expectation, forwarded, type Row, refused } from '../row.ts'

const good = requestFields('/public/x')
const goodPost = requestFields('/public/x', { method: 'POST' })
const upstream = '/base/public/x'

const row = (name: string, expect: Expectation, fields: readonly Field[], body?: string): Row => ({
  name,
  http2: { fields, ...(body !== undefined && { body }) },
  expect,
})
const without = (name: string) => good.filter(([one]) => one !== name)
const replacing = (name: string, value: string) =>
  good.map((field): Field => (field[0] === name ? [name, value] : field))

const connectionFields: readonly Field[] = [
  ['connection', 'close'],
  ['connection', 'x-auth-sub'],
  ['keep-alive', 'timeout=5'],
  ['proxy-connection', 'keep-alive'],
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'identity'],
  ['upgrade', 'h2c'],
  ['upgrade', 'websocket'],
  ['te', 'gzip'],
  ['te', 'trailers, deflate'],
]

const secondRequest = 'GET /admin/secret HTTP/1.1\r\nHost: api.test\r\n\r\n'

/**
 * Values and names that would be more than one line upstream, if somebody wrote them as they are. Node 24 drops such
 * fields before anybody sees them, where RFC 9113 §8.2.1 would rather have the request refused.
 */
const smuggling: readonly (readonly [name: string, field: Field])[] = [
  ['a line break in a value', ['x-a', 'b\r\nX-Auth-Sub: root']],
  ['a line feed in a value', ['x-a', 'b\nX-Auth-Sub: root']],
  ['a carriage return in a value', ['x-a', 'b\rX-Auth-Sub: root']],
  ['NUL in a value', ['x-a', 'b\0c']],
  ['another request in a value', ['x-a', `b\r\n\r\n${secondRequest}`]],
  ['a coding in a value', ['x-a', 'b\r\nTransfer-Encoding: chunked']],
  ['a line break in a name', ['x-a: b\r\nx-auth-sub', 'root']],
  ['a colon in a name', ['x-auth-sub: root\r\nx', 'b']],
  ['nothing but a colon in a name', ['x:a', 'b']],
  ['a space in a name', ['transfer-encoding ', 'chunked']],
  ['NUL in a name', ['x-\0a', 'b']],
  ['a name without a character', ['', 'b']],
  ['bytes outside ASCII in a name', ['x-\xe9', 'b']],
  ['DEL in a value', ['x-a', 'b\x7f']],
]

const trailers: readonly (readonly [name: string, field: Field])[] = [
  [':path', [':path', '/admin/x']],
  [':status', [':status', '200']],
  ['a name in capitals', ['X-Auth-Sub', 'root']],
  ['connection', ['connection', 'close']],
  ['transfer-encoding', ['transfer-encoding', 'chunked']],
  ['another length', ['content-length', '5']],
]
const droppedTrailers: readonly (readonly [name: string, field: Field])[] = [
  ['identity', ['x-auth-sub', 'root']],
  ['a token', ['authorization', 'Bearer x']],
  ['a line break', ['x-a', 'b\r\nX-Auth-Sub: root']],
]

const nothingMore = { 'x-a': undefined, 'x-auth-sub': undefined, 'transfer-encoding': undefined, x: undefined }

/** What only HTTP/2 can say (RFC 9113 §8). */
export const http2Rows: readonly Row[] = [
  ...[':method', ':path', ':scheme'].map((name) => row(`no ${name}`, refused(), without(name))),
  ...[':method', ':path', ':scheme', ':authority'].flatMap((name) => {
    const field = good.find(([one]) => one === name)!
    const rest = without(name)
    return [
      row(`${name} twice`, refused(), [field, ...good]),
      row(`${name} behind a field`, refused(), [...rest, ['x-a', 'b'], field]),
      row(`${name} again behind a field`, refused(), [...good, ['x-a', 'b'], field]),
      row(`an empty ${name}`, refused(), replacing(name, '')),
      row(`a line break in ${name}`, refused(), replacing(name, `${field[1]} HTTP/1.1\r\nX-Auth-Sub: root\r\nx: `)),
      row(`a space in ${name}`, refused(), replacing(name, `${field[1]} x`)),
      row(`NUL in ${name}`, refused(), replacing(name, `${field[1]}\0`)),
    ]
  }),
  row('a pseudo-header field of answers', refused(), [...good, [':status', '200']]),
  row('a pseudo-header field that nobody knows', refused(), [...good, [':x', 'y']]),
  row('the scheme http over TLS', refused(), replacing(':scheme', 'http')),
  row('another scheme', refused(), replacing(':scheme', 'file')),
  row(
    'another request in :method',
    refused(),
    replacing(':method', `GET /admin/secret HTTP/1.1\r\nHost: a\r\n\r\nGET`),
  ),
  row('a method that is a request line', refused(), replacing(':method', 'GET /admin/x HTTP/1.1')),
  row('a method in lower case', refused(), replacing(':method', 'get')),
  row('the method of the preface', refused(), replacing(':method', 'PRI')),
  row('an absolute :path', refused(), replacing(':path', 'https://api.test/public/x')),
  row('CONNECT', refused(), [
    [':method', 'CONNECT'],
    [':authority', 'api.test:443'],
  ]),
  row('CONNECT with a path', refused(), [[':method', 'CONNECT'], ...good.slice(1)]),
  row('extended CONNECT, which was not offered (RFC 8441)', refused(), [
    ...([[':method', 'CONNECT'], ...good.slice(1)] as Field[]),
    [':protocol', 'websocket'],
  ]),
  row(':protocol without CONNECT', refused(), [...good, [':protocol', 'websocket']]),

  row(':authority and another host', refused(), [...good, ['host', 'evil.test']]),
  row(':authority and another port', refused(), [...good, ['host', 'api.test:8443']]),
  row(':authority and an empty host', refused(), [...good, ['host', '']]),
  row(':authority, the same host, and another host', refused(), [...good, ['host', 'api.test'], ['host', 'evil.test']]),
  row(':authority with credentials', refused(), replacing(':authority', 'u:p@api.test')),
  row('neither :authority nor host', refused(), without(':authority')),
  row('two hosts and no :authority', refused(), [...without(':authority'), ['host', 'api.test'], ['host', 'api.test']]),
  row(':authority and the same host', forwarded(upstream, { fields: { 'x-forwarded-host': 'api.test' } }), [
    ...good,
    ['host', 'api.test'],
  ]),
  row('host without :authority', forwarded(upstream, { fields: { 'x-forwarded-host': 'api.test' } }), [
    ...without(':authority'),
    ['host', 'api.test'],
  ]),

  ...connectionFields.map((field) => row(`the field ${field.join(': ')}`, refused(), [...goodPost, field], 'abc')),
  ...smuggling.map(([name, field]) => row(name, forwarded(upstream, { fields: nothingMore }), [...good, field])),
  row('a name in capitals', refused(), [...good, ['X-Tenant', 'b']]),
  row('a name with one capital', refused(), [...good, ['x-auth-Sub', 'root']]),

  row('a body that is shorter than it says', refused(), [...goodPost, ['content-length', '5']], 'abc'),
  row('a body that is longer than it says', refused(), [...goodPost, ['content-length', '2']], 'abc'),
  row('a body where none was promised', refused(), [...goodPost, ['content-length', '0']], secondRequest),
  row('no body where one was promised', refused(), [...goodPost, ['content-length', '5']]),
  row('two lengths', refused(), [...goodPost, ['content-length', '3'], ['content-length', '4']], 'abc'),
  row('two equal lengths', refused(), [...goodPost, ['content-length', '3'], ['content-length', '3']], 'abc'),
  row('a list of lengths', refused(), [...goodPost, ['content-length', '3, 3']], 'abc'),
  row('a signed length', refused(), [...goodPost, ['content-length', '+3']], 'abc'),
  row('a hexadecimal length', refused(), [...goodPost, ['content-length', '0x3']], 'abc'),
  row(
    'another request within a body that says no length',
    forwarded(upstream, { method: 'POST', body: secondRequest }),
    goodPost,
    secondRequest,
  ),
  row(
    'another request within the body of a GET',
    forwarded(upstream, { method: 'GET', body: secondRequest }),
    good,
    secondRequest,
  ),
  row(
    'another request within the body of a HEAD',
    forwarded(upstream, { method: 'HEAD', body: secondRequest }),
    requestFields('/public/x', { method: 'HEAD' }),
    secondRequest,
  ),
  ...trailers.map(
    ([name, field]): Row => ({
      name: `${name} behind the body`,
      http2: { fields: goodPost, body: 'abc', trailers: [field] },
      expect: refused(),
    }),
  ),
  ...droppedTrailers.map(
    ([name, field]): Row => ({
      name: `${name} behind the body stays there`,
      http2: { fields: goodPost, body: 'abc', trailers: [field] },
      expect: forwarded(upstream, { method: 'POST', body: 'abc', fields: { [field[0]]: undefined } }),
    }),
  ),
  {
    name: 'a host behind the body stays there',
    http2: { fields: goodPost, body: 'abc', trailers: [['host', 'evil.test']] },
    expect: forwarded(upstream, { method: 'POST', body: 'abc', fields: { 'x-forwarded-host': 'api.test' } }),
  },
  row(
    'cookies in crumbs are one field (RFC 9113 §8.2.3)',
    forwarded(upstream, { fields: { cookie: 'a=1; b=2; c=3' } }),
    [...good, ['cookie', 'a=1'], ['x-a', 'b'], ['cookie', 'b=2'], ['cookie', 'surrogate_session=x'], ['cookie', 'c=3']],
  ),
  row('a settings field of HTTP/1.1', refused(), [...good, ['http2-settings', 'AAMAAABkAAQ']]),
]
