import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadGatewayConfig, parseGatewayConfig } from '../../../gateway/config/load.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import { shippedPolicies } from '../../../policies/decide.ts'

const good = `version: 1
listen: { host: 127.0.0.1, port: 3000 }
admin: { host: 127.0.0.1, port: 9300 }
trustedProxies: [10.0.0.0/8]
issuers:
  - issuer: http://localhost:3001/oidc
    algorithms: [ES256, EdDSA, RS256]
    typ: [at+jwt]
    clockSkew: 5s
    client: { id: gateway, secret: "\${GATEWAY_CLIENT_SECRET}" }
    revocations: { mode: feed, maxStale: 5m, whenStale: deny }
policies:
  path: ./policies
  entrypoint: surrogate/gateway/decision
decisionLog: { to: stdout, mask: [/input/token/claims/email] }
upstreams:
  orders: { url: "http://127.0.0.1:3002", connectTimeout: 2s, headersTimeout: 30s, idleTimeout: 60s }
routes:
  - id: orders-read
    hosts: []
    path: /orders/{id}/**
    methods: [GET, HEAD]
    auth: required
    audience: [https://api.example.test/orders]
    scopes: [read:orders]
    impersonation: allow
    policyHeaders: [Accept-Language]
    upstream: orders
    stripPrefix: null
    forwardAuthorization: true
`
const env = { GATEWAY_CLIENT_SECRET: 's3cret' }

const read = (text: string) => parseGatewayConfig(text, { file: 'gateway.yaml', env })

/** What is wrong with the text, one line each, without the heading. */
const problemsOf = (text: string, environment: Record<string, string> = env): string[] => {
  try {
    parseGatewayConfig(text, { file: 'gateway.yaml', env: environment })
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim())
  }
  return []
}

test('the documented example is read, with the environment in it and defaults filled in', () => {
  const config = parseGatewayConfig(good, { file: '/etc/surrogate/gateway.yaml', env })
  expect(config.issuers[0]).toMatchObject({ issuer: 'http://localhost:3001/oidc', clockSkew: 5_000 })
  expect(config.issuers[0]!.client!.secret.reveal()).toBe('s3cret')
  expect(JSON.stringify(config)).not.toContain('s3cret')
  expect(config.policies).toEqual({
    path: '/etc/surrogate/policies',
    entrypoint: 'surrogate/gateway/decision',
    remote: { poll: 30_000 },
    shadowSample: 1,
    units: 5_000_000,
    isolation: { workers: 2, deadline: 50 },
  })
  expect(config.upstreams).toMatchObject({
    orders: { connectTimeout: 2_000, headersTimeout: 30_000, idleTimeout: 60_000 },
  })
  expect(config.routes[0]).toMatchObject({
    id: 'orders-read',
    pattern: { segments: ['orders', null], parameters: [{ name: 'id', index: 1 }], rest: true },
    policyHeaders: ['accept-language'],
    entrypoint: 'surrogate/gateway/decision',
    insufficientScopeStatus: 401,
    encodedSlash: 'refuse',
    stripSegments: 0,
  })
})

test('the shortest file has safe defaults', () => {
  const config = parseGatewayConfig('version: 1\n', { file: 'gateway.yaml', env })
  expect(config).toMatchObject({
    listen: { host: '127.0.0.1', port: 3000 },
    admin: { host: '127.0.0.1', port: 9300 },
    trustedProxies: [],
    policies: { path: shippedPolicies },
    routes: [],
  })
  expect(config.decisionLog).toBeUndefined()
})

test('the revision follows the text', () => {
  const revision = (text: string) => parseGatewayConfig(text, { file: 'g.yaml', env }).revision
  expect(revision(good)).toBe(revision(good))
  expect(revision(good)).not.toBe(revision(`${good}\n# changed`))
})

