import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createAccessTokenMint, createAccessTokenVerifier } from '../../../../issuer/tokens/access-token.ts'
import { createSigningKeys } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { request, startTestIssuer } from '../../../support/issuer.ts'

const issuer = 'https://issuer.example.test/oidc'
const key = randomBytes(32)
let home: TestDatabase
const opened: { close(): Promise<void> }[] = []
beforeEach(async () => {
  home = await createTestDatabase()
})
afterEach(async () => {
  for (const keys of opened.splice(0)) await keys.close()
  await home.close()
})

const open = async (
  algorithm: 'ES256' | 'EdDSA' | 'RS256' = 'ES256',
  envelope = createEnvelope({ current: key }),
  now?: () => number,
) => {
  const keys = await createSigningKeys({
    ...{ database: home.database, envelope, algorithm, logger: silentLogger },
    ...(now ? { now } : {}),
  })
  opened.push(keys)
  return keys
}

const claims = {
  ...{ jti: 'j', sub: 'user', aud: 'https://api.example.test', clientId: 'client', scope: '' },
  ...{ iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 60 },
}

test('ten instances that start at once make one key, and all sign with it', async () => {
  const instances = await Promise.all(Array.from({ length: 10 }, () => open()))
  expect(new Set(instances.map((keys) => keys.active().kid)).size).toBe(1)
  expect(new Set(instances.map((keys) => keys.jwks().etag)).size).toBe(1)
})

test('a restart keeps the key', async () => {
  const before = await open()
  expect((await open()).jwks()).toEqual(before.jwks())
})

test('private keys are sealed in the database, and a previous key-encryption key still opens them', async () => {
  const keys = await open()
  const { rows } = await home.database.pool.query('SELECT * FROM signing_keys')
  expect(rows).toHaveLength(1)
  expect(rows[0].private_jwk.includes('"d"')).toBe(false)
  expect(rows[0].public_jwk).not.toHaveProperty('d')
  expect(keys.jwks().body).not.toContain('"d"')

  const next = randomBytes(32)
  await open('ES256', createEnvelope({ current: next, previous: key }))
  await expect(open('ES256', createEnvelope({ current: next }))).rejects.toThrow(/key-encryption key/)
})

test('a sealed key put under another kid does not open', async () => {
  await open()
  await home.database.pool.query(`UPDATE signing_keys SET kid = 'another'`)
  await expect(open()).rejects.toThrow()
})

test('a token of another instance’s newer key is verified after one look into the database, not one a token', async () => {
  let now = 0
  const keys = await open('ES256', undefined, () => now)
  expect(await keys.find('unknown')).toBeUndefined()
  await home.database.pool.query(
    `INSERT INTO signing_keys (kid, algorithm, state, public_jwk, private_jwk)
     SELECT 'newer', algorithm, 'next', public_jwk || '{"kid": "newer"}', private_jwk FROM signing_keys`,
  )
  expect(await keys.find('newer')).toBeUndefined()
  now += 10_000
  expect(await keys.find('newer')).toMatchObject({ kid: 'newer', alg: 'ES256' })
})

describe('every algorithm signs what jose and we verify:', () => {
  test.each(['ES256', 'EdDSA', 'RS256'] as const)('%s', async (signingAlgorithm) => {
    const running = await startTestIssuer({ config: { signingAlgorithm } })
    try {
      const token = await running.managementToken()
      expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())).toEqual({
        alg: signingAlgorithm,
        typ: 'at+jwt',
        kid: expect.any(String),
      })
      expect(await running.verify(token, running.managementResource)).toMatchObject({ scope: 'all' })
      expect((await running.api('GET', '/users', undefined, { token })).status).toBe(200)
      const { body } = await request(`${running.url}/oidc/jwks`)
      expect(body.keys).toMatchObject(
        (signingAlgorithm === 'RS256' ? ['RS256'] : [signingAlgorithm, 'RS256']).map((alg) => ({ alg, use: 'sig' })),
      )
    } finally {
      await running.close()
    }
  })
})

test('our own verifier refuses what is expired, for another audience, or of another issuer', async () => {
  const keys = await open()
  const token = createAccessTokenMint({ keys, issuer })(claims)
  const verifierOf = (name: string, now = new Date()) =>
    createAccessTokenVerifier({ keys, issuer: name, now: () => now })
  const { verify } = verifierOf(issuer)
  expect(await verify(token, { audience: [claims.aud] })).toMatchObject({ sub: 'user', client_id: 'client' })
  expect(await verify(token, { audience: undefined })).toMatchObject({ sub: 'user' })
  await expect(verify(token, { audience: ['https://other.example'] })).rejects.toMatchObject({ reason: 'audience' })
  const later = verifierOf(issuer, new Date((claims.exp + 5) * 1000))
  await expect(later.verify(token, { audience: undefined })).rejects.toMatchObject({ reason: 'expired' })
  const other = verifierOf('https://other.example/oidc')
  await expect(other.verify(token, { audience: undefined })).rejects.toMatchObject({ reason: 'issuer' })
})
