import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const api = 'https://api.test/orders'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway({
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url } },
      routes: [
        { id: 'read', path: '/orders/**', methods: ['GET'], audience: [api], scopes: ['read'], upstream: 'api' },
        { id: 'write', path: '/orders/**', methods: ['PUT'], audience: [api], scopes: ['write'], upstream: 'api' },
        { id: 'root', path: '/root', audience: ['https://api.test/'], upstream: 'api' },
        { id: 'here', path: '/here', audience: ['https://here.test/x'], upstream: 'api' },
        { id: 'there', path: '/there', audience: ['http://there.test:8080/x'], upstream: 'api' },
        { id: 'name', path: '/name', audience: ['urn:api:name', 'https://api.test/named'], upstream: 'api' },
        { id: 'none', path: '/nameless', audience: ['urn:api:name'], upstream: 'api' },
        { id: 'public', path: '/.well-known/**', auth: 'none', upstream: 'api' },
      ],
    }),
  })
})
afterAll(() => gateway.close())

const documentAt = async (path: string) => {
  const response = await fetch(`${gateway.url}/.well-known/oauth-protected-resource${path}`)
  return { type: response.headers.get('content-type'), body: await response.json() }
}

describe('protected-resource metadata (RFC 9728)', () => {
  test('tell which issuers and scopes an API takes', async () => {
    expect(await documentAt('/orders')).toEqual({
      type: 'application/json',
      body: {
        resource: api,
        authorization_servers: [gateway.issuer.issuer],
        scopes_supported: ['read', 'write'],
        bearer_methods_supported: ['header'],
      },
    })
  })

  test('of an API at the root stand at the bare path', async () => {
    expect((await documentAt('')).body).toMatchObject({ resource: 'https://api.test/' })
  })

  test('of two hosts with the same path are told apart by the host that was asked', async () => {
    const at = async (host: string) => {
      const text = await sendRaw(
        gateway.port,
        `GET /.well-known/oauth-protected-resource/x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      )
      return /"resource":"([^"]*)"/.exec(text)?.[1]
    }
    expect(await at('here.test')).toBe('https://here.test/x')
    expect(await at('there.test:8080')).toBe('http://there.test:8080/x')
    expect(await at('elsewhere.test'), 'neither: an ordinary request').toBe(undefined)
  })

  test('can be read by browsers of any origin, and nothing can be written there', async () => {
    const url = `${gateway.url}/.well-known/oauth-protected-resource/orders`
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, head.headers.get('access-control-allow-origin'), await head.text()]).toEqual([200, '*', ''])
    const preflight = await fetch(url, { method: 'OPTIONS' })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toBe('*')
    gateway.upstream.seen.length = 0
    expect((await fetch(url, { method: 'POST', body: '{}' })).status, 'not ours: goes on to its route').toBe(200)
    expect(gateway.upstream.seen).toHaveLength(1)
  })
})

test('a challenge names the document of the first audience that is a URL', async () => {
  const challenge = async (path: string) => (await fetch(gateway.url + path)).headers.get('www-authenticate')
  const origin = 'https://api.test/.well-known/oauth-protected-resource'
  expect(await challenge('/orders/1')).toBe(`Bearer resource_metadata="${origin}/orders"`)
  expect(await challenge('/root')).toBe(`Bearer resource_metadata="${origin}"`)
  expect(await challenge('/name')).toBe(`Bearer resource_metadata="${origin}/named"`)
  expect(await challenge('/nameless')).toBe('Bearer')
})

test('resourceMetadata: false leaves out both', async () => {
  const silent = await startTestGateway({ config: () => ({ resourceMetadata: false }) })
  try {
    expect((await fetch(`${silent.url}/orders`)).headers.get('www-authenticate')).toBe('Bearer')
    expect((await fetch(`${silent.url}/.well-known/oauth-protected-resource/orders`)).status).toBe(404)
  } finally {
    await silent.close()
  }
})
