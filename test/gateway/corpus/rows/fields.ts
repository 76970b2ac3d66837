import { forwarded, type Row, refused } from '../row.ts'

const target = '/public/x'
const upstream = '/base/public/x'

/** What a client may say as often as it likes: the upstream never hears it. */
const onlyTheGatewaySays: readonly (readonly [name: string, field: string])[] = [
  ['identity', 'X-Auth-Sub: root'],
  ['identity in another spelling (CVE-2025-64484, CVE-2026-52845)', 'X_Auth_Sub: root'],
  ['identity with dots', 'X.Auth.Sub: root'],
  ['identity in capitals', 'X-AUTH-SUB: root'],
  ['identity that nobody has', 'X-Auth-Anything: root'],
  ['the prefix of identity', 'X-Auth: root'],
  ['the original path (CVE-2023-27487)', 'X-Envoy-Original-Path: /public'],
  ['the original URL', 'X-Original-URL: /admin'],
  ['a rewritten URL', 'X-Rewrite-URL: /admin'],
  ['the forwarded URI (CVE-2026-40575)', 'X-Forwarded-Uri: /public'],
  ['the forwarded prefix', 'X-Forwarded-Prefix: /admin'],
  ['the forwarded scheme (CVE-2026-33495)', 'X-Forwarded-Scheme: https'],
  ['the forwarded user', 'X-Forwarded-User: root'],
  ['what proxies say by RFC 7239', 'Forwarded: for=6.6.6.6'],
  ['an address', 'X-Real-IP: 6.6.6.6'],
  ['an address in another spelling', 'X_Real_IP: 6.6.6.6'],
  ['another method', 'X-HTTP-Method-Override: DELETE'],
  ['another method in another spelling', 'X_HTTP_Method: DELETE'],
  ['the client certificate', 'X-Forwarded-Client-Cert: x'],
  ['a length in another spelling', 'Content_Length: 5'],
  ['a coding in another spelling', 'Transfer_Encoding: chunked'],
  ['a proxy to use (httpoxy)', 'Proxy: http://evil.test'],
  ['what is for a proxy', 'Proxy-Authorization: Basic x'],
  ['trailers that it announces', 'Trailer: X-Auth-Sub'],
  ['trailers that it understands', 'TE: trailers'],
]

/** Of which a request has at most one. */
const once = [
  'Authorization: Bearer a',
  'Content-Type: text/plain',
  'Content-Length: 0',
  'Expect: 100-continue',
] as const

const hosts: readonly (readonly [name: string, host: string | undefined])[] = [
  ['no host', undefined],
  ['an empty host', ''],
  ['a host with a path', 'a/b'],
  ['a host with credentials', 'u@a'],
  ['a host with two final dots', 'a..'],
  ['a list of hosts', 'a, b'],
  ['a host with port 65536', 'a:65536'],
  ['a host with a query', 'a?b'],
  ['a host with a fragment', 'a#b'],
  ['a host with a space', 'a b'],
  ['a host with a backslash', 'a\\b'],
  ['a host with an escape', 'a%2fb'],
  ['an open bracket for a host', '[::1'],
]

