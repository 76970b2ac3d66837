import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import type { Comparison, Contestant } from '../harness/comparison.ts'
import type { GatewayFileSettings } from '../harness/gateway-file.ts'
import { nginxInstalled } from '../harness/installed.ts'
import type { Protocol } from '../harness/load-generator.ts'
import { support, underTest } from '../harness/process.ts'
import { sendExpecting } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'
import type { UpstreamSettings } from '../peers/upstream.ts'
import { audience, bundle, request, signAccessToken, tampered } from './gateway.ts'

/** What balancing and more than one process cost a warm GET. */
export const gatewayEdge: Comparison = {
  name: 'gateway-edge',
  title: 'Gateway, warm GET: several targets, several processes',
  prepare: async (stage) => {
    const { upstreams, settings, contestant } = await gatewayWorld(stage)
    const ours = (extra: Partial<GatewayFileSettings> = {}) =>
      stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, { ...settings, ...extra })
    const processes = (workers: number) =>
      stage.serve(new URL('../targets/gateway-process.ts', import.meta.url), underTest, { ...settings, workers })
    return {
      contestants: [
        contestant('one target', await ours()),
        contestant('three targets', await ours({ targets: upstreams })),
        contestant('one process', await processes(1)),
        // As many connections for each process: fewer would mean more wake-ups for a request.
        { ...contestant('two workers', await processes(2)), timesConnections: 2 },
      ],
      ratios: [
        { of: 'three targets', to: 'one target', atMost: 1.05 },
        { of: 'two workers', to: 'one process', atMost: 1.1 },
      ],
    }
  },
}

/** A warm GET over TLS and HTTP/2, kept-alive connections, beside nginx as a plain proxy. */
export const gatewayTls: Comparison = {
  name: 'gateway-tls',
  title: 'Gateway, warm GET over TLS and HTTP/2',
  prepare: async (stage) => {
    const { settings, contestant } = await gatewayWorld(stage)
    const certificate = await selfSigned(stage)
    const ours = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
      ...settings,
      certificate,
    })
    const nginx = nginxInstalled()
      ? await stage.serve(new URL('../peers/nginx-proxy.ts', import.meta.url), underTest, { ...settings, certificate })
      : undefined
    const pair = (protocol: Protocol, shown: string) => [
      ...(nginx ? [contestant(`nginx, ${shown}`, nginx, protocol)] : []),
      contestant(`Surrogate, ${shown}`, ours, protocol),
    ]
    return {
      contestants: [...pair('https', 'TLS'), ...pair('h2', 'HTTP/2')],
      ratios: nginx
        ? [
            { of: 'Surrogate, TLS', to: 'nginx, TLS' },
            { of: 'Surrogate, HTTP/2', to: 'nginx, HTTP/2' },
          ]
        : [],
    }
  },
}

/** An upstream, which is the issuer as well and answers the same at every path, and tokens. */
export const gatewayWorld = async (stage: Stage) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const upstreamSettings: UpstreamSettings = { jwks, postBytes: 0 }
  const { port } = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, upstreamSettings)
  const upstream = `http://127.0.0.1:${port}`
  // One process: several would make it more wake-ups for a request.
  const upstreams = ['/a', '/b', '/c'].map((path) => upstream + path)
  const sign = (scope = 'read:orders') => signAccessToken({ privateKey, issuer: upstream, scope })
  const token = await sign()
  const settings: GatewayFileSettings = { upstream, issuer: upstream, audience, bundle }
  const contestant = (name: string, server: Server, protocol: Protocol = 'http'): Contestant => ({
    name,
    server,
    protocol,
    requests: () => [request({ method: 'GET', port: server.port, token })],
    expected: { status: 200, bodyIncludes: '"sku-9"' },
    ...(protocol === 'http' && {
      preflight: async () => {
        const forged = request({ method: 'GET', port: server.port, token: tampered(token) })
        await sendExpecting(server.port, forged, 401)
      },
    }),
  })
  return { upstreams, settings, sign, contestant }
}

/** By openssl, as files. */
export const selfSigned = async (stage: Stage): Promise<{ cert: string; key: string }> => {
  if (spawnSync('openssl', ['version']).status !== 0) throw new Error('openssl is needed to make a certificate')
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
  stage.onStop(() => rm(folder, { recursive: true }))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { cert, key }
}
