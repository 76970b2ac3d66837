import { type Expectation, forwarded, lines, type Row, refused } from '../row.ts'

const row = (name: string, expect: Expectation, ...texts: string[]): Row => ({ name, http1: lines(...texts), expect })

const close = ['Connection: close', '', '']
const get = 'GET /public/x HTTP/1.1'
const post = 'POST /public/x HTTP/1.1'
const host = 'Host: api.test'
const upstream = '/base/public/x'
const chunked = 'Transfer-Encoding: chunked'
const smuggled = 'GET /admin/secret HTTP/1.1\r\nHost: api.test\r\n\r\n'

/** What only bytes of HTTP/1.1 can say: its framing (RFC 9112), its lines, its connection. */
export const http1Rows: readonly Row[] = [
  row('HTTP/2.0 on the request line', refused(), 'GET /public/x HTTP/2.0', host, ...close),
  row('HTTP/1.2 on the request line', refused(), 'GET /public/x HTTP/1.2', host, ...close),
  row('HTTP/0.9', refused(), 'GET /public/x', '', ''),
  row('no Host on HTTP/1.0', refused(), 'GET /public/x HTTP/1.0', ...close),
  row('two Hosts', refused(), get, 'Host: a', 'Host: b', ...close),
  row('two equal Hosts', refused(), get, 'Host: a', 'host: a', ...close),
  row('a space before the colon of Host', refused(), get, 'Host : a', ...close),
  row('no HTTP at all', refused(), 'SSH-2.0-x', '', ''),
  row('a method in lower case', refused(), 'get /public/x HTTP/1.1', host, ...close),
  row('two spaces on the request line', forwarded(upstream), 'GET  /public/x HTTP/1.1', host, ...close),
  row('CONNECT', refused(), 'CONNECT a.test:443 HTTP/1.1', 'Host: a', '', ''),
  row('an absolute target with another Host', refused(), 'GET http://a.test/public/x HTTP/1.1', 'Host: b', ...close),
  row(
    'after CONNECT nothing is read any more (CVE-2026-71324, CVE-2025-64763)',
    refused(),
    ...['CONNECT api.test:443 HTTP/1.1', host, '', get, host, ...close],
  ),

  row('Transfer-Encoding on HTTP/1.0', refused(), 'POST /public/x HTTP/1.0', host, chunked, ...close, '0', '', ''),
  row('Content-Length and Transfer-Encoding', refused(), post, host, 'Content-Length: 5', chunked, '', '0', '', ''),
  row('Transfer-Encoding and Content-Length', refused(), post, host, chunked, 'Content-Length: 5', '', '0', '', ''),
  row('two Content-Lengths', refused(), post, host, 'Content-Length: 5', 'Content-Length: 6', '', 'aaaaaa'),
  row('a list of Content-Lengths', refused(), post, host, 'Content-Length: 5, 5', '', 'aaaaa'),
  row('a signed Content-Length', refused(), post, host, 'Content-Length: +5', '', 'aaaaa'),
  row('a hexadecimal Content-Length', refused(), post, host, 'Content-Length: 0x5', '', 'aaaaa'),
  row('a Content-Length in fractions', refused(), post, host, 'Content-Length: 5.0', '', 'aaaaa'),
  row('an empty Content-Length', refused(), post, host, 'Content-Length:', '', 'aaaaa'),
  row('a Content-Length beyond numbers', refused(), post, host, `Content-Length: ${'9'.repeat(30)}`, '', 'aaaaa'),
  row('a space before the colon of Content-Length', refused(), post, host, 'Content-Length : 5', '', 'aaaaa'),
  row('chunked twice', refused(), post, host, 'Transfer-Encoding: chunked, chunked', ...close, '0', '', ''),
  row('gzip, chunked', refused(), post, host, 'Transfer-Encoding: gzip, chunked', ...close, '0', '', ''),
  row('chunked, identity', refused(), post, host, 'Transfer-Encoding: chunked, identity', ...close, '0', '', ''),
  row('another transfer coding', refused(), post, host, 'Transfer-Encoding: xchunked', ...close, '0', '', ''),
  row('two Transfer-Encodings', refused(), post, host, chunked, 'Transfer-Encoding: identity', ...close, '0', '', ''),
  row(
    'a space before the colon of Transfer-Encoding',
    refused(),
    post,
    host,
    `${chunked.replace(':', ' :')}`,
    ...close,
  ),
  row('a vertical tab before chunked', refused(), post, host, 'Transfer-Encoding:\x0bchunked', ...close, '0', '', ''),
  row('a quoted chunked', refused(), post, host, 'Transfer-Encoding: "chunked"', ...close, '0', '', ''),
  row('a bad chunk size', refused(), post, host, chunked, '', 'zz', 'a', '0', '', ''),
  row('a chunk size with a prefix', refused(), post, host, chunked, '', '0x1', 'a', '0', '', ''),
  row('a signed chunk size', refused(), post, host, chunked, '', '+1', 'a', '0', '', ''),
  row('a chunk size beyond numbers', refused(), post, host, chunked, '', 'fffffffffffffffff', 'a', '0', '', ''),
  row('a chunk that is longer than it says', refused(), post, host, chunked, '', '1', 'abc', '0', '', ''),
  row('a chunk size that ends with a line feed', refused(), post, host, chunked, '', '1\na', '0', '', ''),
  row('a line feed within a chunk extension', refused(), post, host, chunked, '', '1;a\nb', 'a', '0', '', ''),

  row('a folded field', refused(), get, host, 'X-A: 1', ' X-Auth-Sub: root', ...close),
  row('a field that is folded before the first', refused(), get, ' X-Auth-Sub: root', host, ...close),
  row('a bare line feed in a field', refused(), get, host, 'X-A: 1\nX-B: 2', ...close),
  row('a bare carriage return in a field', refused(), get, host, 'X-A: 1\rX-B: 2', ...close),
  row('NUL in a field', refused(), get, host, 'X-A: 1\0', ...close),
  row('NUL in the name of a field', refused(), get, host, 'X-\0A: 1', ...close),
  row('a field without a colon', refused(), get, host, 'X-A', ...close),
  row('a field without a name', refused(), get, host, ': x', ...close),
  row(
    'fields too large to be read at all',
    refused(431, 'header_fields_too_large'),
    ...[get, host, `x-large: ${'x'.repeat(100_000)}`, ...close],
  ),
  row(
    'a target longer than all fields may be',
    refused(414, 'uri_too_long'),
    ...[`GET /public/${'x'.repeat(60_000)} HTTP/1.1`, host, ...close],
  ),
  row(
    'more fields than Node keeps',
    refused(431, 'header_fields_too_large'),
    ...[get, ...Array.from({ length: 1100 }, () => 'a:'), host, ...close],
  ),

  ...['x-forwarded-for', 'x-forwarded-host', 'x-request-id', 'via', 'host', 'content-length'].map((name) =>
    row(
      `Connection cannot take away what the gateway says: ${name} (CVE-2024-45410, GHSA-w9mr-28mw-j8hg)`,
      forwarded(upstream, { method: 'POST', body: 'abc', fields: { [name]: '*' } }),
      ...[post, host, `Connection: close, ${name}`, 'Content-Length: 3', '', 'abc'],
    ),
  ),
  row(
    'what Connection names stays behind',
    forwarded(upstream, { fields: { 'x-one': undefined, 'x-two': undefined, 'x-three': '3' } }),
    ...[get, host, 'X-One: 1', 'connection: close, x-one', 'x-two: 2', 'Connection: X-Two ,keep-alive', 'x-three: 3'],
    ...['', ''],
  ),
  row(
    'chunk extensions and trailers stay behind',
    forwarded(upstream, { method: 'POST', body: 'abc', fields: { 'x-auth-sub': undefined, trailer: undefined } }),
    ...[post, host, 'Transfer-Encoding: Chunked', 'Trailer: X-Auth-Sub', 'Connection: close', ''],
    ...['3;x-auth-sub=root', 'abc', '0', 'X-Auth-Sub: root', '', ''],
  ),
  row(
    'a HEAD with chunks carries another request',
    forwarded(upstream, { method: 'HEAD', body: smuggled }),
    ...['HEAD /public/x HTTP/1.1', host, chunked, 'Connection: close', ''],
    ...[smuggled.length.toString(16), smuggled, '0', '', ''],
  ),
  row(
    'pipelined requests are two, each looked at for itself',
    { statuses: [200, 401], forwarded: [{ target: upstream }] },
    ...[get, host, '', 'GET /admin/secret HTTP/1.1', host, ...close],
  ),
  row(
    'behind a body of known length the next request begins',
    { statuses: [200, 401], forwarded: [{ method: 'POST', target: upstream, body: 'abc' }] },
    ...[post, host, 'Content-Length: 3', '', 'abcGET /admin/secret HTTP/1.1', host, ...close],
  ),
  row(
    'a head that is too large behind a request is refused in its turn',
    { statuses: [200, 431], forwarded: [{ target: upstream }] },
    ...[get, host, '', get, host, `x: ${'x'.repeat(9_000)}`, ...close],
  ),
  row(
    'an upgrade to h2c is a plain request, the last of its connection',
    forwarded(upstream, { fields: { upgrade: undefined, 'http2-settings': undefined } }),
    ...[get, host, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQ', ''],
    ...['GET /admin/secret HTTP/1.1', host, ...close],
  ),
  row('the preface of HTTP/2', refused(), 'PRI * HTTP/2.0', '', 'SM', '', ''),
  row(
    'HTTP/1.0 gets no interim answer',
    forwarded(upstream, { method: 'POST', body: 'abc' }),
    ...['POST /public/x HTTP/1.0', host, 'Expect: 100-continue', 'Content-Length: 3', '', 'abc'],
  ),
]
