import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { insecureNames } from '../../../gateway/config/settings/file.ts'
import { StartupError } from '../../../platform/startup-error.ts'

const client = { id: 'gateway', secret: 's3cret' }
const feed = { mode: 'feed' }

/** A file without insecure settings, and with `members` instead of its own. */
const text = (members: object) =>
  stringify({
    version: 1,
    issuers: [{ issuer: 'https://id.test/oidc', client, revocations: feed }],
    upstreams: { api: { url: 'https://api.test' } },
    routes: [{ id: 'a', path: '/a/**', audience: ['https://api.test'], upstream: 'api' }],
    ...members,
  })

const problemsOf = (members: object): string[] => {
  try {
    parseGatewayConfig(text(members), { file: 'g.yaml', env: {} })
    return []
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return error.message.split('\n').slice(1)
  }
}

const pieces = (count: number, write: (n: number) => string) => Array.from({ length: count }, (_, n) => write(n))

describe.each<[(typeof insecureNames)[number], Record<string, unknown>, RegExp]>([
  ['http-issuer', { issuers: [{ issuer: 'http://id.test/oidc' }] }, /g\.yaml:3:13: .*clear text/],
  ['http-issuer', { issuers: [{ issuer: 'https://id.test', jwksUri: 'http://10.0.0.1/jwks' }] }, /g\.yaml:4:14: /],
  [
    'http-issuer',
    { issuers: [{ issuer: 'https://id.test', client, revocations: feed, tokenEndpoint: 'http://id.internal/token' }] },
    /g\.yaml:9:20: /,
  ],
  [
    'http-issuer',
    { issuers: [{ issuer: 'https://id.test', client, revocations: { ...feed, url: 'http://id.internal/r' } }] },
    /g\.yaml:9:12: /,
  ],
  ['http-upstream', { upstreams: { api: { url: 'http://api.test' } } }, /tokens and identities/],
  ['http-upstream', { upstreams: { api: { url: 'http://127.0.0.1.test' } } }, /tokens and identities/],
  ['http-log', { decisionLog: { to: 'http://collector.test/logs' } }, /who did what/],
  ['http-log', { accessLog: { to: 'http://collector.test/logs' } }, /who did what/],
  ['no-revocations', { issuers: [{ issuer: 'https://id.test', client }] }, /revoked tokens would be good/],
  [
    'no-revocations',
    { issuers: [{ issuer: 'https://id.test', client, revocations: { mode: 'off' } }] },
    /g\.yaml:8:7: /,
  ],
  [
    'serve-when-stale',
    { issuers: [{ issuer: 'https://id.test', client, revocations: { ...feed, whenStale: 'serve' } }] },
    /g\.yaml:9:18: /,
  ],
  ['trust-everybody', { trustedProxies: ['10.0.0.0/8', '0.0.0.0/0'] }, /every client could say/],
  ['trust-everybody', { trustedProxies: ['::/0'] }, /every client could say/],
  ['trust-everybody', { trustedProxies: ['10.0.0.0/8', '128.0.0.0/1'] }, /every client could say/],
  ['trust-everybody', { trustedProxies: ['fc00::/7', '::ffff:0:0/96'] }, /every client could say/],
  ['trust-everybody', { trustedProxies: pieces(8, (n) => `${n}.0.0.0/8`) }, /every client could say/],
  ['trust-everybody', { trustedProxies: pieces(8, (n) => `::ffff:${n}.0.0.0/104`) }, /every client could say/],
  [
    'trust-everybody',
    { trustedProxies: pieces(16, (n) => `20${n.toString(16).padStart(2, '0')}::/8`) },
    /every client could say/,
  ],
  ['plaintext-ext-authz', { extAuthz: { host: '0.0.0.0' }, trustedProxies: ['10.0.0.5'] }, /clear text; set tls/],
  ['public-by-default', { routes: [{ id: 'a', path: '/**', auth: 'none', upstream: 'api' }] }, /open to everybody/],
])('%s: %j', (name, members, message) => {
  test('is refused where it stands, with the name that allows it', () => {
    const problems = problemsOf(members)
    expect(problems).toEqual([expect.stringMatching(message)])
    expect(problems[0]).toContain(`allowInsecure: [${name}]`)
  })

  test('is accepted when it is allowed by its name, and by no other', () => {
    expect(problemsOf({ ...members, allowInsecure: [name] })).toEqual([])
    const others = insecureNames.filter((other) => other !== name)
    expect(problemsOf({ ...members, allowInsecure: others })).toHaveLength(1)
  })
})

test.each(['http://localhost:3001', 'http://api.localhost', 'http://127.8.0.1:80', 'http://[::1]:3002'])(
  'plain http to this machine is not insecure: %s',
  (url) => {
    expect(problemsOf({ upstreams: { api: { url } } })).toEqual([])
  },
)

test('a foreign issuer, which has no client here, needs no revocations', () => {
  expect(problemsOf({ issuers: [{ issuer: 'https://id.test' }] })).toEqual([])
})

test('a misspelt name allows nothing', () => {
  expect(problemsOf({ allowInsecure: ['http-upsteam'] })).toEqual([expect.stringContaining('allowInsecure[0]')])
})

test('every name is documented for operators', async () => {
  const page = await readFile(new URL('../../../docs/operators.md', import.meta.url), 'utf8')
  for (const name of insecureNames) expect(page).toContain(`| \`${name}\` |`)
})
