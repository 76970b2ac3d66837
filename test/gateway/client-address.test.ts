import { describe, expect, test } from 'vitest'
import { clientAddress, createProxyTrust, isNetwork, plainAddress } from '../../gateway/client-address.ts'

describe('the client is the first hop from the right that no trusted proxy vouches for', () => {
  const trust = createProxyTrust(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'])
  test.each<[string, string | undefined, string]>([
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '1.1.1.1, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['10.0.0.1', '198.51.100.1,192.0.2.1', '198.51.100.1'],
    ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
    ['10.0.0.1', '198.51.100.1, , 10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '198.51.100.1:1234', '10.0.0.1'],
    ['10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
    ['2001:db8::1', '2001:db9::1', '2001:db9::1'],
    ['10.0.0.1', '', '10.0.0.1'],
  ])('%s with %j → %s', (peer, forwardedFor, expected) => {
    expect(clientAddress(peer, forwardedFor, trust)).toBe(expected)
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
