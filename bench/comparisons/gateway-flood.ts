import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import type { Load } from '../harness/load-generator.ts'
import { support, underTest } from '../harness/process.ts'
import type { Stage } from '../harness/stage.ts'
import { audience, bundle, request, signAccessToken } from './gateway.ts'

/**
 * What other clients notice while one sends tokens of keys that nobody publishes, as fast as it can: each could make a
 * careless gateway ask the issuer. It sends its next request when it has the answer to the last one, on each of its
 * connections. Good requests come one after the other on a few connections that do not saturate the process.
 */
export const gatewayFlood: Comparison = {
  name: 'gateway-flood',
  fixedConnections: 2,
  title: 'Gateway, latency of good requests alone and beside a client with tokens of unknown keys',
  prepare: (stage) => prepare(stage),
}

/** More connections at full speed would measure the load generator, with which they share a processor. */
const neighbourConnections = 1
const floodConnections = 32

const prepare = async (stage: Stage): Promise<Prepared> => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, { jwks, postBytes: 0 })
  const upstream = `http://127.0.0.1:${api.port}`
  const server = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
    upstream,
    issuer: upstream,
    audience,
    bundle,
  })
  const { port } = server
  const token = await signAccessToken({ privateKey, issuer: upstream, scope: 'read:orders' })
  const { process: attacker } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const bad = await Promise.all(
    Array.from({ length: 2_000 }, async () =>
      request({ method: 'GET', port, token: await unknownKeyToken(privateKey, upstream) }),
    ),
  )
  const flood = (seconds: number) =>
    attacker.call('run', {
      ...{ port, connections: floodConnections, seconds, requests: bad, once: false },
      // 401 once the issuer was asked about that very key.
      expected: { status: [401, 503], bodyIncludes: '"code"' },
    } satisfies Load)
  const neighbour = (seconds: number) =>
    attacker.call('run', {
      ...{
        port,
        connections: neighbourConnections,
        seconds,
        requests: [request({ method: 'GET', port, token })],
        once: false,
      },
      expected: { status: 200, bodyIncludes: '"sku-9"' },
    } satisfies Load)
  const contestant: Omit<Contestant, 'name'> = {
    server,
    requests: () => [request({ method: 'GET', port, token })],
    expected: { status: 200, bodyIncludes: '"sku-9"' },
  }
  return {
    contestants: [
      { ...contestant, name: 'alone' },
      { ...contestant, name: 'beside a good client', beside: neighbour },
      { ...contestant, name: 'beside unknown keys', beside: flood },
    ],
    ratios: [
      { of: 'beside unknown keys', to: 'alone', cost: 'p99', atMost: 1.3 },
      // What any second client at full speed costs, the process and the machine that all of them share included.
      { of: 'beside a good client', to: 'alone', cost: 'p99' },
      { of: 'beside unknown keys', to: 'beside a good client', cost: 'p99' },
    ],
  }
}

const unknownKeyToken = (privateKey: CryptoKey, issuer: string): Promise<string> =>
  new SignJWT({ scope: 'read:orders' })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: randomUUID() })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject('user-1')
    .setIssuedAt()
    .setExpirationTime('4h')
    .sign(privateKey)
