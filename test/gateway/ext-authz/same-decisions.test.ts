import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectExtAuthz, type ExtAuthzClient } from '../../support/ext-authz.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'

/** One table of requests, asked in three ways of one gateway: through it, by forward-auth, and by ext_authz. */

let gateway: TestGateway
let envoy: ExtAuthzClient
let tokens: Record<string, string>

beforeAll(async () => {
  gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'traefik' },
      extAuthz: { port: 0 },
    }),
  })
  envoy = connectExtAuthz(gateway.extAuthzPort)
  const sign = (claims: object) => gateway.issuer.sign({ client_id: 'c1', ...claims })
  const good = await sign({ scope: 'read:orders' })
  tokens = {
    good,
    acting: await sign({ scope: 'read:orders write:orders', act: { sub: 'agent' } }),
    weak: await sign({ scope: 'other' }),
    foreign: await sign({ scope: 'read:orders', aud: 'https://other.test' }),
    expired: await sign({ scope: 'read:orders', exp: 1 }),
    forged: `${good.slice(0, -4)}AAAA`,
  }
})
afterAll(async () => {
  envoy.close()
  await gateway.close()
})

interface Row {
  method?: string
  path: string
  headers?: Record<string, string>
  token?: string
}

/** Status, code and who asks. */
interface Outcome {
  status: number
  code?: string | undefined
  sub?: string | undefined
}

const host = 'api.test'

const send = (path: string, method: string, headers: Record<string, string>) =>
  new Promise<{
    status: number
    headers: Record<string, unknown>
    body: { code?: string; headers?: Record<string, string> }
  }>((resolve, reject) => {
    const outgoing = request({ port: gateway.port, host: '127.0.0.1', path, method, headers }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => {
        text += chunk
      })
      answer.on('end', () =>
        resolve({
          status: answer.statusCode!,
          headers: answer.headers,
          body: text.startsWith('{') ? JSON.parse(text) : {},
        }),
      )
    })
    outgoing.on('error', reject).end()
  })

const ways: Record<string, (row: Required<Omit<Row, 'token'>>) => Promise<Outcome>> = {
  async proxy({ method, path, headers }) {
    const { status, body } = await send(path, method, { host, ...headers })
    return { status, code: body.code, sub: status === 200 ? body.headers?.['x-auth-sub'] : undefined }
  },
  async forwardAuth({ method, path, headers }) {
    const asked = { 'x-forwarded-method': method, 'x-forwarded-uri': path, 'x-forwarded-host': host }
    const answer = await send('/.surrogate/auth', 'GET', { host, ...asked, 'x-forwarded-proto': 'http', ...headers })
    const sub = String(answer.headers['x-auth-sub'] ?? '') || undefined
    return { status: answer.status, code: answer.body.code, sub }
  },
  async extAuthz({ method, path, headers }) {
    const answer = await envoy.check({ method, path, host, headers, scheme: 'http', address: '127.0.0.1' })
    const code = answer.body?.['code'] as string | undefined
    return { status: answer.allowed ? 200 : answer.status!, code, sub: answer.headers['x-auth-sub'] }
  },
}

test.each<Row>([
  { path: '/orders/1', token: 'good' },
  { path: '/orders/1', token: 'acting' },
  { path: '/orders/1', token: 'weak' },
  { path: '/orders/1', token: 'foreign' },
  { path: '/orders/1', token: 'expired' },
  { path: '/orders/1', token: 'forged' },
  { path: '/orders/1' },
  { path: '/orders/1', method: 'DELETE', token: 'good' },
  { path: '/orders/1', method: 'DELETE', token: 'acting' },
  { path: '/orders/1', method: 'HEAD', token: 'good' },
  { path: '/orders/1', method: 'OPTIONS', token: 'good' },
  { path: '/orders/1?a=1&a=2', token: 'good' },
  { path: '/orders/1?access_token=x', token: 'good' },
  { path: '/orders/a%2fb', token: 'good' },
  { path: '/orders/%2e%2e/public/x', token: 'good' },
  { path: '/orders/1;v=2', token: 'good' },
  { path: '/orders//1', token: 'good' },
  { path: '/ORDERS/1', token: 'good' },
  { path: '/public/x' },
  { path: '/public/x', token: 'forged' },
  { path: '/public/x', headers: { 'x-auth-sub': 'root' } },
  { path: '/orders/1', headers: { authorization: 'Basic dTpw' } },
  { path: '/orders/1', headers: { authorization: 'Bearer' } },
  { path: '/nowhere', token: 'good' },
])('$method $path with $token', async ({ method = 'GET', path, headers = {}, token }) => {
  const row = { method, path, headers: { ...headers, ...(token && { authorization: `Bearer ${tokens[token]}` }) } }
  const wanted = await ways['proxy']!(row)
  // The answer to HEAD has no body.
  const shown = (outcome: Outcome) => (method === 'HEAD' ? outcome.status : outcome)
  expect(shown(await ways['forwardAuth']!(row))).toEqual(shown(wanted))
  expect(shown(await ways['extAuthz']!(row))).toEqual(shown(wanted))
})
