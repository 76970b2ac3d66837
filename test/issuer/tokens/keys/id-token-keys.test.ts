import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createKeyRotation } from '../../../../issuer/tokens/keys/rotation.ts'
import { createSigningKeys, type SigningKeys } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'

/** The key that signs ID tokens with RS256, beside a key of another algorithm that signs everything. */

const envelope = createEnvelope({ current: randomBytes(32) })
let home: TestDatabase
const opened: SigningKeys[] = []
beforeEach(async () => {
  home = await createTestDatabase()
})
afterEach(async () => {
  for (const keys of opened.splice(0)) await keys.close()
  await home.close()
})

const open = async (algorithm: 'ES256' | 'EdDSA' | 'RS256' = 'ES256') => {
  const keys = await createSigningKeys({ database: home.database, envelope, algorithm, logger: silentLogger })
  opened.push(keys)
  return keys
}
const sql = async (text: string, values: unknown[] = []) => (await home.database.pool.query(text, values)).rows
const pass = async (seconds: number) => {
  for (const table of ['signing_keys', 'id_token_keys'])
    await sql(
      `UPDATE ${table} SET created_at = created_at - $1 * interval '1 second', activated_at = activated_at - $1 * interval '1 second',
         retired_at = retired_at - $1 * interval '1 second', expires_at = expires_at - $1 * interval '1 second'`,
      [seconds],
    )
}
const algorithmsOf = (keys: SigningKeys): string[] =>
  JSON.parse(keys.jwks().body).keys.map(({ alg }: { alg: string }) => alg)
const kidsOf = (keys: SigningKeys): string[] => JSON.parse(keys.jwks().body).keys.map(({ kid }: { kid: string }) => kid)

test('it is made at the first start, once, and discovery lists it when every copy of the JWKS has it', async () => {
  const instances = await Promise.all(Array.from({ length: 5 }, () => open()))
  expect(new Set(instances.map((keys) => keys.jwks().etag)).size).toBe(1)
  const [keys] = instances as [SigningKeys]
  expect(algorithmsOf(keys)).toEqual(['ES256', 'RS256'])
  expect(keys.active().algorithm).toBe('ES256')
  expect(keys.idTokenAlgorithms()).toEqual(['ES256'])

  await pass(329)
  await keys.reload()
  expect(keys.idTokenAlgorithms()).toEqual(['ES256'])
  await pass(2)
  await keys.reload()
  expect(keys.idTokenAlgorithms()).toEqual(['ES256', 'RS256'])
  expect(keys.active().algorithm).toBe('ES256')
})

test('clients that ask for RS256 get it, the others what signs everything, and nobody an algorithm without a key', async () => {
  const keys = await open()
  expect(keys.idTokenSigner(undefined)).toBe(keys.active())
  expect(keys.idTokenSigner('ES256')).toBe(keys.active())
  expect(keys.idTokenSigner('EdDSA')).toBeUndefined()
  const signer = keys.idTokenSigner('RS256')!
  expect(JSON.parse(Buffer.from(signer.headers.id, 'base64url').toString())).toEqual({ alg: 'RS256', kid: signer.kid })
  expect(kidsOf(keys)).toContain(signer.kid)
  expect(await keys.find(signer.kid)).toMatchObject({ alg: 'RS256' })
  await keys.reload()
  expect(keys.idTokenSigner('RS256')).toBe(signer)
})

test('it is sealed, and keys that cannot be opened stop the start', async () => {
  await open()
  const [row] = await sql('SELECT private_jwk, public_jwk FROM id_token_keys')
  expect(row.private_jwk.includes('"d"')).toBe(false)
  expect(row.public_jwk).not.toHaveProperty('d')
  await sql(`UPDATE id_token_keys SET private_jwk = 'broken'`)
  await expect(open()).rejects.toThrow(/key-encryption key/)
})

describe('where RS256 signs everything', () => {
  test('there is no other key for it', async () => {
    const keys = await open('RS256')
    expect(algorithmsOf(keys)).toEqual(['RS256'])
    expect(keys.idTokenSigner('RS256')).toBe(keys.active())
    expect(keys.idTokenAlgorithms()).toEqual(['RS256'])
  })

  test('one is published before another algorithm takes over, so that its clients always get RS256', async () => {
    const keys = await open('RS256')
    const rotation = createKeyRotation({ envelope })
    await home.database.transaction((query) => rotation.rotate(query, { algorithm: 'ES256', by: 'command' }))
    await keys.reload()
    expect(algorithmsOf(keys)).toEqual(['RS256', 'ES256', 'RS256'])
    expect(keys.idTokenSigner('RS256')).toBe(keys.active())
    await pass(331)
    await keys.reload()
    expect(keys.active().algorithm).toBe('ES256')
    expect(keys.idTokenSigner('RS256')?.algorithm).toBe('RS256')
    expect(keys.idTokenAlgorithms()).toEqual(['ES256', 'RS256'])
  })
})

test('an issuer of an older version, which knows of one chain, neither signs with it nor takes it away', async () => {
  const keys = await open()
  const { kid } = keys.idTokenSigner('RS256')!
  // What it signs with, and what it does for a leaked key and in time.
  expect(await sql(`SELECT algorithm FROM signing_keys WHERE state = 'active'`)).toEqual([{ algorithm: 'ES256' }])
  await sql(`UPDATE signing_keys SET state = 'retiring', private_jwk = NULL, expires_at = now() + interval '1 hour'
    WHERE state = 'active'`)
  await sql(`DELETE FROM signing_keys`)
  expect((await open()).idTokenSigner('RS256')!.kid).toBe(kid)
})

