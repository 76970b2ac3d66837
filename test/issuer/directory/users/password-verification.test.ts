import { createHash, pbkdf2Sync } from 'node:crypto'
import { hash as argon2 } from '@node-rs/argon2'
import { hash as bcrypt } from '@node-rs/bcrypt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPasswordHasher } from '../../../../issuer/directory/users/password.ts'
import { isReadableDigest } from '../../../../issuer/directory/users/password-digests.ts'
import type { PasswordAlgorithm } from '../../../../issuer/directory/users/user.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

const password = 'correct hörse @ battery'
const hex = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex')
const small = { memoryCost: 64, timeCost: 1, parallelism: 1 }

const imported: [name: string, algorithm: PasswordAlgorithm, digest: () => string | Promise<string>][] = [
  ['Argon2i', 'Argon2i', () => argon2(password, { ...small, algorithm: 1 })],
  ['Argon2d', 'Argon2d', () => argon2(password, { ...small, algorithm: 0 })],
  ['a weaker Argon2id', 'Argon2id', () => argon2(password, { ...small, algorithm: 2 })],
  ['bcrypt', 'Bcrypt', () => bcrypt(password, 4)],
  ['bcrypt as PHP writes it', 'Bcrypt', async () => (await bcrypt(password, 4)).replace(/^\$2b/, '$2y')],
  ['MD5', 'MD5', () => hex('md5', password)],
  ['SHA-1', 'SHA1', () => hex('sha1', password).toUpperCase()],
  ['SHA-256', 'SHA256', () => hex('sha256', password)],
  [
    'a salted hash',
    'Legacy',
    () => JSON.stringify(['sha512', ['salt', '@', 'pepper'], hex('sha512', `salt${password}pepper`)]),
  ],
  [
    'PBKDF2',
    'Legacy',
    () => {
      const key = pbkdf2Sync(password, 'salt', 1000, 20, 'sha512').toString('hex')
      return JSON.stringify(['pbkdf2', ['salt', '1000', '20', 'sha512', '@'], key])
    },
  ],
]

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ hashes: true })
})
afterAll(() => issuer.close())

const importUser = async (passwordAlgorithm: PasswordAlgorithm, passwordDigest: string): Promise<string> => {
  const { status, body } = await issuer.api('POST', '/users', { passwordAlgorithm, passwordDigest })
  expect(status, JSON.stringify(body)).toBe(200)
  return body.id
}
const verify = (userId: string, attempt: string, token?: string) =>
  issuer.api('POST', `/users/${userId}/password/verify`, { password: attempt }, token === undefined ? {} : { token })
const storedOf = async (userId: string) =>
  (
    await issuer.sql<{ digest: string; algorithm: string }>(
      'SELECT password_digest AS digest, password_algorithm AS algorithm FROM users WHERE id = $1',
      [userId],
    )
  )[0]!