describe('every problem is told with its line and column', () => {
  const changed = (from: string, to: string) => {
    expect(good).toContain(from)
    return good.replace(from, to)
  }
  test.each<[string, string, string[]]>([
    ['an unknown key', changed('listen:', 'lisen:'), ['gateway.yaml:2:1: unknown key lisen; did you mean listen?']],
    [
      'an unknown key within',
      changed('    scopes: [', '    scope: ['),
      ['gateway.yaml:25:5: unknown key scope in routes[0]; did you mean scopes?'],
    ],
    ['a wrong type', changed('port: 3000', 'port: many'), ['gateway.yaml:2:34: listen.port: must be a port number']],
    [
      'a duration without unit',
      changed('clockSkew: 5s', 'clockSkew: "5"'),
      ['gateway.yaml:9:16: issuers[0].clockSkew: must be a duration from 0s to 2m, such as 500ms, 5s or 10m'],
    ],
    ['a skew over two minutes', changed('clockSkew: 5s', 'clockSkew: 121s'), [expect.stringContaining('9:16')]],
    [
      'a symmetric algorithm',
      changed('[ES256, EdDSA', '[HS256, EdDSA'),
      [expect.stringContaining('7:18: issuers[0].algorithms[0]: must be one of ES256')],
    ],
    ['no algorithm at all', changed('[ES256, EdDSA', '[none, EdDSA'), [expect.stringContaining('7:18')]],
    [
      'a missing audience',
      changed('    audience: [https://api.example.test/orders]\n', ''),
      ['gateway.yaml:19:9: audience is needed with auth: required'],
    ],
    [
      'a missing upstream',
      changed('upstream: orders', 'upstream: order'),
      ['gateway.yaml:28:15: there is no upstream order; did you mean orders?'],
    ],
    [
      'a bad path',
      changed('/orders/{id}/**', '/orders/**/x'),
      [expect.stringContaining('gateway.yaml:21:11: the path holds "**"')],
    ],
    [
      'a credential for the policy',
      changed('[Accept-Language]', '[Authorization]'),
      ['gateway.yaml:27:21: routes[0].policyHeaders[0]: a header that carries credentials is never handed to a policy'],
    ],
    [
      'a prefix that is no prefix',
      changed('stripPrefix: null', 'stripPrefix: /order'),
      ['gateway.yaml:29:18: must be the literal beginning of the path, in whole segments'],
    ],
    [
      'a prefix over a parameter',
      changed('stripPrefix: null', 'stripPrefix: /orders/42'),
      [expect.stringContaining('29:18')],
    ],
    [
      'a method that is not served',
      changed('[GET, HEAD]', '[GET, TRACE]'),
      ['gateway.yaml:22:20: routes[0].methods[1]: CONNECT and TRACE are not served'],
    ],
    [
      'a network',
      changed('10.0.0.0/8', '10.0.0.0/33'),
      [expect.stringContaining('4:18: trustedProxies[0]: must be an address')],
    ],
    [
      'credentials in a URL',
      changed('http://127.0.0.1:3002', 'http://u:p@127.0.0.1:3002'),
      [expect.stringContaining('17:18: upstreams.orders.url')],
    ],
    [
      'a password without a user in a URL',
      changed('http://127.0.0.1:3002', 'http://:p@127.0.0.1:3002'),
      [expect.stringContaining('17:18: upstreams.orders.url')],
    ],
    ['a duplicate key', changed('admin:', 'listen:'), [expect.stringContaining('gateway.yaml:3:1: ')]],
    [
      'broken YAML',
      changed('listen: {', 'listen: {{'),
      expect.arrayContaining([expect.stringMatching(/^gateway\.yaml:3:1: Flow map/)]) as never,
    ],
    ['a list instead of the file', '- a\n', [expect.stringContaining('gateway.yaml:1:1: ')]],
    ['another version', changed('version: 1', 'version: 2'), [expect.stringContaining('gateway.yaml:1:10: version: ')]],
    [
      'a parameter of other routers',
      changed('/orders/{id}/**', '/orders/:id/**'),
      ['gateway.yaml:21:11: the path holds ":id": a parameter is written {id}'],
    ],
    ['one port twice', changed('port: 3000', 'port: 9300'), ['gateway.yaml:2:34: listen and admin have the same port']],
    [
      'one port twice, by every address',
      changed('host: 127.0.0.1, port: 3000', 'host: "::", port: 9300'),
      [expect.stringContaining('listen and admin have the same port')],
    ],
    [
      'too small a number',
      changed('headersTimeout: 30s', 'maxRequests: 0'),
      [expect.stringMatching(/upstreams\.orders\.maxRequests: must be at least 1$/)],
    ],
    [
      'a fraction',
      changed('headersTimeout: 30s', 'maxRequests: 1.5'),
      [expect.stringMatching(/upstreams\.orders\.maxRequests: must be a whole number, not 1\.5$/)],
    ],
    [
      'a number in place of a duration',
      changed('clockSkew: 5s', 'clockSkew: 5'),
      [expect.stringMatching(/clockSkew: must be a duration from 0s to 2m, such as 500ms, 5s or 10m$/)],
    ],
    [
      'a duration that is missing',
      changed('    upstream: orders', '    rateLimit: { by: subject, requests: 1 }\n    upstream: orders'),
      [expect.stringMatching(/rateLimit\.per: is needed: a duration from 1s to 1d, such as 500ms, 5s or 10m$/)],
    ],
    [
      'a text in place of a list',
      changed('methods: [GET, HEAD]', 'methods: GET'),
      [expect.stringMatching(/routes\[0\]\.methods: must be a list, not a text$/)],
    ],
    ['an empty list', changed('typ: [at+jwt]', 'typ: []'), [expect.stringMatching(/typ: must have at least 1 entry$/)]],
    [
      'a section with nothing in it',
      `${good}drain:\n`,
      [
        expect.stringMatching(
          /^gateway\.yaml:31:7: drain: is empty: it must be a mapping of names to values, or be left out$/,
        ),
      ],
    ],
    [
      'a choice that is none',
      changed('auth: required', 'auth: requierd'),
      [expect.stringMatching(/routes\[0\]\.auth: must be one of required, none; did you mean required\?$/)],
    ],
    ['another version', changed('version: 1', 'version: "1"'), ['gateway.yaml:1:10: version: must be 1']],
    ['no version', changed('version: 1\n', ''), [expect.stringMatching(/version: is needed: 1$/)]],
    [
      'a name that is none',
      changed('  orders: {', '  "or ders": {'),
      [
        expect.stringMatching(/upstreams\.or ders: must be letters, digits, dots, dashes, at most 64$/),
        expect.stringMatching(/there is no upstream orders/),
      ],
    ],
    [
      'a size that is none',
      changed('clockSkew: 5s', 'jwks: { maxBytes: 1TB }'),
      [expect.stringMatching(/jwks\.maxBytes: must be from 1024 to 16777216 bytes, such as 65536, 64kB or 1MB$/)],
    ],
    [
      'forward-auth for nobody',
      `${good.replace('trustedProxies: [10.0.0.0/8]\n', '')}forwardAuth: { dialect: nginx }\n`,
      ['gateway.yaml:30:14: needs trustedProxies: only they get decisions'],
    ],
    [
      'forward-auth with the other header',
      `${good}forwardedBy: forwarded\nforwardAuth: { dialect: traefik }\n`,
      ['gateway.yaml:31:14: forward-auth reads X-Forwarded-*: all of its dialects write these'],
    ],
    [
      'shadow policies without TLS',
      changed('  path: ./policies', '  path: ./policies\n  shadow: http://bundles.test/next.tar.gz'),
      [expect.stringContaining('gateway.yaml:14:11: needs https, or verify')],
    ],
    [
      'a bundle without TLS, and settings that concern none',
      changed('  path: ./policies', '  bundle: http://bundles.test/b.tar.gz'),
      [expect.stringContaining('gateway.yaml:13:11: needs https, or verify')],
    ],
    [
      'an address as a path, and settings of bundles without one',
      changed(
        '  path: ./policies',
        '  path: https://bundles.test/b\n  token: x\n  cache: y\n  verify: { keys: [{ id: a, algorithm: ES256, file: b }] }',
      ),
      [
        expect.stringContaining('gateway.yaml:13:9: an address is named with bundle'),
        expect.stringContaining('gateway.yaml:14:10: needs a bundle that is an address'),
        expect.stringContaining('gateway.yaml:15:10: needs a bundle that is an address'),
        expect.stringContaining('gateway.yaml:16:11: needs a bundle; a folder of rules is not signed'),
      ],
    ],
    [
      'personal access tokens without a client to exchange them with',
      changed('    forwardAuthorization: true', '    acceptPersonalAccessTokens: true')
        .replace('    client: { id: gateway, secret: "${GATEWAY_CLIENT_SECRET}" }\n', '')
        .replace('mode: feed', 'mode: off'),
      ['gateway.yaml:29:33: needs an issuer of the route with a client to exchange them with'],
    ],
    [
      'a feed without client',
      changed('    client: { id: gateway, secret: "${GATEWAY_CLIENT_SECRET}" }\n', ''),
      [expect.stringContaining('10:18: the revocation feed needs a client')],
    ],
  ])('%s', (_, text, expected) => {
    expect(problemsOf(text)).toEqual(expected)
  })

  test('all at once, in order', () => {
    const text = good.replace('port: 3000', 'port: -1').replace('[at+jwt]', '[]').replace('id: orders-read', 'id: ""')
    expect(problemsOf(text, {}).map((line) => line.split(': ')[0])).toEqual([
      'gateway.yaml:2:34',
      'gateway.yaml:8:10',
      'gateway.yaml:10:36',
      'gateway.yaml:19:9',
    ])
  })

  test('an unset variable, where it is used', () => {
    expect(problemsOf(good, { GATEWAY_CLIENT_SECRET: '' })).toEqual([
      'gateway.yaml:10:36: the environment variable GATEWAY_CLIENT_SECRET is not set',
    ])
  })

  test('headers that carry credentials under other names are no more for policies, others are', () => {
    const names = 'cookie2 dpop x-apikey api-key ocp-apim-subscription-key x-functions-key x-jwt x-session-id x-auth'
    for (const name of [...names.split(' '), 'x-user-passwd', 'x-goog-iap-jwt-assertion', 'x-hub-signature-256']) {
      expect(problemsOf(changed('[Accept-Language]', `[${name}]`)), name).toEqual([
        expect.stringContaining('a header that carries credentials'),
      ])
    }
    for (const name of ['idempotency-key', 'x-author', 'user-agent', 'sec-fetch-site', 'origin']) {
      expect(problemsOf(changed('[Accept-Language]', `[${name}]`)), name).toEqual([])
    }
  })

  test('of a member that may be one of several things, the part that is wrong', () => {
    const text = changed(
      'upstream: orders\n',
      'upstream: orders\n    rateLimit: { by: subject, requests: 1.5, per: 1m }\n',
    )
    expect(problemsOf(text)).toEqual([
      'gateway.yaml:29:41: routes[0].rateLimit.requests: must be a whole number, not 1.5',
    ])
    expect(problemsOf(changed('[/input/token/claims/email]', '[{ path: /nowhere, value: x }]'))).toEqual([
      'gateway.yaml:15:43: decisionLog.mask[0].path: must be a JSON pointer under /input or /result',
    ])
  })

  test('aliases that would take all memory', () => {
    const list = (name: string, item: string) => `${name}: &${name} [${Array.from({ length: 9 }, () => item).join()}]`
    const text = [list('a', 'x'), ...['ab', 'bc', 'cd', 'de', 'ef'].map(([one, next]) => list(next!, `*${one}`))].join(
      '\n',
    )
    expect(problemsOf(text)).toContainEqual(expect.stringContaining('1:1: its aliases (*) refer to too much'))
  })

  test('routes that tie are both named', () => {
    const text = `${good}  - { id: orders-any, path: "/orders/{order}/**", audience: [a], upstream: orders }\n`
    expect(problemsOf(text)).toEqual([
      'gateway.yaml:31:29: the routes orders-read and orders-any tie: both match GET /orders/{order}/**',
    ])
  })

  test('a route without authentication cannot ask for scopes, ids and issuers are unique', () => {
    const text = good
      .replace('auth: required', 'auth: none')
      .replace('issuers:', 'issuers:\n  - issuer: http://localhost:3001/oidc')
    expect(problemsOf(text)).toEqual([
      'gateway.yaml:7:13: this issuer is listed twice',
      'gateway.yaml:26:13: scopes cannot be required with auth: none',
    ])
  })
})

