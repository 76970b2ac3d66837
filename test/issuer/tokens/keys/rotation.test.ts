import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createKeyRotation } from '../../../../issuer/tokens/keys/rotation.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { createJwksClient, type JwksClient } from '../../../../platform/jwt/jwks-client.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'

/** Two instances on one database that hear of each other, and gateways' copies of their keys. */

const encryptionKey = Buffer.alloc(32, 7)
const path = '/configs/oidc/private-keys'
let issuer: TestIssuer
const clients: JwksClient[] = []
beforeEach(async () => {
  issuer = await startTestIssuer({ instances: 2, config: { keyEncryptionKey: encryptionKey } })
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
  await issuer.close()
})

/** Moves the keys into the past, and wakes the instances up as their poll would. */
const pass = async (seconds: number) => {
  await issuer.sql(
    `UPDATE signing_keys SET created_at = created_at - $1 * interval '1 second', activated_at = activated_at - $1 * interval '1 second',
       retired_at = retired_at - $1 * interval '1 second', expires_at = expires_at - $1 * interval '1 second'`,
    [seconds],
  )
  await issuer.sql(`SELECT pg_notify('surrogate_signing_keys', '')`)
}

/** Instances hear of changes a moment later. */

const publishedBy = async (instance: number): Promise<string[]> =>
  (await request(`${issuer.urls[instance]}/oidc/jwks`)).body.keys.map(({ kid }: { kid: string }) => kid)
/** Without those of the other chain. */
const kidsOf = async (instance: number, other = 'id_token_keys'): Promise<string[]> => {
  const others = (await issuer.sql(`SELECT kid FROM ${other}`)).map(({ kid }) => kid)
  return (await publishedBy(instance)).filter((kid) => !others.includes(kid))
}
const everywhere = (kids: string[]) =>
  until(async () => {
    for (const instance of [0, 1]) expect((await kidsOf(instance)).toSorted()).toEqual(kids.toSorted())
  })

const tokenOf = async (instance: number): Promise<string> => {
  const form = { grant_type: 'client_credentials', resource: issuer.managementResource, scope: 'all' }
  return (await issuer.token(issuer.bootstrap, form, { instance })).body.access_token
}
const kidOf = (token: string): string => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid
const isAccepted = async (token: string, instance: number): Promise<boolean> => {
  const { status } = await issuer.api('GET', '/users?page=1', undefined, { token, instance })
  const introspection = await request(`${issuer.urls[instance]}/oidc/token/introspection`, {
    method: 'POST',
    headers: { authorization: basic(issuer.bootstrap) },
    body: formOf({ token }),
  })
  expect(introspection.body.active).toBe(status === 200)
  return introspection.body.active
}
const gateway = async (instance: number) => {
  const client = createJwksClient({
    ...{ issuer: issuer.issuer, jwksUri: `${issuer.urls[instance]}/oidc/jwks`, logger: silentLogger, cooldownMs: 0 },
  })
  clients.push(client)
  await client.ready
  return client
}
const list = async () => (await issuer.api('GET', path)).body as { id: string; status: string; effectiveAt: number }[]

test('by API: the next key is published on every instance, signs once its time has come, and the old one goes when its tokens have', async () => {
  const [old] = await kidsOf(0)
  const before = await tokenOf(1)
  const copy = await gateway(0)

  const answer = await issuer.api('POST', `${path}/rotate`, { signingKeyAlgorithm: 'EdDSA' })
  expect(answer).toMatchObject({
    status: 200,
    body: [
      { algorithm: 'EdDSA', signingKeyAlgorithm: 'EdDSA', status: 'Next', expiresAt: null },
      { id: old, algorithm: 'ES256', signingKeyAlgorithm: 'EC', status: 'Current', expiresAt: null },
    ],
  })
  const { id: next, createdAt, effectiveAt } = answer.body[0]
  expect(Math.round((effectiveAt - createdAt) / 1000)).toBe(330)
  expect(JSON.stringify(answer.body)).not.toContain('"d"')
  await everywhere([old!, next])
  for (const instance of [0, 1]) expect(kidOf(await tokenOf(instance))).toBe(old)

  await pass(300)
  // A copy that was made before the rotation is renewed by now.
  expect(copy.peek(next)).toBeUndefined()
  const renewed = await gateway(1)
  expect(renewed.peek(next)).toBeDefined()
  for (const instance of [0, 1]) expect(kidOf(await tokenOf(instance))).toBe(old)

  await pass(31)
  await until(async () => {
    for (const instance of [0, 1]) expect(kidOf(await tokenOf(instance))).toBe(next)
  })
  expect(renewed.peek(old!)).toBeDefined()
  for (const instance of [0, 1]) {
    expect(await issuer.verify(await tokenOf(instance), issuer.managementResource)).toMatchObject({ scope: 'all' })
    expect(await isAccepted(before, instance)).toBe(true)
  }
  expect(await list()).toMatchObject([
    { id: next, status: 'Current' },
    { id: old, status: 'Previous' },
  ])
  const stored = await issuer.sql('SELECT private_jwk FROM signing_keys WHERE kid = $1', [old])
  expect(stored).toEqual([{ private_jwk: null }])

  // The longest life of a token, 3600 s, after it stopped signing.
  await pass(3600)
  await everywhere([old!, next])
  await pass(331)
  await everywhere([next])
})