describe('a digest from elsewhere', () => {
  test.each(imported)('%s is verified, and replaced by ours once it was right', async (_name, algorithm, digestOf) => {
    const digest = await digestOf()
    const userId = await importUser(algorithm, digest)

    expect(await verify(userId, `${password}!`)).toMatchObject({
      status: 422,
      body: { code: 'session.invalid_credentials' },
    })
    expect(await storedOf(userId)).toEqual({ digest, algorithm })

    expect(await verify(userId, password)).toMatchObject({ status: 204, body: '' })
    const upgraded = await storedOf(userId)
    expect(upgraded).toEqual({
      digest: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/),
      algorithm: 'Argon2id',
    })
    const { body: logs } = await issuer.api('GET', `/logs?userId=${userId}&logKey=Management.verifyUserPassword`)
    expect(logs).toMatchObject([{ payload: { passwordAlgorithm: algorithm, isUpgraded: true } }])

    expect(await verify(userId, password)).toMatchObject({ status: 204 })
    expect(await verify(userId, `${password}!`)).toMatchObject({ status: 422 })
    expect(await storedOf(userId)).toEqual(upgraded)
  })

  test('that was replaced meanwhile is not put back by the upgrade', async () => {
    // Every upgrade reads the old digest; only one of those that write, the change among them, finds it still there.
    const userId = await importUser('MD5', hex('md5', password))
    const [changed, ...verified] = await Promise.all([
      issuer.api('PATCH', `/users/${userId}/password`, { password: 'another password' }),
      ...Array.from({ length: 8 }, () => verify(userId, password)),
    ])
    expect(changed.status).toBe(200)
    expect(verified.every(({ status }) => [204, 422].includes(status))).toBe(true)
    expect(await verify(userId, 'another password')).toMatchObject({ status: 204 })
    expect(await verify(userId, password)).toMatchObject({ status: 422 })
  })

  test('that no password could ever match, or that costs too much, is refused', async () => {
    const salted = (...parts: unknown[]) => JSON.stringify(parts)
    const unreadable: [PasswordAlgorithm, string][] = [
      ['MD5', 'not hexadecimal'],
      ['SHA256', hex('sha1', password)],
      ['Bcrypt', '$2b$10$short'],
      ['Bcrypt', `$2b$31$${'a'.repeat(53)}`],
      ['Argon2id', await argon2(password, { ...small, algorithm: 1 })],
      ['Argon2id', (await argon2(password, { ...small, algorithm: 2 })).replace('m=64', 'm=4194304')],
      ['Argon2id', (await argon2(password, { ...small, algorithm: 2 })).replace('t=1', 't=99999')],
      ['Legacy', 'no JSON'],
      ['Legacy', salted('sha256', ['salt'], hex('sha256', 'salt'))],
      ['Legacy', salted('rot13', ['@'], '00')],
      ['Legacy', salted('pbkdf2', ['salt', '999999999', '20', 'sha512', '@'], '00')],
    ]
    for (const [algorithm, digest] of unreadable) {
      expect(isReadableDigest({ algorithm, digest }), digest).toBe(false)
      const answer = await issuer.api('POST', '/users', { passwordAlgorithm: algorithm, passwordDigest: digest })
      expect(answer, digest).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
      expect(JSON.stringify(answer.body)).not.toContain(digest.slice(0, 20))
    }
  })

  test('that stands in the database all the same lets nobody in', async () => {
    const { verify: matches } = createPasswordHasher()
    expect(await matches('anything', { algorithm: 'Bcrypt', digest: '$2b$10$short' })).toBe(false)
    expect(await matches('', { algorithm: 'MD5', digest: '' })).toBe(false)
    expect(await matches('', { algorithm: 'Legacy', digest: '[]' })).toBe(false)
  })
})

test('a user without a password has no right one, and an unknown user is 404', async () => {
  const { id } = await issuer.createUser()
  expect(await verify(id, password)).toMatchObject({ status: 422, body: { code: 'session.invalid_credentials' } })
  expect(await verify('nobody', password)).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
})

test('tokens are issued while more passwords are verified than there are processors', async () => {
  const client = await issuer.createApplication({ type: 'MachineToMachine' })
  const resource = await issuer.createResource()
  const digest = await bcrypt(password, 11)
  // One wrong one each: more would lock somebody out before anything is looked at.
  const userIds = await Promise.all(Array.from({ length: 12 }, () => importUser('Bcrypt', digest)))
  const token = await issuer.managementToken()
  let pending = 0
  const verifications = userIds.map(async (userId) => {
    pending++
    const answer = await verify(userId, 'wrong', token)
    pending--
    return answer.status
  })
  for (let count = 0; count < 2; count++) {
    expect(await issuer.token(client, { grant_type: 'client_credentials', resource })).toMatchObject({ status: 200 })
  }
  expect(pending).toBeGreaterThan(0)
  expect(new Set(await Promise.all(verifications))).toEqual(new Set([422]))
})
