import { describe, expect, test } from 'vitest'
import { isNetwork } from '../../../gateway/config/settings/values.ts'
import { createProxyTrust, type ProxyFields, plainAddress, sourceOf } from '../../../gateway/request/client-address.ts'
import { parseForwarded } from '../../../gateway/request/forwarded.ts'

const networks = ['10.0.0.0/8', '2001:db8::/32', '192.0.2.1']
const nothing: ProxyFields = {
  forwarded: undefined,
  forwardedFor: undefined,
  forwardedProto: undefined,
  forwardedHost: undefined,
}

describe('the client is the first hop from the right that no trusted proxy vouches for', () => {
  const trust = createProxyTrust(networks)
  test.each<[string, string | undefined, string]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', '198.51.100.1, 10.0.0.1'],
    ['10.0.0.1', '1.1.1.1, 198.51.100.1', '198.51.100.1, 10.0.0.1'],
    ['10.0.0.1', '1.1.1.1, 198.51.100.1, 10.9.9.9', '198.51.100.1, 10.9.9.9, 10.0.0.1'],
    ['10.0.0.1', '198.51.100.1,192.0.2.1', '198.51.100.1, 192.0.2.1, 10.0.0.1'],
    ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2, 10.0.0.3, 10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, , 10.0.0.2', '10.0.0.2, 10.0.0.1'],
    ['10.0.0.1', '198.51.100.1:1234', '198.51.100.1, 10.0.0.1'],
    ['10.0.0.1', '[2001:db9::1]:1234', '2001:db9::1, 10.0.0.1'],
    ['10.0.0.1', '1.1.1.1, 198.51.100.1:x', '10.0.0.1'],
    ['10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1, 10.0.0.1'],
    ['2001:db8::1', '2001:db9::1', '2001:db9::1, 2001:db8::1'],
    ['10.0.0.1', '', '10.0.0.1'],
  ])('%s with %j → %s', (peer, forwardedFor, expected) => {
    const source = sourceOf(peer, { ...nothing, forwardedFor, forwarded: 'for=6.6.6.6' }, trust)
    expect(source).toEqual({
      clientIp: expected.split(',')[0],
      forwardedFor: expected,
      proto: undefined,
      host: undefined,
    })
  })

  test('what they say of protocol and host counts, what anybody else says does not', () => {
    const said = { ...nothing, forwardedProto: 'https', forwardedHost: 'shop.test' }
    expect(sourceOf('10.0.0.1', said, trust)).toMatchObject({ proto: 'https', host: 'shop.test' })
    expect(sourceOf('203.0.113.9', said, trust)).toMatchObject({ proto: undefined, host: undefined })
  })
})

describe('proxies that write Forwarded (RFC 7239)', () => {
  const trust = createProxyTrust(networks, 'forwarded')
  const sourceFrom = (forwarded: string | undefined, peer = '10.0.0.1') => {
    const { forwardedFor, proto, host } = sourceOf(
      peer,
      // A client wrote these, and the proxies passed them on.
      { forwarded, forwardedFor: '6.6.6.6', forwardedProto: 'https', forwardedHost: 'evil.test' },
      trust,
    )
    return [forwardedFor, proto, host]
  }

  test.each<[string | undefined, (string | undefined)[]]>([
    [undefined, ['10.0.0.1', undefined, undefined]],
    ['for=198.51.100.1', ['198.51.100.1, 10.0.0.1', undefined, undefined]],
    ['For="[2001:db9::1]:4711";Proto=https', ['2001:db9::1, 10.0.0.1', 'https', undefined]],
    ['for=198.51.100.1;proto=https;host="a.test:8443";by=10.0.0.1', ['198.51.100.1, 10.0.0.1', 'https', 'a.test:8443']],
    // The left one is the client's own.
    [
      'for=1.1.1.1;proto=https;host=evil.test, for=198.51.100.1;proto=http',
      ['198.51.100.1, 10.0.0.1', 'http', undefined],
    ],
    // Two trusted proxies: the outer one saw the client.
    [
      'for=198.51.100.1;proto=https;host=a.test, for=10.0.0.2;proto=http;host=inner.test',
      ['198.51.100.1, 10.0.0.2, 10.0.0.1', 'https', 'a.test'],
    ],
    // It may hide the client.
    ['for=1.1.1.1, for=_hidden;proto=https, for=10.0.0.2;proto=http', ['10.0.0.2, 10.0.0.1', 'https', undefined]],
    ['for=1.1.1.1, for=unknown;proto=https', ['10.0.0.1', 'https', undefined]],
  ])('%s', (forwarded, expected) => {
    expect(sourceFrom(forwarded)).toEqual(expected)
  })

  test('from anybody else it counts for nothing', () => {
    expect(sourceFrom('for=1.1.1.1;proto=https', '203.0.113.9')).toEqual(['203.0.113.9', undefined, undefined])
  })

  test('a field in which nobody can tell whose words are whose is refused', () => {
    for (const broken of [
      'for="1.1.1.1',
      'for',
      'for=1.1.1.1 proto=https',
      'for=a;for=b',
      '=x',
      'for=1.1.1.1;;proto="\\',
    ]) {
      expect(() => sourceFrom(broken), broken).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    }
  })

  test('quoted strings hide separators', () => {
    expect(parseForwarded('for="a, b;c";proto=http , ,host="q\\"q"')).toEqual([
      { for: 'a, b;c', proto: 'http', host: undefined },
      { for: undefined, proto: undefined, host: 'q"q' },
    ])
  })
})

test('networks are addresses or CIDRs', () => {
  const texts = [
    '10.0.0.0/8',
    '::1',
    '2001:db8::/32',
    '10.0.0.1',
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/8/8',
    'a.test',
    '',
    '10.0.0.0/',
    '/8',
  ]
  expect(texts.filter(isNetwork)).toEqual(['10.0.0.0/8', '::1', '2001:db8::/32', '10.0.0.1'])
  expect(plainAddress('::ffff:127.0.0.1')).toBe('127.0.0.1')
  expect(plainAddress('::1')).toBe('::1')
})