test('by command for a leaked key: it is gone from every instance at once, with all its tokens', async () => {
  const [leaked] = await kidsOf(0)
  const stolen = await tokenOf(0)
  const copy = await gateway(1)
  expect(await isAccepted(stolen, 1)).toBe(true)

  const rotation = createKeyRotation({ envelope: createEnvelope({ current: encryptionKey }) })
  const [fresh] = await issuer.database.transaction((query) => rotation.replace(query, { by: 'command' }))
  await everywhere([fresh!.kid])
  for (const instance of [0, 1]) {
    expect(await isAccepted(stolen, instance)).toBe(false)
    const token = await tokenOf(instance)
    expect(kidOf(token)).toBe(fresh!.kid)
    expect(await isAccepted(token, instance)).toBe(true)
  }
  // A gateway learns of the new key with the first token that it signed, and forgets the old one then.
  const { generation } = copy
  expect(copy.peek(leaked!)).toBeDefined()
  expect(await copy.get(fresh!.kid)).toBeDefined()
  expect(copy.peek(leaked!)).toBeUndefined()
  expect(copy.generation).toBeGreaterThan(generation)
})

test('by API for a leaked key: the same, and the caller needs a new token too', async () => {
  const token = await tokenOf(0)
  const answer = await issuer.api('POST', `${path}/rotate`, { now: true, signingKeyAlgorithm: 'RSA' }, { token })
  expect(answer).toMatchObject({ status: 200, body: [{ algorithm: 'RS256', status: 'Current' }] })
  expect(await isAccepted(token, 0)).toBe(false)
  await everywhere([answer.body[0].id])
  expect(await isAccepted(token, 1)).toBe(false)
})

test('only a previous key can be deleted, and then its tokens end on every instance', async () => {
  const [old] = await kidsOf(0)
  const token = await tokenOf(0)
  const refused = async (kid: string) => {
    const { status, body } = await issuer.api('DELETE', `${path}/${kid}`)
    return [status, body.code]
  }
  expect(await refused('unknown')).toEqual([404, 'oidc.key_not_found'])
  expect(await refused(old!)).toEqual([422, 'oidc.key_required'])
  const next = (await issuer.api('POST', `${path}/rotate`)).body[0].id
  expect(await refused(old!)).toEqual([422, 'oidc.only_previous_key_can_be_deleted'])
  expect(await refused(next)).toEqual([422, 'oidc.only_previous_key_can_be_deleted'])

  await pass(331)
  await until(async () => expect(await list()).toMatchObject([{ status: 'Current' }, { status: 'Previous' }]))
  expect(await isAccepted(token, 1)).toBe(true)
  expect((await issuer.api('DELETE', `${path}/${old}`)).status).toBe(204)
  await everywhere([next])
  for (const instance of [0, 1]) expect(await isAccepted(token, instance)).toBe(false)
})

test('the audit trail says who rotated what, and what time did', async () => {
  const [old] = await kidsOf(0)
  const next = (await issuer.api('POST', `${path}/rotate`, { rotationGracePeriod: 0 })).body[0].id
  await pass(331)
  await until(async () => expect((await list())[0]).toMatchObject({ id: next, status: 'Current' }))
  const rows = async (key: string) => (await issuer.api('GET', `/logs?logKey=${key}`)).body
  expect(await rows('Management.rotateSigningKeys')).toMatchObject([
    { payload: { applicationId: issuer.bootstrap.id, fields: ['rotationGracePeriod'] } },
  ])
  expect(await rows('SigningKeys.Rotate')).toMatchObject([{ payload: { by: 'api', kid: next, algorithm: 'ES256' } }])
  // Two instances, one change.
  expect(await rows('SigningKeys.Advance')).toMatchObject([
    { payload: { by: 'schedule', activated: [next], retired: [old], dropped: [] } },
  ])
  expect(issuer.logged()).not.toMatch(/"d":|"level":"(error|fatal)"/)
})

