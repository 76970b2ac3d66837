import { exportJWK, generateKeyPair } from 'jose'
import { checkOf, connectExtAuthz } from '../../test/support/ext-authz.ts'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Stage } from '../harness/stage.ts'
import type { GatewayTargetSettings } from '../targets/gateway.ts'
import { audience, bundle, signAccessToken, tampered } from './gateway.ts'

/**
 * What a decision costs when another proxy forwards: the question as nginx, Traefik and Envoy ask it, beside the same
 * request sent through the gateway. Caches are warm: one access token (ES256) and the default policy, which has to allow it.
 */
export const forwardAuth: Comparison = {
  name: 'forward-auth',
  title: 'Forward-auth beside proxying, warm token + Rego policy, GET, 1 kB answer when proxied',
  prepare: (stage) => prepare(stage),
}

type Call = { port: number; token: string }

const common = ({ port, token }: Call): string[] => [
  `host: 127.0.0.1:${port}`,
  'accept: application/json',
  'accept-language: de',
  'user-agent: surrogate-bench',
  `authorization: Bearer ${token}`,
]
const request = (lines: readonly string[], body = ''): string => [...lines, '', body].join('\r\n')
const target = '/orders/42?expand=items'

const byEnvoy = 'asked by Envoy'
const ways: {
  name: string
  dialect?: 'nginx' | 'traefik' | 'envoy'
  wire: (call: Call) => string
  expected: Contestant['expected']
}[] = [
  {
    name: 'proxied',
    wire: (call) => request([`GET ${target} HTTP/1.1`, ...common(call)]),
    expected: { status: 200, bodyIncludes: '"sku-9"' },
  },
  {
    name: 'asked by nginx',
    dialect: 'nginx',
    wire: (call) =>
      request([
        'GET /.surrogate/auth HTTP/1.1',
        ...common(call),
        'x-original-method: GET',
        `x-original-uri: ${target}`,
        'x-forwarded-proto: https',
        'x-forwarded-for: 203.0.113.9',
        'x-request-id: 0123456789abcdef0123456789abcdef',
      ]),
    expected: { status: 200, bodyIncludes: '' },
  },
  {
    name: 'asked by Traefik',
    dialect: 'traefik',
    wire: (call) =>
      request([
        'GET /.surrogate/auth HTTP/1.1',
        ...common(call),
        'x-forwarded-method: GET',
        `x-forwarded-uri: ${target}`,
        'x-forwarded-host: api.example.test',
        'x-forwarded-proto: https',
        'x-forwarded-for: 203.0.113.9',
      ]),
    expected: { status: 200, bodyIncludes: '' },
  },
  {
    name: byEnvoy,
    dialect: 'envoy',
    wire: ({ port, token }) => checkCall(port, token),
    // Of a yes only.
    expected: { status: 200, bodyIncludes: 'x-auth-sub' },
  },
]

/** The check as Envoy sends it about that request: the same fields, and what Envoy tells of the connection. */
const check = (token: string) => ({
  path: target,
  host: '127.0.0.1',
  headers: {
    accept: 'application/json',
    'accept-language': 'de',
    'user-agent': 'surrogate-bench',
    authorization: `Bearer ${token}`,
    'x-request-id': '0123456789abcdef0123456789abcdef',
  },
  attributes: { destination: { address: { socketAddress: { address: '10.0.0.7', portValue: 8443 } } } },
})

const checkCall = (port: number, token: string): string => {
  const envoy = connectExtAuthz(port)
  const message: Buffer = envoy.definition.requestSerialize(checkOf(check(token)))
  envoy.close()
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  const lines = [
    `POST ${envoy.definition.path} HTTP/2`,
    ...[`host: 127.0.0.1:${port}`, 'content-type: application/grpc', 'te: trailers', 'grpc-timeout: 200m'],
  ]
  return request(lines, Buffer.concat([prefix, message]).toString('latin1'))
}

const ratios = [
  { of: 'asked by nginx', to: 'proxied', atMost: 0.75 },
  { of: 'asked by Traefik', to: 'proxied', atMost: 0.75 },
  { of: byEnvoy, to: 'asked by nginx', atMost: 2 },
]

const prepare = async (stage: Stage): Promise<Prepared> => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, { jwks, postBytes: 0 })
  const upstream = `http://127.0.0.1:${api.port}`
  const sign = (scope: string) => signAccessToken({ privateKey, issuer: upstream, scope })
  const [token, powerless] = await Promise.all([sign('read:orders'), sign('write:orders')])
  const contestants: Contestant[] = []
  for (const { name, dialect, wire, expected } of ways) {
    const settings: GatewayTargetSettings = {
      upstream,
      issuer: upstream,
      audience,
      bundle,
      ...(dialect && { dialect }),
    }
    const server = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, settings)
    const { port } = server
    const bad = [tampered(token), powerless]
    const preflight = async () => {
      if (dialect === 'envoy') return envoyIsDenied(port, bad)
      for (const credential of bad) await sendExpecting(port, wire({ port, token: credential }), 401)
    }
    contestants.push({
      ...{ name, server, requests: () => [wire({ port, token })], expected, preflight },
      // As of an Envoy with two threads: each has one connection, with all of its calls on it.
      ...(dialect === 'envoy' && { protocol: 'h2c' as const, streams: 8 }),
    })
  }
  return { contestants, ratios }
}

const envoyIsDenied = async (port: number, tokens: readonly string[]): Promise<void> => {
  const envoy = connectExtAuthz(port)
  for (const token of tokens) {
    const { allowed, status } = await envoy.check(check(token))
    if (allowed || status !== 401) throw new Error(`Envoy is told ${status} about a token that is not good`)
  }
  envoy.close()
}