describe('what an upstream takes for the same', () => {
  const folding = good.replace(
    'upstreams:\n',
    'upstreams:\n  app: { url: "http://127.0.0.1:1", pathEquality: { case: insensitive, trailingSlash: ignore } }\n',
  )
  const route = (id: string, path: string) => `  - { id: ${id}, path: ${path}, auth: none, upstream: app }\n`

  test('makes routes tie that differ in spelling only', () => {
    const text = folding + route('one', '/App/report') + route('two', '/app/Report/') + route('rest', '/app/**')
    expect(problemsOf(text)).toEqual([
      'gateway.yaml:33:22: the routes one and two tie: both match every method /app/Report/',
    ])
    expect(problemsOf(text.replace(/, pathEquality: .*?}/, ''))).toEqual([])
  })

  test('is not said of letters beyond ASCII, about which upstreams differ', () => {
    expect(problemsOf(folding + route('cafe', '/app/caf\u00e9'))).toEqual([
      'gateway.yaml:32:23: APIs differ in whether letters beyond ASCII are the same in capitals: write a {parameter} in the place of "caf\u00e9"',
    ])
    expect(problemsOf(folding + route('kanji', '/app/\u6ce8\u6587'))).toEqual([])
  })

  test('is said in words of its own', () => {
    expect(problemsOf(folding.replace('insensitive', 'ignore'))).toEqual([
      expect.stringContaining('upstreams.app.pathEquality.case: '),
    ])
  })
})

