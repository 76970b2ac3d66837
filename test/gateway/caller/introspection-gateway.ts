import { Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { createLogger } from '../../../platform/logger.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type IntrospectionEndpoint, startIntrospectionEndpoint } from '../../support/introspection-endpoint.ts'

/** What is asked about: of the form that issuers give opaque tokens, and like no other. */
export const newToken = (): string => `opaque-${crypto.randomUUID()}`
export const secret = 'secret-of-the-gateway'
export const client = { id: 'gateway', secret }

export interface IntrospectingGateway extends TestGateway {
  endpoint: IntrospectionEndpoint
  /** A token that the endpoint says this of, beside what every good one has; undefined removes a member. */
  issue(members?: object): string
  later(ms: number): void
  /** Everything logged so far. */
  logged(): string
  /** Status and the whole refusal of a GET. */
  ask(
    path: string,
    token: string,
  ): Promise<{ status: number; challenge: string | null; retryAfter: string | null; body: Record<string, unknown> }>
}

/** A gateway that asks about opaque tokens, whose clock can be moved. */
export const startIntrospecting = async (
  options: { issuer?: object; route?: object; config?: object; file?: string } = {},
): Promise<IntrospectingGateway> => {
  const endpoint = await startIntrospectionEndpoint()
  onTestFinished(() => endpoint.close())
  const lines: string[] = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  let ahead = 0
  const route = { audience: [orders], scopes: ['read:orders'], upstream: 'orders', ...options.route }
  const gateway = await startTestGateway({
    logger: createLogger({ name: 'gateway', level: 'trace', destination }),
    now: () => new Date(Date.now() + ahead),
    ...(options.file !== undefined && { file: options.file }),
    config: ({ issuer }) => ({
      issuers: [{ issuer: issuer.issuer, introspection: { url: endpoint.url, client }, ...options.issuer }],
      routes: [
        { ...route, id: 'orders', path: '/orders/**' },
        { ...route, id: 'other', path: '/other', audience: ['https://api.test/other'] },
      ],
      ...options.config,
    }),
  })
  onTestFinished(() => gateway.close())
  return Object.assign(gateway, {
    endpoint,
    issue(members: object = {}) {
      const token = newToken()
      const now = Math.floor((Date.now() + ahead) / 1000)
      endpoint.tokens.set(token, {
        iss: gateway.issuer.issuer,
        sub: 'u1',
        aud: orders,
        client_id: 'c1',
        scope: 'read:orders',
        token_type: 'Bearer',
        iat: now,
        exp: now + 3_600,
        ...members,
      })
      return token
    },
    later(ms: number) {
      ahead += ms
    },
    logged: () => lines.join(''),
    async ask(path: string, token: string) {
      const answer = await gateway.call(path, { token })
      return {
        status: answer.status,
        challenge: answer.headers.get('www-authenticate'),
        retryAfter: answer.headers.get('retry-after'),
        body: (await answer.json()) as Record<string, unknown>,
      }
    },
  })
}
