import { describe, expect, test } from 'vitest'
import { createAddressGuard, parseNetwork } from '../../../platform/http/address-guard.ts'
import { createTargetPolicy } from '../../../platform/http/outbound.ts'

const guard = createAddressGuard()

const refused = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.169.254',
  '169.254.170.2',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '0:0:0:0:0:ffff:a9fe:a9fe',
  '::127.0.0.1',
  '::ffff:0:10.0.0.1',
  '64:ff9b::10.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::1',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  '2001:0:7f00:1::',
  '2001:db8::1',
  '2001:10::1',
  '3fff::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'fc00::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'ff02::1',
  '5f00::1',
  '100::1',
  'localhost',
  '',
  '127.1',
  '0x7f.0.0.1',
]
test.each(refused)('%s is not reached', (address) => {
  expect(guard.refusal(address)).toBeTypeOf('string')
})

const allowed = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '128.0.0.1',
  '168.63.129.15',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:82b::200e',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
]
test.each(allowed)('%s is reached', (address) => {
  expect(guard.refusal(address)).toBeUndefined()
})

test('named networks are reached in every form, and only they', () => {
  const own = createAddressGuard({ allowedNetworks: ['10.1.0.0/16', 'fd00:1::/32', '127.0.0.1'] })
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1::9', '127.0.0.1', '8.8.8.8'])
    expect(own.refusal(address)).toBeUndefined()
  for (const address of ['10.2.0.1', '127.0.0.2', 'fd00:2::9', '::1']) expect(own.refusal(address)).toBeDefined()
})

test('a rule for IPv6 says nothing about IPv4', () => {
  const own = createAddressGuard({ allowedNetworks: ['::/8'] })
  expect(own.refusal('8.8.8.8')).toBeUndefined()
  expect(own.refusal('10.0.0.1')).toBeDefined()
})

test('what is not a network is refused', () => {
  for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10/8', 'example.com', '', '::/129', '10.0.0.0/-1'])
    expect(parseNetwork(text), text).toBeUndefined()
  expect(() => createAddressGuard({ allowedNetworks: ['nonsense'] })).toThrow('CIDR')
})

describe('registration', () => {
  const policy = createTargetPolicy({
    allowHttp: true,
    resolve: async (hostname) => {
      const table: Record<string, string[]> = {
        'public.test': ['93.184.216.34'],
        'private.test': ['10.0.0.1', 'fd00::1'],
        'mixed.test': ['93.184.216.34', 'fd00::1'],
      }
      const addresses = table[hostname]
      if (addresses === undefined) throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' })
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
  })

  // Every way to write 127.0.0.1, 169.254.169.254 and friends that a URL parser takes.
  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://127.0.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://１２７.0.0.1/',
    'http://127。0。0。1/',
    'http://%31%32%37.0.0.1/',
    'http://0/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:0:0:1]/',
    'http://[64:ff9b::127.0.0.1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xa9fea9fe/',
    'https://[fd00:ec2::254]/',
    'http://private.test/',
    'http://user:pass@public.test/',
    'http://user@public.test/',
    'http://public.test:22/',
    'http://public.test:6379/',
    'http://public.test:10250/',
    'ftp://public.test/',
    'file:///etc/passwd',
    'gopher://public.test/',
    'javascript:alert(1)',
    '//public.test/',
    '/webhooks',
    'http://',
    '',
  ])('%s is refused', async (url) => {
    expect(await policy.refusal(url)).toBeTypeOf('string')
  })

  test.each([
    'http://public.test/',
    'https://public.test/hooks?a=b',
    'https://public.test:8443/',
    'https://PUBLIC.test./x',
    'https://unknown.test/',
    'https://mixed.test/',
    'http://8.8.8.8/',
  ])('%s is accepted', async (url) => {
    expect(await policy.refusal(url)).toBeUndefined()
  })

  test('plain http needs to be allowed', async () => {
    expect(await createTargetPolicy().refusal('http://8.8.8.8/')).toBe('The URL must start with https://.')
    expect(await createTargetPolicy().refusal('https://8.8.8.8/')).toBeUndefined()
  })
})
