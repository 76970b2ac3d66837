import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'

const parse = (members: object) =>
  parseGatewayConfig(
    stringify({
      version: 1,
      allowInsecure: ['no-revocations'],
      issuers: [{ issuer: 'https://id.test', client: { id: 'gateway', secret: 's' } }],
      upstreams: { orders: { url: 'http://localhost:1' } },
      routes: [{ id: 'r', path: '/x', audience: ['https://api.test'], upstream: 'orders', ...members }],
    }),
    { file: 'gateway.yaml', env: {} },
  )

test('dpop is required, accepted, or not there', () => {
  expect(parse({}).routes[0]).not.toHaveProperty('dpop')
  expect(parse({ dpop: 'required' }).routes[0]).toMatchObject({ dpop: 'required' })
  expect(parse({ dpop: 'accepted', acceptPersonalAccessTokens: true }).routes[0]).toMatchObject({ dpop: 'accepted' })
})

test.each<[string, object, string]>([
  ['another word', { dpop: 'optional' }, 'dpop'],
  [
    'a route without tokens',
    { auth: 'none', audience: [], dpop: 'accepted' },
    'a route with auth: none takes no token',
  ],
  ['personal access tokens', { acceptPersonalAccessTokens: true, dpop: 'required' }, 'would refuse every one of them'],
])('%s', (_, members, message) => {
  expect(() => parse(members)).toThrow(message)
})