export const fieldRows: readonly Row[] = [
  ...onlyTheGatewaySays.map(
    ([name, field]): Row => ({
      name: `only a gateway says ${name}: ${field}`,
      request: { target, fields: [field] },
      expect: forwarded(upstream, { fields: { [field.split(':')[0]!.toLowerCase()]: undefined } }),
    }),
  ),
  {
    name: 'scheme, host and address of the client are replaced',
    request: {
      target,
      fields: ['X-Forwarded-Proto: gopher', 'X-Forwarded-Host: evil.test', 'X-Forwarded-For: 6.6.6.6', 'Via: 9 x'],
    },
    expect: forwarded(upstream, {
      fields: {
        'x-forwarded-proto': '{scheme}',
        'x-forwarded-host': 'api.test',
        'x-forwarded-for': '127.0.0.1',
      },
    }),
  },
  {
    name: 'beside a field of the policy there is no other spelling of it',
    request: { target, fields: ['X_Tenant: b', 'X-Tenant: a', 'x.tenant: c', 'X-Tenants: d'] },
    expect: forwarded(upstream, { fields: { 'x-tenant': 'a', 'x-tenants': 'd' } }),
  },
  {
    name: 'a repeated field is repeated (CVE-2021-32777, CVE-2026-26308)',
    request: { target, fields: ['X-Tenant: a', 'X-Tenant: b,c'] },
    expect: forwarded(upstream, { fields: { 'x-tenant': 'a, b,c' } }),
  },
  {
    name: 'bytes outside ASCII are themselves (CVE-2023-27488)',
    request: { target, fields: ['X-Tenant: caf\xe9\xff'] },
    expect: forwarded(upstream, { fields: { 'x-tenant': 'caf\xe9\xff' } }),
  },
  {
    name: 'cookies of the issuer stay here',
    request: { target, fields: ['Cookie: a=b; surrogate_session=x; __Host-surrogate=y; c=d'] },
    expect: forwarded(upstream, { fields: { cookie: 'a=b; c=d' } }),
  },
  {
    name: 'a user agent opens nothing (CVE-2026-34457)',
    request: { target: '/admin/x', fields: ['User-Agent: GoogleHC/1.0'] },
    expect: refused(401),
  },
  ...once.map(
    (field): Row => ({
      name: `two of ${field}`,
      request: { method: 'POST', target, fields: [field, field.toLowerCase()] },
      expect: refused(),
    }),
  ),
  ...hosts.map(([name, host]): Row => ({ name, request: { target, host }, expect: refused() })),
  ...(['TRACE', 'FOO'] as const).map(
    (method): Row => ({ name: `the method ${method}`, request: { method, target }, expect: refused() }),
  ),
  {
    name: 'an expectation of something else',
    request: { method: 'POST', target, fields: ['Expect: 200-ok'] },
    expect: refused(),
  },
  {
    name: 'a list of expectations',
    request: { method: 'POST', target, fields: ['Expect: 100-continue, x'] },
    expect: refused(),
  },
  {
    name: 'a long target',
    request: { target: `/public/${'x'.repeat(300)}` },
    expect: refused(414, 'uri_too_long'),
  },
  {
    name: 'many fields',
    request: { target, fields: Array.from({ length: 40 }, (_, n) => `x-${n}: 1`) },
    expect: refused(431, 'header_fields_too_large'),
  },
  {
    name: 'large fields',
    request: { target, fields: [`x-large: ${'x'.repeat(9_000)}`] },
    expect: refused(431, 'header_fields_too_large'),
  },
  {
    name: 'a large body',
    request: { method: 'POST', target: '/small', body: 'a'.repeat(11) },
    expect: refused(413, 'content_too_large'),
  },
  {
    name: 'a body as large as it may be',
    request: { method: 'POST', target: '/small', body: 'a'.repeat(10) },
    expect: forwarded('/base/small', { method: 'POST', body: 'a'.repeat(10) }),
  },
]

const smuggled = 'GET /admin/secret HTTP/1.1\r\nHost: api.test\r\n\r\n'

/** A request within a request stays within. */
export const bodyRows: readonly Row[] = [
  ...['DELETE', 'OPTIONS', 'GET', 'POST', 'PUT'].flatMap((method): Row[] => [
    {
      name: `a ${method} of unknown length carries another request`,
      request: { method, target, body: smuggled, chunked: true },
      expect: forwarded(upstream, { method, body: smuggled, fields: { 'content-length': undefined } }),
    },
    {
      name: `a ${method} of known length carries another request`,
      request: { method, target, body: smuggled },
      expect: forwarded(upstream, {
        method,
        body: smuggled,
        fields: { 'content-length': String(smuggled.length), 'transfer-encoding': undefined },
      }),
    },
  ]),
  {
    name: 'chunks within a body are its content',
    request: { method: 'POST', target, body: `0\r\n\r\n${smuggled}` },
    expect: forwarded(upstream, { method: 'POST', body: `0\r\n\r\n${smuggled}` }),
  },
  {
    name: 'chunks within chunks are its content',
    request: { method: 'POST', target, body: `0\r\n\r\n${smuggled}`, chunked: true },
    expect: forwarded(upstream, { method: 'POST', body: `0\r\n\r\n${smuggled}` }),
  },
]