test('a key stays as long as the longest life of an ID token, whatever applications ask for later', async () => {
  const keys = await open()
  await sql(`INSERT INTO applications (id, name, type, custom_client_metadata)
    VALUES ('long', 'Long', 'Traditional', '{"idTokenTtl": 864000}')`)
  await keys.reload()
  await sql(`DELETE FROM applications`)
  for (const chain of ['signing', 'idToken'] as const) {
    const rotation = createKeyRotation({ envelope, chain })
    await home.database.transaction((query) => rotation.rotate(query, { by: 'command' }))
  }
  await pass(331)
  await keys.reload()
  for (const table of ['signing_keys', 'id_token_keys']) {
    const [kept] = await sql(
      `SELECT extract(epoch FROM expires_at - now())::int AS seconds FROM ${table} WHERE state = 'retiring'`,
    )
    expect(kept.seconds).toBeGreaterThan(864_000)
  }
})

describe('by API', () => {
  const path = '/configs/oidc/id-token-keys'
  let issuer: TestIssuer
  beforeEach(async () => {
    issuer = await startTestIssuer({ instances: 2 })
  })
  afterEach(() => issuer.close())

  const published = async (instance: number): Promise<string[]> =>
    (await request(`${issuer.urls[instance]}/oidc/jwks`)).body.keys.map(({ kid }: { kid: string }) => kid)
  const everywhere = (kids: string[]) =>
    until(async () => {
      for (const instance of [0, 1]) expect((await published(instance)).toSorted()).toEqual(kids.toSorted())
    })
  const signing = async () => (await issuer.api('GET', '/configs/oidc/private-keys')).body[0].id

  test('its keys rotate by a schedule of their own, and only a previous one can be deleted', async () => {
    const listed = await issuer.api('GET', path)
    expect(listed).toMatchObject({ status: 200, body: [{ algorithm: 'RS256', status: 'Current' }] })
    const old = listed.body[0].id
    expect(Math.round((listed.body[0].effectiveAt - listed.body[0].createdAt) / 1000)).toBe(330)

    const rotated = await issuer.api('POST', `${path}/rotate`)
    expect(rotated).toMatchObject({ status: 200, body: [{ status: 'Next' }, { id: old, status: 'Current' }] })
    const next = rotated.body[0].id
    await everywhere([await signing(), old, next])
    expect(await issuer.api('DELETE', `${path}/${next}`)).toMatchObject({ status: 422 })
    expect(await issuer.api('DELETE', `${path}/${await signing()}`)).toMatchObject({ status: 404 })

    await issuer.sql(
      `UPDATE id_token_keys SET created_at = created_at - interval '331 s', activated_at = activated_at - interval '331 s'`,
    )
    await issuer.sql(`SELECT pg_notify('surrogate_signing_keys', '')`)
    await until(async () =>
      expect((await issuer.api('GET', path)).body).toMatchObject([
        { id: next, status: 'Current' },
        { id: old, status: 'Previous' },
      ]),
    )
    expect((await issuer.api('DELETE', `${path}/${old}`)).status).toBe(204)
    await everywhere([await signing(), next])
    const rows = async (key: string) => (await issuer.api('GET', `/logs?logKey=IdTokenKeys.${key}`)).body
    expect(await rows('Rotate')).toMatchObject([{ payload: { by: 'api', kid: next, algorithm: 'RS256' } }])
    expect(await rows('Advance')).toMatchObject([{ payload: { by: 'schedule', activated: [next], retired: [old] } }])
    expect(await rows('Delete')).toMatchObject([{ payload: { by: 'api', kid: old } }])
    expect(issuer.logged()).not.toMatch(/"d":|"level":"(error|fatal)"/)
  })

  test('a leaked one is replaced at once, alone; and with all others when everything has leaked', async () => {
    const [first, access] = [(await issuer.api('GET', path)).body[0].id, await signing()]
    const token = await issuer.managementToken()
    const alone = await issuer.api('POST', `${path}/rotate`, { now: true })
    expect(alone).toMatchObject({ status: 200, body: [{ algorithm: 'RS256', status: 'Current' }] })
    expect(alone.body[0].id).not.toBe(first)
    await everywhere([access, alone.body[0].id])
    expect((await issuer.api('GET', '/users', undefined, { token })).status).toBe(200)

    const [all] = (await issuer.api('POST', '/configs/oidc/private-keys/rotate', { now: true })).body
    const [fresh] = (await issuer.api('GET', path)).body
    expect([first, alone.body[0].id]).not.toContain(fresh.id)
    await everywhere([all.id, fresh.id])
  })

  test('an algorithm cannot be chosen, and reading needs the scope of keys', async () => {
    expect(await issuer.api('POST', `${path}/rotate`, { signingKeyAlgorithm: 'EC' })).toMatchObject({ status: 400 })
    const token = await issuer.managementToken('read')
    expect((await issuer.api('GET', path, undefined, { token })).status).toBe(403)
  })
})
