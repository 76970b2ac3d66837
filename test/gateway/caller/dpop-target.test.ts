import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { namesTarget, targetUriOf } from '../../../gateway/caller/dpop/target-uri.ts'
import { type DpopClient, newDpopClient } from '../../support/dpop.ts'
import { askForDecision } from '../../support/forward-auth.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

/** RFC 9449 §4.3, check 9: `htu` against the address of the request. */

test.each<[string, string, boolean]>([
  ['https://api.test/a', 'https://api.test/a', true],
  ['HTTPS://API.TEST/a', 'https://api.test/a', true],
  ['https://api.test:443/a', 'https://api.test/a', true],
  ['https://api.test./a', 'https://api.test/a', true],
  ['https://api.test/a?x=1', 'https://api.test/a', true],
  ['https://api.test/a#part', 'https://api.test/a', true],
  ['https://api.test/a?x=1#part', 'https://api.test/a', true],
  ['https://api.test/%61', 'https://api.test/a', true],
  ['https://api.test/%c3%bc', 'https://api.test/%C3%BC', true],
  ['https://api.test', 'https://api.test/', true],
  ['https://api.test?x', 'https://api.test/', true],
  ['https://api.test:8443/a', 'https://api.test:8443/a', true],
  ['https://[2001:DB8::1]/a', 'https://[2001:db8::1]/a', true],
  ['https://xn--bcher-kva.test/a', 'https://xn--bcher-kva.test/a', true],

  ['http://api.test/a', 'https://api.test/a', false],
  ['http://api.test:443/a', 'https://api.test/a', false],
  ['https://api.test:80/a', 'https://api.test/a', false],
  ['https://api.test:8443/a', 'https://api.test/a', false],
  ['https://api.test/a/', 'https://api.test/a', false],
  ['https://api.test/a', 'https://api.test/a/', false],
  ['https://api.test/A', 'https://api.test/a', false],
  ['https://api.test/a%2Fb', 'https://api.test/a/b', false],
  ['https://api.test/a%2fb', 'https://api.test/a%2Fb', true],
  ['https://api.test/b/../a', 'https://api.test/a', false],
  ['https://api.test/./a', 'https://api.test/a', false],
  ['https://api.test//a', 'https://api.test/a', false],
  ['https://user@api.test/a', 'https://api.test/a', false],
  ['https://user:secret@api.test/a', 'https://api.test/a', false],
  ['https://api.test@evil.test/a', 'https://api.test/a', false],
  ['https://api.test.evil.test/a', 'https://api.test/a', false],
  ['https://evil.test/https://api.test/a', 'https://api.test/a', false],
  ['https://evil.test?https://api.test/a', 'https://api.test/a', false],
  ['https:\\\\api.test\\a', 'https://api.test/a', false],
  ['https:/api.test/a', 'https://api.test/a', false],
  ['https:api.test/a', 'https://api.test/a', false],
  ['//api.test/a', 'https://api.test/a', false],
  ['/a', 'https://api.test/a', false],
  ['', 'https://api.test/a', false],
  [' https://api.test/a', 'https://api.test/a', false],
  ['https://api.test/a ', 'https://api.test/a', false],
  ['https://api.test/\ta', 'https://api.test/a', false],
  ['https://ap%69.test/a', 'https://api.test/a', false],
  ['https://bücher.test/a', 'https://xn--bcher-kva.test/a', false],
  ['https://api.test/%zz', 'https://api.test/a', false],
  ['wss://api.test/a', 'https://api.test/a', false],
  ['ftp://api.test/a', 'https://api.test/a', false],
])('%s for %s: %s', (htu, target, expected) => {
  expect(namesTarget(htu, target)).toBe(expected)
})

test('what a URL makes of an address that the gateway takes names it', () => {
  const hosts = ['api.test', 'API.test', 'api.test:443', '[2001:db8::1]:8443', '192.0.2.1']
  const paths = ['/', '/a', '/a/', '/%61%2f%c3%bc;v=1', "/a!$&'()*+,=:@~"]
  for (const host of hosts)
    for (const path of paths) {
      const url = new URL(`https://${host}${path}`)
      const request = { scheme: 'https', host: url.host, path: path.replace('%61%2f%c3%bc', 'a%2F%C3%BC') } as const
      expect([url.href, namesTarget(url.href, targetUriOf(request))]).toEqual([url.href, true])
    }
})

