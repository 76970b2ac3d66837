import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { formsOf, gatewayJsonSchema, type SchemaNode } from '../../../gateway/config/json-schema.ts'
import { type GatewayConfig, parseGatewayConfig } from '../../../gateway/config/load.ts'
import { access, forwarding, matching } from '../../../gateway/config/settings/route.ts'

/** What the page for operators shows is what the gateway takes. Blocks of other programs have tests against those. */

type Members = Record<string, unknown> & { routes: Record<string, unknown>[] }

const pagePath = fileURLToPath(new URL('../../../docs/operators.md', import.meta.url))
const page = await readFile(pagePath, 'utf8')
const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text!)

/** The one block that begins with this. */
const block = (start: string): Partial<Members> => {
  const found = blocks.filter((text) => text.startsWith(start))
  expect(found, start).toHaveLength(1)
  return parse(found[0]!) ?? {}
}

const whole = block('version: 1') as Members
const env = { GATEWAY_CLIENT_SECRET: 's3cret', COLLECTOR_TOKEN: 's3cret' }
const configOf = (members: object): GatewayConfig =>
  parseGatewayConfig(stringify({ ...whole, ...members }), { file: '/etc/surrogate/gateway.yaml', env })
const withRoute = (members: object) => configOf({ routes: [{ ...whole.routes[0], ...members }] })

describe('the examples of the page for operators', () => {
  test('the whole file', () => {
    const { routes, issuers, policies } = configOf({})
    expect(routes.map(({ id }) => id)).toEqual(['orders-read'])
    expect(issuers[0]!.revocations).toMatchObject({ mode: 'feed', whenStale: 'deny' })
    expect(policies.path).toBe('/etc/surrogate/policies')
  })

  test('sections added to it', () => {
    expect(configOf(block('allowInsecure:')).allowInsecure).toEqual(['http-upstream'])
    expect(configOf({ routes: [...whole.routes, ...block('routes:').routes!] }).routes[1]).toMatchObject({
      websocket: true,
    })
    const { upstreams } = configOf({ ...block('upstreams:'), routes: [] })
    expect(upstreams['app']!.pathEquality).toEqual({ case: 'insensitive', trailingSlash: 'ignore' })
    const severalTargets = configOf(block('# One in ten'))
    expect(severalTargets.upstreams['orders']).toMatchObject({
      targets: [{ weight: 9 }, { weight: 1, labels: { track: 'canary' } }],
      ejection: { for: 30_000, maxShare: 0.5 },
      retries: { attempts: 2, budget: 0.2 },
      tls: { serverName: 'orders.internal' },
    })
    expect(severalTargets.routes).toMatchObject([
      { timeout: 40_000, targets: { labels: { track: 'canary' } }, stripSegments: 1, addPrefix: '/api' },
    ])
    expect(configOf(block('listen:')).listen).toMatchObject({
      tls: { certificates: [{ cert: '/etc/surrogate/a.pem' }, {}], clientCertificate: 'optional' },
      http2: true,
    })
    expect(configOf(block('extAuthz:'))).toMatchObject({
      trustedProxies: ['10.0.0.5'],
      extAuthz: { port: 9191, tls: { certificates: [{}], clientCa: '/etc/surrogate/mesh-ca.pem' } },
    })
    expect(configOf(block('identity:'))).toMatchObject({
      identity: { keyFile: '/etc/surrogate/identity-key.json' },
      upstreams: { orders: { identityAudience: 'https://orders.internal' } },
    })
    expect(configOf(block('decisionLog:'))).toMatchObject({
      decisionLog: { labels: { region: 'eu-1' }, http: { interval: 5_000 } },
      accessLog: { to: '/var/log/surrogate/access.jsonl' },
    })
    expect(configOf(block('trustedProxies:')).forwardAuth).toMatchObject({ path: '/.surrogate/auth', dialect: 'nginx' })
  })

  test('members of a route', () => {
    expect(withRoute(block('rateLimit:')).routes[0]!.rateLimits.map(({ name }) => name)).toEqual(['client', 'guesses'])
    expect(withRoute(block('acr:')).routes[0]).toMatchObject({ maxAuthAge: 300_000 })
    const { cors } = withRoute(block('cors:')).routes[0]!
    expect(cors!.allowed('https://a.shop.example.test')).toBe('https://a.shop.example.test')
  })
})

type Settings = Record<string, SchemaNode>

const settingsOf = (node: SchemaNode | undefined): Settings =>
  Object.assign({}, ...(node ? formsOf(node) : []).map(({ properties }) => properties))

const { listen, issuers, upstreams, routes, extAuthz } = settingsOf(gatewayJsonSchema())
const ofRoutes = settingsOf(routes)
const group = (names: object): Settings =>
  Object.fromEntries(Object.entries(ofRoutes).filter(([name]) => Object.hasOwn(names, name)))

/** By the marker that a table stands behind on the page. */
const tables: Record<string, Settings> = {
  listen: settingsOf(listen),
  extAuthz: settingsOf(extAuthz),
  issuers: settingsOf(issuers),
  upstreams: settingsOf(upstreams?.additionalProperties as SchemaNode),
  'routes, which requests': group(matching),
  'routes, who may ask': group(access),
  'routes, forwarding': group(forwarding),
  cors: settingsOf(ofRoutes['cors']),
  rateLimit: settingsOf(ofRoutes['rateLimit']),
}

const code = (value: unknown): string => {
  const text = Array.isArray(value) ? value.join(', ') : value
  return text === undefined || text === '' || text === null || typeof text === 'object' ? '' : `\`${text}\``
}

const rowsOf = (settings: Settings, prefix = ''): string[] =>
  Object.entries(settings).flatMap(([name, setting]) => [
    [
      '',
      ` \`${prefix}${name}\` `,
      ` ${code(setting.default)} `.replace(/^ {2}$/, ' '),
      ` ${setting.description} `,
      '',
    ].join('|'),
    ...(Object.hasOwn(tables, name) ? [] : rowsOf(settingsOf(setting), `${prefix}${name}.`)),
  ])

test('its tables of settings are made from the rows of the settings: npm test -- test/gateway/config -u writes them', async () => {
  const written = page.replace(/(<!-- settings: (.*) -->\n\n)(?:\|.*\n)+/g, (_, marker: string, name: string) =>
    [`${marker}| Setting | Default | Meaning |`, '|---|---|---|', ...rowsOf(tables[name] ?? {}), ''].join('\n'),
  )
  expect([...page.matchAll(/<!-- settings: (.*) -->/g)].map(([, name]) => name)).toEqual(
    expect.arrayContaining(Object.keys(tables)),
  )
  expect(written).not.toMatch(/^\|.*\bundefined\b/m)
  await expect(written).toMatchFileSnapshot(pagePath)
})
