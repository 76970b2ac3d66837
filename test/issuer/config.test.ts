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

test.each([
  'http://id.example.test',
  'http://10.0.0.5:3001',
  'http://localhost.example.test',
  'http://127.0.0.1.example.test',
  'http://0.0.0.0:3001',
])('%s would carry passwords in clear: refused, with everything else, unless it is allowed by name', (BASE_URL) => {
  const load = (environment: object) => () => loadIssuerConfig({ KEY_ENCRYPTION_KEY, BASE_URL, ...environment })
  expect(load({})).toThrow(StartupError)
  expect(load({})).toThrow(/BASE_URL: must be https.*BASE_URL_ALLOW_HTTP=true/)
  expect(load({ BASE_URL_ALLOW_HTTP: 'false', SUBJECT_TOKEN_TTL: '2h' })).toThrow(
    /SUBJECT_TOKEN_TTL: [\s\S]*BASE_URL: must be https/,
  )
  expect(load({ BASE_URL_ALLOW_HTTP: 'true' })()).toMatchObject({ baseUrl: BASE_URL })
})

test.each(['http://localhost:3001', 'http://127.0.0.1:3001', 'http://[::1]:3001', 'http://id.localhost'])(
  '%s stays on this machine',
  (BASE_URL) => {
    expect(loadIssuerConfig({ KEY_ENCRYPTION_KEY, BASE_URL })).toMatchObject({ baseUrl: BASE_URL })
  },
)

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
