import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { freePort } from './free-port.ts'
import { orders, startTestGateway } from './gateway.ts'

/** Where the parts of one set-up listen, on 127.0.0.1. */
export interface Ports {
  proxy: number
  gateway: number
  upstream: number
}

/**
 * The configuration of a proxy that the page for operators shows, word for word but for its addresses, each of which
 * stands there once.
 */
export const documented = async (
  language: 'nginx' | 'caddyfile',
  addresses: readonly (readonly [shown: string, ours: string])[],
): Promise<string> => {
  const page = await readFile(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  const [, shown] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)!
  return addresses.reduce((text, [from, to]) => {
    expect(text.split(from), from).toHaveLength(2)
    return text.replace(from, to)
  }, shown!)
}

/**
 * An API behind a proxy that asks a gateway about every request: `read:orders` opens `/orders/**`, any token `/hidden`,
 * whose API must not have it, one with a proof `/bound`, and nothing is needed for `/public/**`.
 */
export const startForwardAuth = async (
  dialect: 'nginx' | 'caddy',
  startProxy: (ports: Ports) => Promise<{ close(): Promise<void> }>,
) => {
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect },
      routes: [
        { id: 'read', path: '/orders/**', methods: ['GET', 'POST'], audience: [orders], scopes: ['read:orders'] },
        { id: 'hidden', path: '/hidden', audience: [orders], forwardAuthorization: false },
        { id: 'bound', path: '/bound', audience: [orders], dpop: 'required' },
        { id: 'public', path: '/public/**', auth: 'none' },
      ],
    }),
  })
  const { upstream } = gateway
  const port = await freePort()
  const proxy = await startProxy({ proxy: port, gateway: gateway.port, upstream: upstream.port }).catch(
    async (error: unknown) => {
      await gateway.close()
      throw error
    },
  )
  const url = `http://127.0.0.1:${port}`
  const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' } })
  return {
    gateway,
    upstream,
    url,
    port,
    /** Of `u1`, for whom `agent` acts. */
    token,
    /** With the token, unless the headers name another. */
    call: (path: string, { headers, ...init }: RequestInit = {}) =>
      fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...headers } }),
    async close() {
      await proxy.close()
      await gateway.close()
    },
  }
}

/** Asks a gateway with the dialect of Traefik about a GET, as a proxy that got it by https. */
export const askForDecision = (
  gateway: { url: string },
  uri: string,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(`${gateway.url}/.surrogate/auth`, {
    headers: {
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': uri,
      'x-forwarded-host': 'api.test',
      'x-forwarded-proto': 'https',
      ...headers,
    },
  })
