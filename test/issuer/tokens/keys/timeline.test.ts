import { randomBytes, randomUUID } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createJwksEndpoint } from '../../../../issuer/protocol/jwks.ts'
import { createAccessTokenMint } from '../../../../issuer/tokens/access-token.ts'
import { createKeyRotation } from '../../../../issuer/tokens/keys/rotation.ts'
import { maxAgeSeconds, pollSeconds, publishSeconds } from '../../../../issuer/tokens/keys/rotation-times.ts'
import type { SigningAlgorithmName } from '../../../../issuer/tokens/keys/signing-algorithms.ts'
import { createSigningKeys, type SigningKeys } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { listen, type RunningServer } from '../../../../platform/http/http-server.ts'
import { createJwksClient, type JwksClient } from '../../../../platform/jwt/jwks-client.ts'
import { parseJwt } from '../../../../platform/jwt/parse.ts'
import { verifyJwt } from '../../../../platform/jwt/verify.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'

/**
 * The promise of a staged rotation: what any instance signs verifies with every copy of the JWKS that may be kept,
 * without asking again. Time is made to pass by moving the rows; instances hear of nothing and poll as late as they
 * may.
 */

const issuer = 'https://issuer.example.test/oidc'
const envelope = createEnvelope({ current: randomBytes(32) })
const step = pollSeconds / 2
const tokenLife = 600

let home: TestDatabase
/** How far the rows were moved, in seconds, since the beginning. */
let moved: number
let startedAt: number
/** Seconds since the beginning, by the rows: those that really went by count too. */
const time = () => moved + (performance.now() - startedAt) / 1000
const opened: { close(delay?: number): Promise<unknown> }[] = []
beforeEach(async () => {
  home = await createTestDatabase()
  moved = 0
  startedAt = performance.now()
})
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close(0)
  await home.close()
})

/** An instance without notifications: its keys and its JWKS endpoint. */
const startInstance = async (): Promise<{ keys: SigningKeys; server: RunningServer }> => {
  const { database } = home
  const now = () => time() * 1000
  const keys = await createSigningKeys({ database, envelope, algorithm: 'ES256', logger: silentLogger, now })
  const handler = createJwksEndpoint({ keys })
  const server = await listen({ name: 'jwks', host: '127.0.0.1', port: 0, setting: 'PORT', handler })
  opened.push(keys, server)
  return { keys, server }
}

const passTo = async (until: number) => {
  const seconds = Math.max(0, until - time())
  moved += seconds
  await home.database.pool.query(
    `UPDATE signing_keys SET created_at = created_at - $1 * interval '1 second', activated_at = activated_at - $1 * interval '1 second',
       retired_at = retired_at - $1 * interval '1 second', expires_at = expires_at - $1 * interval '1 second'`,
    [seconds],
  )
}

const mintAt = (keys: SigningKeys) =>
  createAccessTokenMint({ keys, issuer })({
    ...{ jti: randomUUID(), sub: 'user', aud: 'https://api.example.test', clientId: 'client', scope: '' },
    ...{ iat: Math.floor(time()), exp: Math.floor(time()) + tokenLife },
  })

interface Copy {
  client: JwksClient
  fetchedAt: number
  until: number
}
/** What a gateway holds that fetches now. */
const fetchCopy = async ({ server }: { server: RunningServer }): Promise<Copy> => {
  const fetchedAt = time()
  const response = await fetch(server.url, { method: 'HEAD' })
  const maxAge = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control')!)![1])
  const client = createJwksClient({ issuer, jwksUri: server.url, logger: silentLogger })
  opened.push(client)
  await client.ready
  return { client, fetchedAt, until: fetchedAt + maxAge }
}

const verify = (token: string, { client }: Copy) => {
  const jwt = parseJwt(token)
  // From memory only: nothing is fetched for an unknown key.
  return verifyJwt(jwt, client.peek(jwt.header.kid!)!, {
    ...{ issuer, audience: undefined, algorithms: ['ES256', 'EdDSA', 'RS256'], typ: ['at+jwt'] },
    ...{ clockSkewSeconds: 0, now: new Date(time() * 1000) },
  })
}

test('a token signed before, during or after a rotation verifies with every copy of the JWKS that may be kept', async () => {
  const [first, second] = [await startInstance(), await startInstance()]
  await home.database.pool.query('UPDATE signing_keys SET token_life = $1', [tokenLife])
  const rotation = createKeyRotation({ envelope })
  const rotateAt = new Map<number, SigningAlgorithmName>([
    [100, 'EdDSA'],
    [500, 'RS256'],
  ])
  /** By `kid`: when the last token expires that it signed. */
  const needed = new Map<string, number>()
  let copies: Copy[] = []
  const signedWith = new Set<string>()
  const published: number[] = []

  const end = 500 + publishSeconds + tokenLife + publishSeconds + 4 * pollSeconds
  for (let count = 0; count * step < end; count++) {
    await passTo(count * step)
    // The worst case: the copies that are kept longest were fetched just before the instance reads the keys again.
    copies.push(await fetchCopy(first), await fetchCopy(second))
    const algorithm = rotateAt.get(count * step)
    if (algorithm) {
      await home.database.transaction((query) => rotation.rotate(query, { algorithm, by: 'command' }))
      await home.database.pool.query('UPDATE signing_keys SET token_life = $1', [tokenLife])
    }
    // One polls on even steps, the other on odd ones: they never agree on the moment of a change.
    await [first, second][count % 2]!.keys.reload()

    const now = time()
    copies = copies.filter(({ until }) => until >= now)
    for (const { keys } of [first, second]) {
      const token = mintAt(keys)
      needed.set(keys.active().kid, now + tokenLife)
      signedWith.add(keys.active().algorithm)
      const unknown = copies.filter(({ client }) => !client.peek(keys.active().kid))
      expect({ count, signed: unknown.map(({ fetchedAt }) => fetchedAt) }).toEqual({ count, signed: [] })
      for (const copy of copies) expect(verify(token, copy).sub).toBe('user')
    }
    for (const [kid, until] of needed) {
      if (until < now) continue
      const unknown = copies.filter(({ client }) => !client.peek(kid))
      expect({ count, lives: unknown.map(({ fetchedAt }) => fetchedAt) }).toEqual({ count, lives: [] })
    }
    published.push(JSON.parse(first.keys.jwks().body).keys.length)
  }

  expect([...signedWith]).toEqual(['ES256', 'EdDSA', 'RS256'])
  // Old keys were dropped in the end, and not before.
  // One is for ID tokens.
  expect(Math.max(...published)).toBe(4)
  expect(published.at(-1)).toBe(2)
}, 120_000)

test('an instance that cannot ask the database says so in what it publishes', async () => {
  const { keys, server } = await startInstance()
  const kept = async () => (await fetch(server.url)).headers.get('cache-control')
  expect(await kept()).toBe(`public, max-age=${maxAgeSeconds}`)
  await passTo(pollSeconds)
  expect(await kept()).toBe(`public, max-age=${maxAgeSeconds}`)
  await passTo(publishSeconds - 100)
  expect(Number(/\d+/.exec((await kept())!)![0])).toBeLessThanOrEqual(100)
  await passTo(3600)
  expect(await kept()).toBe('public, max-age=0')
  await keys.reload()
  expect(await kept()).toBe(`public, max-age=${maxAgeSeconds}`)
})
