import { BlockList, isIP } from 'node:net'
import { isPlainHttp } from '../../platform/http/plain-http.ts'
import { type GatewayFile, insecureNames } from './settings/file.ts'
import { addressesOf } from './settings/targets.ts'

/**
 * Settings that weaken what the gateway promises. Each is refused unless `allowInsecure` names it, so that nobody gets
 * one by accident and a reviewer of the file sees what was decided. A row finds the places where its setting is used.
 */
interface InsecureSetting {
  /** For whoever is refused: what it would mean. */
  because: string
  find(file: GatewayFile): PropertyKey[][]
}

const insecure: Record<(typeof insecureNames)[number], InsecureSetting> = {
  'http-issuer': {
    because:
      'keys, revocations and client secrets would travel in clear text, and whoever changes the keys on the way makes tokens',
    find: ({ issuers }) =>
      issuers.flatMap(({ jwksUri, tokenEndpoint, revocations, introspection, issuer, client }, index) => {
        const own = ['issuers', index]
        const used: [string | undefined, PropertyKey[]][] = [
          // With `jwksUri` the issuer's name is not asked, and may be any address.
          [jwksUri ?? issuer, [...own, jwksUri === undefined ? 'issuer' : 'jwksUri']],
          [tokenEndpoint, [...own, 'tokenEndpoint']],
          [
            revocations?.mode === 'feed' && client ? (revocations.url ?? issuer) : undefined,
            revocationsPath(own, revocations),
          ],
          [
            introspection && (introspection.url ?? issuer),
            [...own, ...(introspection?.url === undefined ? ['issuer'] : ['introspection', 'url'])],
          ],
        ]
        return unique(used.flatMap(([url, path]) => (isPlainHttp(url) ? [path] : [])))
      }),
  },
  'http-upstream': {
    because: 'tokens and identities would travel in clear text',
    find: ({ upstreams }) =>
      Object.entries(upstreams).flatMap(([name, settings]) =>
        addressesOf(settings).flatMap(({ url, path }) => (isPlainHttp(url) ? [['upstreams', name, ...path]] : [])),
      ),
  },
  'http-log': {
    because: 'who did what would travel in clear text',
    find: (file) =>
      (['decisionLog', 'accessLog'] as const).flatMap((name) => (isPlainHttp(file[name]?.to) ? [[name, 'to']] : [])),
  },
  'http-telemetry': {
    because: 'what is asked for, and the credentials of the collector, would travel in clear text',
    find: ({ telemetry }) => (isPlainHttp(telemetry?.otlp) ? [['telemetry', 'otlp']] : []),
  },
  'http-inspection': {
    because: 'tokens that inspect, and who does what, would travel in clear text',
    find: ({ inspection }) =>
      inspection && !inspection.tls && !isLoopback(inspection.host) ? [['inspection', 'host']] : [],
  },
  'no-revocations': {
    because:
      'revoked tokens would be good until they expire; for an issuer with a client, set revocations: { mode: feed }',
    find: ({ issuers }) =>
      issuers.flatMap(({ client, revocations }, index) =>
        client && revocations?.mode !== 'feed' ? [['issuers', index, 'revocations']] : [],
      ),
  },
  'serve-when-stale': {
    because: 'revoked tokens would be good for as long as the feed is silent',
    find: ({ issuers }) =>
      issuers.flatMap(({ revocations }, index) =>
        revocations?.whenStale === 'serve' ? [['issuers', index, 'revocations', 'whenStale']] : [],
      ),
  },
  'trust-everybody': {
    because: 'every client could say what its address, host and scheme are',
    find: ({ trustedProxies }) =>
      trustedProxies.some(isHuge)
        ? trustedProxies.flatMap((network, index) => (isHuge(network) ? [['trustedProxies', index]] : []))
        : areHugeTogether(trustedProxies)
          ? [['trustedProxies']]
          : [],
  },
  'public-by-default': {
    because: 'whatever no other route names would be open to everybody; name the public paths instead',
    find: ({ routes }) =>
      routes.flatMap(({ auth, path }, index) => (auth === 'none' && path === '/**' ? [['routes', index, 'auth']] : [])),
  },
  'plaintext-ext-authz': {
    because: 'tokens and bodies of the requests that Envoy asks about would travel in clear text; set tls',
    find: ({ extAuthz }) => (extAuthz && !extAuthz.tls && !isLoopback(extAuthz.host) ? [['extAuthz', 'host']] : []),
  },
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)

/**
 * Of a network: the version it counts as, and its size as a power of two. Mapped addresses (::ffff:0:0/96 is all of
 * IPv4) are IPv4.
 */
const extentOf = (network: string): { version: 4 | 6; bits: number } => {
  const [address, prefix] = network.split('/') as [string, string?]
  if (isIP(address) === 4) return { version: 4, bits: 32 - Number(prefix ?? 32) }
  const bits = 128 - Number(prefix ?? 128)
  return mapped.check(address, 'ipv6') ? { version: 4, bits } : { version: 6, bits }
}
const mapped = new BlockList()
mapped.addSubnet('::', 80, 'ipv6')

/** The largest networks that are somebody's own are 10.0.0.0/8 and fc00::/7. */
const largestOwn = { 4: 24, 6: 121 } as const

const isHuge = (network: string): boolean => {
  const { version, bits } = extentOf(network)
  return bits > largestOwn[version]
}

/** Whether networks together are larger than four of the largest, however they are cut into pieces. */
const areHugeTogether = (networks: readonly string[]): boolean =>
  ([4, 6] as const).some((version) => {
    const sizes = networks.map(extentOf).filter((extent) => extent.version === version)
    return sizes.reduce((sum, { bits }) => sum + 2 ** bits, 0) > 2 ** (largestOwn[version] + 2)
  })

/** Insecure settings that are used and not allowed, with their paths. */
export const insecureSettings = (file: GatewayFile): { path: PropertyKey[]; message: string }[] =>
  insecureNames
    .filter((name) => !file.allowInsecure.includes(name))
    .flatMap((name) => {
      const { because, find } = insecure[name]
      return find(file).map((path) => ({
        path,
        message: `insecure: ${because} (if it is meant: allowInsecure: [${name}])`,
      }))
    })

const revocationsPath = (issuer: PropertyKey[], revocations: GatewayFile['issuers'][number]['revocations']) =>
  revocations?.url === undefined ? [...issuer, 'issuer'] : [...issuer, 'revocations', 'url']

const unique = (paths: PropertyKey[][]): PropertyKey[][] => [
  ...new Map(paths.map((path) => [path.join(' '), path])).values(),
]
