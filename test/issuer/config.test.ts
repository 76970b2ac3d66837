import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createClientAddress } from '../../issuer/base/client-address.ts'
import { loadIssuerConfig } from '../../issuer/config.ts'
import { StartupError } from '../../platform/startup-error.ts'

const KEY_ENCRYPTION_KEY = randomBytes(32).toString('base64')

test('defaults', () => {
  expect(loadIssuerConfig({ KEY_ENCRYPTION_KEY })).toMatchObject({
    host: '127.0.0.1',
    port: 3001,
    baseUrl: undefined,
    signingAlgorithm: 'ES256',
    subjectTokenTtl: 600,
    refreshTokenLeeway: 10,
    interactionsPerAddress: 300,
    managementApiIndicators: [],
  })
})

test('settings are read with their units', () => {
  const config = loadIssuerConfig({
    KEY_ENCRYPTION_KEY,
    BASE_URL: 'https://id.example.test/',
    SUBJECT_TOKEN_TTL: '2m',
    MANAGEMENT_API_INDICATORS: 'https://default.logto.app/api, https://old.example.test/api',
  })
  expect(config).toMatchObject({
    baseUrl: 'https://id.example.test',
    subjectTokenTtl: 120,
    managementApiIndicators: ['https://default.logto.app/api', 'https://old.example.test/api'],
  })
})

test('every problem is told at once, and no secret with it', () => {
  const load = () =>
    loadIssuerConfig({
      BASE_URL: 'https://id.example.test/path',
      SUBJECT_TOKEN_TTL: '2h',
      SIGNING_ALGORITHM: 'HS256',
      BOOTSTRAP_CLIENT_ID: 'has:colon',
      BOOTSTRAP_CLIENT_SECRET: 'too-short',
    })
  expect(load).toThrow(StartupError)
  for (const name of [
    'BASE_URL',
    'SUBJECT_TOKEN_TTL',
    'SIGNING_ALGORITHM',
    'BOOTSTRAP_CLIENT_ID',
    'KEY_ENCRYPTION_KEY',
  ]) {
    expect(load).toThrow(new RegExp(`${name}: `))
  }
  expect(load).not.toThrow(/too-short/)
})

test('a bootstrap secret without its client is refused', () => {
  const load = () => loadIssuerConfig({ KEY_ENCRYPTION_KEY, BOOTSTRAP_CLIENT_SECRET: 'x'.repeat(43) })
  expect(load).toThrow(/BOOTSTRAP_CLIENT_ID/)
})

test.each([
  ['no proxy is trusted', [], '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['the peer is not a trusted proxy', ['10.0.0.0/8'], '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['a trusted proxy says', ['10.0.0.0/8'], '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['the caller pretends', ['10.0.0.0/8'], '10.0.0.1', '6.6.6.6, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
  ['in mapped form', ['10.0.0.1'], '::ffff:10.0.0.1', '2001:db8::1', '2001:db8::1'],
  ['nonsense', ['10.0.0.1'], '10.0.0.1', 'unknown', '10.0.0.1'],
  ['nothing', ['10.0.0.1'], '10.0.0.1', undefined, '10.0.0.1'],
])('the address of a caller: %s', (_, trusted, peer, forwarded, address) => {
  const request = { socket: { remoteAddress: peer }, headers: { 'x-forwarded-for': forwarded } }
  expect(createClientAddress(trusted)(request as never)).toBe(address)
})
