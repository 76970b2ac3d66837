import { createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { haproxyInstalled } from '../harness/installed.ts'
import { jwtSigner } from '../harness/jwt-signer.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Stage } from '../harness/stage.ts'
import type { BareProxySettings } from '../peers/bare-proxy.ts'
import type { HaproxySettings } from '../peers/haproxy-gateway.ts'
import type { UpstreamSettings } from '../peers/upstream.ts'
import { audience, bundle, request, tampered } from './gateway.ts'

/**
 * Tokens that the gateway has never seen, each used once: every request has a signature to check. The bar is one bare
 * `crypto.verify` and 1.6 times the bare proxy; since the second contestant is that proxy with that call, (verify + 1 ×
 * proxy) + 0.6 × proxy.
 */
export const gatewayCold: Comparison = {
  name: 'gateway-cold',
  title: 'Gateway, every token seen once (ES256) + Rego policy, GET, 1 kB answer',
  prepare: (stage) => prepare(stage),
}

const [bare, verifying, ours, haproxy] = [
  'bare undici proxy',
  'bare proxy + crypto.verify',
  'Surrogate gateway, cold',
  'HAProxy, jwt_verify',
] as const

const prepare = async (stage: Stage): Promise<Prepared> => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicJwk = createPublicKey(privateKey).export({ format: 'jwk' })
  const jwks = { keys: [{ ...publicJwk, kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const upstreamSettings: UpstreamSettings = { jwks, postBytes: 0 }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, upstreamSettings)
  const upstream = `http://127.0.0.1:${api.port}`
  const newToken = tokens({ issuer: upstream, privateKey })

  const proxy = (settings: Omit<BareProxySettings, 'upstream'> = {}) =>
    stage.serve(new URL('../peers/bare-proxy.ts', import.meta.url), underTest, { upstream, ...settings })
  const gateway = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
    upstream,
    issuer: upstream,
    audience,
    bundle,
  })
  const contestant = (name: string, server: Contestant['server']): Contestant => ({
    name,
    server,
    once: true,
    requests: (count) =>
      Array.from({ length: count }, () => request({ method: 'GET', port: server.port, token: newToken() })),
    expected: { status: 200, bodyIncludes: '"sku-9"' },
  })
  const refusesTampered = (server: Contestant['server']) => async () => {
    await sendExpecting(server.port, request({ method: 'GET', port: server.port, token: tampered(newToken()) }), 401)
  }
  const beside = async (): Promise<Contestant[]> => {
    if (!haproxyInstalled()) return []
    const settings: HaproxySettings = { upstream, issuer: upstream, audience, key: publicJwk, scope: 'read:orders' }
    const server = await stage.serve(new URL('../peers/haproxy-gateway.ts', import.meta.url), underTest, settings)
    return [{ ...contestant(haproxy, server), preflight: refusesTampered(server) }]
  }
  const withVerify = await proxy({ verifyWith: publicJwk as JsonWebKey })
  return {
    contestants: [
      contestant(bare, await proxy()),
      { ...contestant(verifying, withVerify), preflight: refusesTampered(withVerify) },
      ...(await beside()),
      { ...contestant(ours, gateway), preflight: refusesTampered(gateway) },
    ],
    ratios: [
      { of: ours, to: verifying, plus: [{ times: 0.6, of: bare }], atMost: 1 },
      ...(haproxyInstalled() ? [{ of: ours, to: haproxy }] : []),
    ],
  }
}

const tokens = ({ issuer, privateKey }: { issuer: string; privateKey: KeyObject }) => {
  const sign = jwtSigner(privateKey, { typ: 'at+jwt', kid: 'bench' })
  return (): string => {
    const iat = Math.floor(Date.now() / 1000)
    return sign({
      ...{ iss: issuer, aud: audience, sub: 'user-1', scope: 'read:orders', client_id: 'bench-client' },
      ...{ jti: randomUUID(), iat, exp: iat + 14_400 },
    })
  }
}