describe('issuers of routes', () => {
  const other = '  - issuer: https://other.test/oidc\n'
  const two = good.replace('policies:', `${other}policies:`)
  const route = (members: string) => `  - { id: other, path: /other, upstream: orders, ${members} }\n`

  test('one issuer serves every route, and may be named', () => {
    const named = good.replace('auth: required', 'auth: required\n    issuers: [http://localhost:3001/oidc]')
    for (const text of [good, named]) {
      expect(read(text).routes.map(({ issuers }) => issuers)).toEqual([['http://localhost:3001/oidc']])
    }
    expect(read(good + route('auth: none')).routes[1]!.issuers).toEqual([])
  })

  test('as soon as there are two, each route says which ones it takes', () => {
    expect(problemsOf(two + route('auth: none'))).toEqual([
      'gateway.yaml:20:9: issuers is needed: the file has more than one issuer, and each route says whose tokens it takes',
    ])
  })

  test('are issuers of the file, at least one, and on routes that take tokens', () => {
    const text = good
      .concat(route('audience: [a], issuers: [http://localhost:3001/oidc/]'))
      .concat(route('audience: [a], issuers: []').replace('id: other, path: /other', 'id: none, path: /none'))
      .concat(
        route('auth: none, issuers: [http://localhost:3001/oidc]').replace(
          'id: other, path: /other',
          'id: open, path: /open',
        ),
      )
    expect(problemsOf(text)).toEqual([
      'gateway.yaml:31:75: there is no issuer http://localhost:3001/oidc/',
      expect.stringMatching(/^gateway.yaml:32:\d+: routes\[2\].issuers: /),
      'gateway.yaml:33:69: a route with auth: none takes no token',
    ])
  })

  test('that take personal access tokens have a client', () => {
    const text = two.replace(
      'auth: required',
      'auth: required\n    issuers: [https://other.test/oidc]\n    acceptPersonalAccessTokens: true',
    )
    expect(problemsOf(text)).toEqual([
      expect.stringMatching(/: needs an issuer of the route with a client to exchange them with$/),
    ])
  })

  test('of which one at most is asked about opaque tokens, with a client', () => {
    const asking = (text: string, client = '{ client: { id: g, secret: s } }') =>
      text.replaceAll(/(- issuer: https?:.*\n)/g, `$1    introspection: ${client}\n`)
    const routed = (members: string) => two.replace('auth: required', `auth: required\n    issuers: [${members}]`)
    expect(problemsOf(asking(routed('https://other.test/oidc')))).toEqual([])
    expect(problemsOf(asking(routed('https://other.test/oidc, http://localhost:3001/oidc')))).toEqual([
      expect.stringMatching(
        /: http:\/\/localhost:3001\/oidc and https:\/\/other.test\/oidc have introspection, .* take one of them$/,
      ),
    ])
    // The first one has a client of its own.
    expect(problemsOf(asking(routed('https://other.test/oidc'), '{}'))).toEqual([
      expect.stringMatching(/: introspection needs a client to ask with$/),
    ])
  })
})