describe('a rotation', () => {
  test('may be asked for many times at once: there is one next key', async () => {
    await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        issuer.api('POST', `${path}/rotate`, undefined, { instance: index % 2 }).then(({ status }) => {
          expect(status).toBe(200)
        }),
      ),
    )
    expect((await list()).map(({ status }) => status)).toEqual(['Next', 'Current'])
  })

  test('takes as long as it is told, but never less than verifiers need', async () => {
    const delay = async (body: object) => {
      const [next] = (await issuer.api('POST', `${path}/rotate`, body)).body
      expect(next.status).toBe('Next')
      const [{ now }] = (await issuer.sql<{ now: Date }>('SELECT clock_timestamp() AS now')) as [{ now: Date }]
      return { id: next.id, seconds: Math.round((next.effectiveAt - now.getTime()) / 10_000) * 10 }
    }
    const day = await delay({ rotationGracePeriod: 86_400 })
    expect(day.seconds).toBe(86_400)
    // The same key, sooner.
    expect(await delay({})).toEqual({ id: day.id, seconds: 330 })
    // Another algorithm is another key, which has to be published first.
    await pass(300)
    const other = await delay({ signingKeyAlgorithm: 'RS256' })
    expect(other.id).not.toBe(day.id)
    expect(other.seconds).toBe(330)
    expect((await list()).map(({ status }) => status)).toEqual(['Next', 'Current'])
  })

  test('keeps the old key for the longest life its tokens had, though their resource has gone since', async () => {
    await issuer.createResource({ indicator: 'https://long.example.test', ttl: 864_000 })
    await issuer.sql(`SELECT pg_notify('surrogate_signing_keys', '')`)
    const life = async () => (await issuer.sql(`SELECT token_life FROM signing_keys WHERE state = 'active'`))[0]
    await until(async () => expect(await life()).toEqual({ token_life: 864_000 }))
    await issuer.sql(`DELETE FROM resources WHERE indicator = 'https://long.example.test'`)
    await issuer.api('POST', `${path}/rotate`)
    await pass(331)
    await until(async () => expect(await list()).toMatchObject([{}, { status: 'Previous' }]))
    const [kept] = await issuer.sql<{ seconds: number }>(
      `SELECT extract(epoch FROM expires_at - now())::int AS seconds FROM signing_keys WHERE state = 'retiring'`,
    )
    expect(kept!.seconds).toBeGreaterThan(864_000)
  })

  test('with another key-encryption key than the issuers changes nothing', async () => {
    const [kid] = await kidsOf(0)
    const stranger = createKeyRotation({ envelope: createEnvelope({ current: Buffer.alloc(32, 8) }) })
    for (const change of [stranger.rotate, stranger.replace])
      await expect(issuer.database.transaction((query) => change(query, { by: 'command' }))).rejects.toThrow(
        /another key-encryption key/,
      )
    expect(await list()).toMatchObject([{ id: kid, status: 'Current' }])
  })

  test('does not change to a key that the instances cannot open; the present one signs on', async () => {
    const [kid] = await kidsOf(0)
    await issuer.api('POST', `${path}/rotate`)
    await issuer.sql(`UPDATE signing_keys SET private_jwk = 'broken' WHERE state = 'next'`)
    await pass(331)
    await until(() => expect(issuer.logged()).toContain('the signing keys cannot go on'))
    for (const instance of [0, 1]) {
      const token = await tokenOf(instance)
      expect(kidOf(token)).toBe(kid)
      expect(await isAccepted(token, instance)).toBe(true)
    }
  })
})

test('a malformed rotation is refused', async () => {
  for (const body of [{ signingKeyAlgorithm: 'HS256' }, { rotationGracePeriod: -1 }, { now: 'yes' }])
    expect(await issuer.api('POST', `${path}/rotate`, body)).toMatchObject({
      status: 400,
      body: { code: 'guard.invalid_input' },
    })
  expect(await list()).toHaveLength(1)
})