describe('the address is the one that the client knows', () => {
  let gateway: TestGateway
  let client: DpopClient
  beforeAll(async () => {
    client = await newDpopClient()
    const route = { audience: [orders], upstream: 'orders', dpop: 'required' }
    gateway = await startTestGateway({
      config: () => ({
        trustedProxies: ['127.0.0.1/32'],
        forwardAuth: { dialect: 'traefik' },
        routes: [
          { ...route, id: 'stripped', path: '/v1/orders/**', stripPrefix: '/v1' },
          { ...route, id: 'spelt', path: '/spelt/{name}', encodedSlash: 'keep' },
        ],
      }),
    })
  })
  afterAll(() => gateway.close())

  const fieldsFor = async (url: string, nonce?: string) => {
    const token = await gateway.issuer.sign({ cnf: client.cnf })
    return client.fields({ url, token, nonce })
  }
  /** The first answer gives the nonce. */
  const statusOf = async (url: string, ask: (fields: Record<string, string>) => Promise<Response>) => {
    const first = await ask(await fieldsFor(url))
    const second = await ask(await fieldsFor(url, first.headers.get('dpop-nonce') ?? undefined))
    return [second.status, ((await second.json().catch(() => ({}))) as { detail?: string }).detail]
  }
  const elsewhere = [401, 'The DPoP proof is for another address.']

  test('before any prefix is stripped', async () => {
    const ask = (headers: Record<string, string>) => fetch(`${gateway.url}/v1/orders/1`, { headers })
    expect(await statusOf(`${gateway.url}/v1/orders/1`, ask)).toEqual([200, undefined])
    expect(await statusOf(`${gateway.url}/orders/1`, ask)).toEqual(elsewhere)
  })

  test('behind a proxy that is trusted: its scheme and host', async () => {
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'API.example.test' }
    const ask = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/v1/orders/1`, { headers: { ...headers, ...proxied } })
    expect(await statusOf('https://api.example.test/v1/orders/1', ask)).toEqual([200, undefined])
    expect(await statusOf('http://api.example.test/v1/orders/1', ask)).toEqual(elsewhere)
    expect(await statusOf(`${gateway.url}/v1/orders/1`, ask)).toEqual(elsewhere)
  })

  test('an encoded slash is part of its segment', async () => {
    const ask = (headers: Record<string, string>) => fetch(`${gateway.url}/spelt/a%2fb`, { headers })
    expect(await statusOf(`${gateway.url}/spelt/a%2Fb`, ask)).toEqual([200, undefined])
    expect(await statusOf(`${gateway.url}/spelt/a/b`, ask)).toEqual(elsewhere)
  })

  test('the Host field is what counts without a proxy', async () => {
    const { authorization, dpop } = await fieldsFor('http://api.test:8080/v1/orders/1')
    const head = `GET /v1/orders/1 HTTP/1.1\r\nHost: api.test:8080\r\nConnection: close\r\n`
    const first = await sendRaw(gateway.port, `${head}Authorization: ${authorization}\r\nDPoP: ${dpop}\r\n\r\n`)
    const nonce = /dpop-nonce: (\S+)/i.exec(first)?.[1]
    const again = await fieldsFor('http://api.test:8080/v1/orders/1', nonce)
    const second = `${head}Authorization: ${again.authorization}\r\nDPoP: ${again.dpop}\r\n\r\n`
    expect(await sendRaw(gateway.port, second)).toMatch(/^HTTP\/1.1 200 /)
  })

  test('of the request that another proxy asks about, with its method', async () => {
    const ask = (headers: Record<string, string>) => askForDecision(gateway, '/v1/orders/1?x=1', headers)
    expect(await statusOf('https://api.test/v1/orders/1', ask)).toEqual([200, undefined])
    expect(await statusOf(`${gateway.url}/.surrogate/auth`, ask)).toEqual(elsewhere)
    const post = (headers: Record<string, string>) =>
      askForDecision(gateway, '/v1/orders/1', { ...headers, 'x-forwarded-method': 'POST' })
    expect(await statusOf('https://api.test/v1/orders/1', post)).toEqual([401, 'The DPoP proof is for another method.'])
  })
})
