import { readFile } from 'node:fs/promises'
import { Agent, createServer } from 'node:http'
import { loadPolicy } from '@open-policy-agent/opa-wasm'
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import { readBundle } from '../../policies/engine/bundle.ts'
import { listen, runServer } from '../harness/server.ts'

/**
 * The obvious wiring, as one would put it together from the well-known packages in an afternoon: express,
 * http-proxy-middleware with a keep-alive agent, jose with a remote key set, and the same Rego policy under OPA's own
 * WASM SDK.
 */
export type GatewaySettings = { upstream: string; issuer: string; audience: string; bundle: string }

runServer(async ({ upstream, issuer, audience, bundle }: GatewaySettings) => {
  const app = express()
  app.disable('x-powered-by')
  app.use('/orders', authenticate({ issuer, audience }), await authorize(bundle, audience), proxy(upstream))
  return listen(createServer(app))
})

const authenticate = ({ issuer, audience }: { issuer: string; audience: string }): RequestHandler => {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  return async (request, response, next) => {
    const [scheme, token] = request.headers.authorization?.split(' ') ?? []
    if (scheme?.toLowerCase() !== 'bearer' || !token) {
      response.status(401).set('www-authenticate', 'Bearer').end()
      return
    }
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience, typ: 'at+jwt', algorithms: ['ES256'] })
      response.locals['token'] = payload
      next()
    } catch {
      response.status(401).set('www-authenticate', 'Bearer error="invalid_token"').end()
    }
  }
}

const authorize = async (bundlePath: string, audience: string) => {
  const bundle = readBundle(await readFile(bundlePath))
  const policy = await loadPolicy(bundle.wasm)
  policy.setData(bundle.data as object)
  return (request: Request, response: Response, next: NextFunction): void => {
    const input = policyInput(request, response.locals['token'], audience)
    const [answer] = policy.evaluate(input, 'surrogate/gateway/decision')
    const decision = answer?.result
    if (decision === true || decision?.allow === true) next()
    else response.status(403).json(decision ?? {})
  }
}

const policyInput = (request: Request, claims: JWTPayload, audience: string) => {
  const path = request.originalUrl.split('?')[0] ?? '/'
  const segments = path.split('/').slice(1)
  const scopes = String(claims['scope'] ?? '').split(' ')
  return {
    version: 1,
    request: {
      id: crypto.randomUUID(),
      method: request.method,
      scheme: request.protocol,
      host: request.headers.host,
      path,
      segments,
      query: Object.fromEntries(Object.entries(request.query).map(([name, value]) => [name, [value].flat()])),
      headers: {},
      clientIp: request.ip,
    },
    route: {
      id: 'orders',
      params: { id: segments[1] },
      scopes: ['read:orders'],
      audience: [audience],
      impersonation: 'allow',
      context: {},
    },
    token: { iss: claims.iss, aud: [claims.aud], scopes, jti: claims.jti, iat: claims.iat, exp: claims.exp, claims },
    subject: { id: claims.sub },
    client: { id: claims['client_id'] },
    now: Math.floor(Date.now() / 1000),
  }
}

const proxy = (upstream: string): RequestHandler =>
  createProxyMiddleware({
    target: `${upstream}/orders`,
    agent: new Agent({ keepAlive: true, maxSockets: 128 }),
    on: {
      proxyReq: (proxied, request: Request) => {
        const token: JWTPayload | undefined = request.res?.locals['token']
        proxied.setHeader('x-auth-sub', encodeURIComponent(token?.sub ?? ''))
        proxied.setHeader('x-auth-scope', encodeURIComponent(String(token?.['scope'] ?? '')))
      },
    },
  })