test('a file is read from disk, and a missing one is one clear line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-config-'))
  try {
    const file = join(folder, 'gateway.yaml')
    await writeFile(file, good)
    expect((await loadGatewayConfig(file, env)).policies.path).toBe(join(folder, 'policies'))
    await expect(loadGatewayConfig(join(folder, 'none.yaml'), env)).rejects.toThrow(StartupError)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('a port may come from the environment', () => {
  const text = good.replace('port: 3000', 'port: "${PORT}"')
  expect(parseGatewayConfig(text, { file: 'g', env: { ...env, PORT: '4000' } }).listen.port).toBe(4000)
})

test('mistakes between members are told together with those that one member shows', () => {
  const text = good
    .replace('port: 3000', 'port: many')
    .replace('upstreams:\n', 'upstreams:\n  broken: { url: ftp://x }\n')
    .concat(`  - { id: bad, path: 7, upstream: orders }
  - { id: unused, path: /b, auth: none, upstream: nowhere, colour: red }
  - { id: tie, path: "/orders/{number}/**", methods: [HEAD], audience: [a], upstream: broken }
`)
  expect(problemsOf(text).map((line) => line.replace('gateway.yaml:', ''))).toEqual([
    expect.stringMatching(/^2:34: listen.port/),
    expect.stringMatching(/^17:18: upstreams.broken.url/),
    expect.stringMatching(/^32:22: routes\[1\].path/),
    expect.stringMatching(/^33:51: there is no upstream nowhere/),
    expect.stringMatching(/^33:60: unknown key colour in routes\[2\]/),
    expect.stringMatching(/^34:22: the routes orders-read and tie tie: both match HEAD/),
  ])
})

test('what refers to a section with a mistake is not blamed for it', () => {
  expect(problemsOf(good.replace('clockSkew: 5s', 'clockSkew: 5'))).toEqual([expect.stringContaining('clockSkew')])
  expect(problemsOf(good.replace('[10.0.0.0/8]', '[10.0.0.0/80]').concat('forwardAuth: { dialect: nginx }\n'))).toEqual(
    [expect.stringContaining('trustedProxies[0]')],
  )
})
