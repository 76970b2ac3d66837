import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, exportJWK, generateKeyPair, type JWK, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { readIdentityKeys } from '../../../gateway/upstream/identity-assertion.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'

let folder: string
const running: TestGateway[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'identity-'))
})
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.close()
})
afterAll(() => rm(folder, { recursive: true }))

const newKey = async (kid?: string): Promise<JWK> => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), ...(kid !== undefined && { kid }) }
}

const keyFile = async (content: unknown): Promise<string> => {
  const file = join(folder, `${crypto.randomUUID()}.json`)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const start = async ({ keys, now }: { keys: unknown; now?: () => Date }): Promise<TestGateway> => {
  const file = await keyFile(keys)
  const gateway = await startTestGateway({
    ...(now && { now }),
    config: ({ upstream }) => ({
      identity: { issuer: 'https://gateway.test', keyFile: file },
      upstreams: {
        api: { url: upstream.url, identityAudience: 'https://orders.internal' },
        old: { url: upstream.url },
      },
      routes: [
        { id: 'orders', path: '/orders/**', audience: [orders], upstream: 'api' },
        { id: 'old', path: '/old', audience: [orders], upstream: 'old' },
        { id: 'public', path: '/public', auth: 'none', upstream: 'api' },
      ],
    }),
  })
  running.push(gateway)
  return gateway
}

const assertionOf = async (gateway: TestGateway, path: string, init?: Parameters<TestGateway['call']>[1]) => {
  gateway.upstream.seen.length = 0
  expect((await gateway.call(path, init)).status).toBe(200)
  return gateway.upstream.seen[0]!.headers['x-auth-assertion']
}

const jwksOf = (gateway: TestGateway) => new URL(`${gateway.url}/.well-known/surrogate/jwks.json`)

describe('the identity JWT', () => {
  test('tells the upstream both identities, and verifies with the published keys', async () => {
    const gateway = await start({ keys: await newKey('k1') })
    const token = await gateway.issuer.sign({
      sub: 'u1',
      act: { sub: 's1', act: { sub: 's0' } },
      scope: 'read:orders',
      client_id: 'c1',
      sid: 'session-1',
      organization_id: 'org-1',
    })
    const assertion = await assertionOf(gateway, '/orders/1', { token })

    const { payload, protectedHeader } = await jwtVerify(assertion!, createRemoteJWKSet(jwksOf(gateway)), {
      issuer: 'https://gateway.test',
      audience: 'https://orders.internal',
      typ: 'surrogate-identity+jwt',
      algorithms: ['ES256'],
    })
    const { iat, exp, jti, ...claims } = payload
    expect(claims).toEqual({
      iss: 'https://gateway.test',
      aud: 'https://orders.internal',
      sub: 'u1',
      act: { sub: 's1', act: { sub: 's0' } },
      scope: 'read:orders',
      client_id: 'c1',
      sid: 'session-1',
      organization_id: 'org-1',
      route: 'orders',
    })
    expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'surrogate-identity+jwt', kid: 'k1' })
    expect(exp! - iat!).toBe(60)
    expect(jti).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('is another one for every request', async () => {
    const gateway = await start({ keys: await newKey() })
    const token = await gateway.issuer.sign({ scope: '' })
    const one = await assertionOf(gateway, '/orders/1', { token })
    const other = await assertionOf(gateway, '/orders/1', { token })
    expect(decodeJwt(one!).jti).not.toBe(decodeJwt(other!).jti)
  })

  test('never outlives the token', async () => {
    const gateway = await start({ keys: await newKey() })
    const exp = Math.floor(Date.now() / 1000) + 10
    const assertion = await assertionOf(gateway, '/orders/1', { token: await gateway.issuer.sign({ exp }) })
    expect(decodeJwt(assertion!).exp).toBe(exp)
  })

  test('is not made for other upstreams, nor where nobody is known, and never passed on from a client', async () => {
    const gateway = await start({ keys: await newKey() })
    for (const name of ['x-auth-assertion', 'X_Auth_Assertion']) {
      for (const path of ['/old', '/public']) {
        await assertionOf(gateway, path, {
          headers: { [name]: 'forged', authorization: `Bearer ${await gateway.issuer.sign()}` },
        })
        const names = gateway.upstream.seen[0]!.rawHeaders.filter((_, index) => index % 2 === 0)
        expect(names.filter((one) => /auth.assertion/i.test(one))).toEqual([])
      }
    }
  })

  test('is no access token: the gateway refuses it', async () => {
    const gateway = await start({ keys: await newKey() })
    const assertion = await assertionOf(gateway, '/orders/1')
    expect((await gateway.call('/orders/1', { token: assertion! })).status).toBe(401)
  })
})

describe('the keys', () => {
  test('of a set: the first one signs, all are published, none with its private part', async () => {
    const [next, last] = [await newKey('next'), await newKey('last')]
    const gateway = await start({ keys: { keys: [next, last] } })
    const document = (await (await fetch(jwksOf(gateway))).json()) as { keys: JWK[] }
    const published = ({ kty, crv, x, y, kid }: JWK) => ({ kty, crv, x, y, kid, alg: 'ES256', use: 'sig' })
    expect(document).toEqual({ keys: [published(next), published(last)] })
    const assertion = await assertionOf(gateway, '/orders/1')
    const { protectedHeader } = await jwtVerify(assertion!, createLocalJWKSet({ keys: [published(next)] }))
    expect(protectedHeader.kid).toBe('next')
  })

  test('without kid are named by their thumbprint', async () => {
    const gateway = await start({ keys: await newKey() })
    const { keys } = (await (await fetch(jwksOf(gateway))).json()) as { keys: JWK[] }
    expect(keys[0]!.kid).toMatch(/^[\w-]{43}$/)
  })

  test.each<[string, () => Promise<unknown>]>([
    ['no JSON', async () => 'nothing'],
    ['a public key', async () => ({ ...(await newKey()), d: undefined })],
    ['a key of another curve', async () => ({ ...(await newKey()), crv: 'P-384' })],
    ['a point that is not on the curve', async () => ({ ...(await newKey()), x: (await newKey()).x })],
    ['an empty set', async () => ({ keys: [] })],
    ['two keys of one name', async () => ({ keys: [await newKey('a'), await newKey('a')] })],
  ])('%s is refused at the start, without a word of its content', async (_, content) => {
    const file = await keyFile(await content())
    await expect(readIdentityKeys(file)).rejects.toMatchObject({
      name: 'StartupError',
      message: `The key file of the gateway's identity is not usable: ${file}`,
      cause: undefined,
    })
  })

  test('that cannot be read are named', async () => {
    await expect(readIdentityKeys(join(folder, 'missing.json'))).rejects.toThrow(/cannot be read: .*missing\.json/)
  })
})
