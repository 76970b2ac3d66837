import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { haproxyInstalled, nginxInstalled } from '../harness/installed.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Stage } from '../harness/stage.ts'
import type { HaproxySettings } from '../peers/haproxy-gateway.ts'
import type { GatewaySettings } from '../peers/obvious-gateway.ts'
import type { UpstreamSettings } from '../peers/upstream.ts'

/**
 * One request through a gateway whose caches are warm: the same access token (ES256, `at+jwt`, scope `read:orders`)
 * every time, a default policy that has to allow it, and an upstream that answers 1 kB of JSON.
 */
export const gatewayGet: Comparison = {
  name: 'gateway-get',
  title: 'Gateway, warm token + Rego policy, GET, 1 kB answer',
  prepare: (stage) => prepareGateways(stage, (call) => request({ ...call, method: 'GET' })),
}

export const gatewayPost: Comparison = {
  name: 'gateway-post',
  title: 'Gateway, warm token + Rego policy, POST of 2 kB, 1 kB answer',
  prepare: (stage) =>
    prepareGateways(stage, (call) => request({ ...call, method: 'POST', body: 'x'.repeat(postBytes) })),
}

const haproxy = 'HAProxy, jwt_verify'

const gateways = [
  ...(nginxInstalled()
    ? [{ name: 'nginx', file: new URL('../peers/nginx-proxy.ts', import.meta.url), guards: false }]
    : []),
  ...(haproxyInstalled()
    ? [{ name: haproxy, file: new URL('../peers/haproxy-gateway.ts', import.meta.url), guards: true }]
    : []),
  { name: 'bare undici proxy', file: new URL('../peers/bare-proxy.ts', import.meta.url), guards: false },
  { name: 'obvious wiring', file: new URL('../peers/obvious-gateway.ts', import.meta.url), guards: true },
  { name: 'Surrogate gateway', file: new URL('../targets/gateway.ts', import.meta.url), guards: true },
  {
    name: 'Surrogate, no memory',
    file: new URL('../targets/gateway.ts', import.meta.url),
    guards: true,
    extra: { remember: false },
  },
]

const ratios = [
  { of: 'Surrogate gateway', to: 'bare undici proxy', atMost: 1.35 },
  ...(haproxyInstalled() ? [{ of: 'Surrogate gateway', to: haproxy, atMost: 1.15 }] : []),
  { of: 'Surrogate, no memory', to: 'bare undici proxy', atMost: 1.7 },
  { of: 'obvious wiring', to: 'Surrogate gateway', atLeast: 3.5 },
]

const postBytes = 2048
export const audience = 'https://api.example.test/orders'
export const bundle = fileURLToPath(new URL('../../policies/bundle.tar.gz', import.meta.url))

const prepareGateways = async (stage: Stage, wire: (call: WireCall) => string): Promise<Prepared> => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const upstreamSettings: UpstreamSettings = { jwks, postBytes }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, upstreamSettings)

  const upstream = `http://127.0.0.1:${api.port}`
  const sign = (scope: string) => signAccessToken({ privateKey, issuer: upstream, scope })
  const [token, powerless] = await Promise.all([sign('read:orders'), sign('write:orders')])
  const settings: GatewaySettings & HaproxySettings = {
    ...{ upstream, issuer: upstream, audience, bundle },
    ...{ key: jwks.keys[0]!, scope: 'read:orders' },
  }
  const contestants: Contestant[] = []
  for (const { name, file, guards, extra } of gateways) {
    const server = await stage.serve(file, underTest, { ...settings, ...extra })
    const requests = [wire({ port: server.port, token })]
    const preflight = async () => {
      await sendExpecting(server.port, wire({ port: server.port, token: tampered(token) }), 401)
      await sendExpecting(server.port, wire({ port: server.port, token: powerless }), 401, 403)
    }
    contestants.push({
      name,
      server,
      requests: () => requests,
      expected: { status: 200, bodyIncludes: '"sku-9"' },
      ...(guards && { preflight }),
    })
  }
  return { contestants, ratios }
}

type AccessToken = { privateKey: CryptoKey; issuer: string; scope: string }

export const signAccessToken = ({ privateKey, issuer, scope }: AccessToken): Promise<string> =>
  new SignJWT({ scope, client_id: 'bench-client', jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'bench' })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject('user-1')
    .setIssuedAt()
    .setExpirationTime('4h')
    .sign(privateKey)

/** Another subject under the same signature. */
export const tampered = (token: string): string => {
  const [header, payload = '', signature] = token.split('.')
  const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), sub: 'user-2' }
  return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.')
}

type WireCall = { port: number; token: string }
type WireRequest = WireCall & { method: string; body?: string }

export const request = ({ method, port, token, body }: WireRequest): string =>
  [
    `${method} /orders/42?expand=items HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json',
    'accept-language: de',
    'user-agent: surrogate-bench',
    `authorization: Bearer ${token}`,
    ...(body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
    '',
    body ?? '',
  ].join('\r\n')
