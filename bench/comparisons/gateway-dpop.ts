import { createHash, createPublicKey, generateKeyPairSync, hash, type JsonWebKey, randomUUID } from 'node:crypto'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { jwtSigner } from '../harness/jwt-signer.ts'
import { support, underTest } from '../harness/process.ts'
import { send, sendExpecting } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { audience, bundle, request, tampered } from './gateway.ts'

/**
 * Tokens bound to a key of their client (DPoP, RFC 9449), with a new proof for each request. The bar is one bare
 * `crypto.verify` beyond a token that is seen for the first time: what the bare proxy costs more with that call.
 */
export const gatewayDpop: Comparison = {
  name: 'gateway-dpop',
  title: 'Gateway, DPoP: a new ES256 proof for every request + Rego policy, GET, 1 kB answer',
  prepare: (stage) => prepare(stage),
}

const [bare, verifying] = ['bare undici proxy', 'bare proxy + crypto.verify'] as const
const [cold, coldProof, warmProof] = ['cold token', 'cold token + proof', 'warm token + proof'] as const

const prepare = async (stage: Stage): Promise<Prepared> => {
  const ofIssuer = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicJwk = ofIssuer.publicKey.export({ format: 'jwk' })
  const jwks = { keys: [{ ...publicJwk, kid: 'bench', alg: 'ES256', use: 'sig' }] }
  const api = await stage.serve(new URL('../peers/upstream.ts', import.meta.url), support, { jwks, postBytes: 0 })
  const upstream = `http://127.0.0.1:${api.port}`
  const client = newClient()
  const sign = jwtSigner(ofIssuer.privateKey, { typ: 'at+jwt', kid: 'bench' })
  const newToken = (bound = true, scope = 'read:orders') => {
    const iat = Math.floor(Date.now() / 1000)
    return sign({
      ...{ iss: upstream, aud: audience, sub: 'user-1', scope, client_id: 'bench-client' },
      ...{ jti: randomUUID(), iat, exp: iat + 14_400, ...(bound && { cnf: { jkt: client.thumbprint } }) },
    })
  }

  const proxy = (verifyWith?: JsonWebKey) =>
    stage.serve(new URL('../peers/bare-proxy.ts', import.meta.url), underTest, { upstream, verifyWith })
  const gateway = (dpop?: 'required') =>
    stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
      ...{ upstream, issuer: upstream, audience, bundle, dpop },
    })
  const once = (name: string, server: Server, requests: Contestant['requests']): Contestant => ({
    ...{ name, server, once: true, requests },
    expected: { status: 200, bodyIncludes: '"sku-9"' },
  })
  const withToken = (name: string, server: Server): Contestant =>
    once(name, server, (count) =>
      Array.from({ length: count }, () => request({ method: 'GET', port: server.port, token: newToken(false) })),
    )
  const withProof = (name: string, server: Server, nextToken: () => string): Contestant => {
    const { port } = server
    const wire = (token: string, proof: string) => boundRequest(port, token, proof)
    return {
      ...once(name, server, async (count) => {
        const nonce = await nonceOf(port, wire(newToken(), client.proof({ port, token: '' })))
        return Array.from({ length: count }, () => {
          const token = nextToken()
          return wire(token, client.proof({ port, token, nonce }))
        })
      }),
      preflight: async () => {
        const token = newToken()
        const nonce = await nonceOf(port, wire(token, client.proof({ port, token })))
        const proof = client.proof({ port, token, nonce })
        await sendExpecting(port, wire(token, proof), 200)
        const powerless = newToken(true, 'write:orders')
        const refused = [
          wire(token, proof),
          wire(token, tampered(client.proof({ port, token, nonce }))),
          wire(token, newClient().proof({ port, token, nonce })),
          wire(newToken(), client.proof({ port, token, nonce })),
          wire(tampered(token), client.proof({ port, token: tampered(token), nonce })),
          wire(powerless, client.proof({ port, token: powerless, nonce })),
          request({ method: 'GET', port, token }),
        ]
        for (const bad of refused) await sendExpecting(port, bad, 401)
      },
    }
  }
  const guarded = await gateway('required')
  const warm = newToken()
  return {
    contestants: [
      withToken(bare, await proxy()),
      withToken(verifying, await proxy(publicJwk)),
      withToken(cold, await gateway()),
      withProof(coldProof, guarded, () => newToken()),
      withProof(warmProof, guarded, () => warm),
    ],
    ratios: [
      {
        ...{ of: coldProof, to: cold, atMost: 1 },
        plus: [
          { times: 1, of: verifying },
          { times: -1, of: bare },
        ],
      },
      { of: warmProof, to: cold },
    ],
  }
}

/** A client with a key pair. */
const newClient = () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { crv, kty, x, y } = createPublicKey(privateKey).export({ format: 'jwk' })
  const sign = jwtSigner(privateKey, { typ: 'dpop+jwt', jwk: { crv, kty, x, y } })
  return {
    /** RFC 7638. */
    thumbprint: hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url'),
    proof: ({ port, token, nonce }: { port: number; token: string; nonce?: string }) =>
      sign({
        ...{ jti: randomUUID(), htm: 'GET', htu: `http://127.0.0.1:${port}/orders/42` },
        ...{ iat: Math.floor(Date.now() / 1000), ath: createHash('sha256').update(token).digest('base64url'), nonce },
      }),
  }
}

const boundRequest = (port: number, token: string, proof: string): string =>
  request({ method: 'GET', port, token })
    .replace('authorization: Bearer', 'authorization: DPoP')
    .replace('\r\n\r\n', `\r\ndpop: ${proof}\r\n\r\n`)

/** What the gateway wants in proofs: good for two minutes at least. */
const nonceOf = async (port: number, wire: string): Promise<string> => {
  const { head } = await send(port, wire)
  const [, nonce] = /\r\ndpop-nonce: *(\S+)/i.exec(head) ?? []
  if (nonce === undefined) throw new Error(`no nonce for proofs:\n${head}`)
  return nonce
}
