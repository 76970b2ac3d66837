import type { GatewaySettings } from '../peers/obvious-gateway.ts'

export type GatewayFileSettings = GatewaySettings & {
  /** Decides for a proxy of this kind, too. */
  dialect?: 'nginx' | 'traefik' | 'envoy'
  /** The issuer's feed of revocations is followed by this client. */
  feedClient?: { id: string; secret: string }
  /** Instead of `upstream`: several, with health checks, ejection and retries. */
  targets?: string[]
  /** Files; the gateway then serves HTTP/1.1 and HTTP/2 over TLS. */
  certificate?: { cert: string; key: string }
  workers?: number
  port?: number
  /** A collector, and the share of requests that it gets a trace of. */
  telemetry?: { otlp: string; sample: string }
  /** Tokens are bound to keys, and each request proves that it has the key. */
  dpop?: 'required'
  /** Tells those whom `issuer` gives a token for `audience`. */
  inspection?: { port: number; audience: string; issuer: string }
  /** Rules as a folder, instead of the bundle. */
  policyFolder?: string
}

/** `gateway.yaml` of the gateways under test: one issuer, one route, one upstream. */
export const gatewayFile = (settings: GatewayFileSettings): object => {
  const { upstream, issuer, audience, bundle, dialect, feedClient, targets, certificate, workers, port = 0 } = settings
  const { telemetry, dpop, inspection, policyFolder } = settings
  return {
    version: 1,
    listen: { port, ...(certificate && { tls: { certificates: [certificate] }, http2: true }) },
    admin: { port: 0 },
    ...(workers !== undefined && { workers }),
    ...(telemetry && { telemetry }),
    ...(dialect && { trustedProxies: ['127.0.0.1'] }),
    ...(dialect && (dialect === 'envoy' ? { extAuthz: { port: 0 } } : { forwardAuth: { dialect } })),
    ...(inspection && { inspection: { ...inspection, issuer: undefined, issuers: [inspection.issuer] } }),
    issuers: [
      { issuer, ...(feedClient && { client: feedClient, revocations: { mode: 'feed' } }) },
      ...(inspection ? [{ issuer: inspection.issuer }] : []),
    ],
    policies: policyFolder === undefined ? { bundle } : { path: policyFolder },
    upstreams: { orders: targets ? balanced(targets) : { url: upstream } },
    routes: [
      {
        id: 'orders',
        path: '/orders/{id}',
        methods: ['GET', 'POST'],
        audience: [audience],
        scopes: ['read:orders'],
        upstream: 'orders',
        ...(inspection && { issuers: [issuer] }),
        ...(dpop && { dpop }),
      },
    ],
  }
}

const balanced = (targets: readonly string[]) => ({
  targets: targets.map((url) => ({ url })),
  balance: 'least-requests',
  health: { path: '/health', interval: '1s' },
  ejection: { consecutiveFailures: 5, for: '30s', maxShare: '50%' },
  retries: { attempts: 2, on: ['connect', 502, 503, 504], budget: '20%' },
})
