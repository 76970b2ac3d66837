import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHmacs } from '../../../../../issuer/base/hmac-keys-store.ts'
import {
  authenticationCredential,
  authenticationOptions,
  availableFactors,
  createFactors,
  type Factors,
  findPasskey,
  findUserHandle,
  listCredentials,
  newBackupCodes,
  newTotpSecret,
  newUserHandle,
  plausibleCredentials,
  presentedCredentialId,
  readTotpSecret,
  registrationCredential,
  registrationOptions,
  relyingPartyOf,
  renamePasskey,
  verifyAuthentication,
  verifyRegistration,
} from '../../../../../issuer/directory/users/factors/index.ts'
import { hotp, totpStep } from '../../../../../issuer/directory/users/factors/totp.ts'
import { reencrypt } from '../../../../../issuer/maintenance/reencrypt.ts'
import { createDatabase, type Database } from '../../../../../platform/database/database.ts'
import { createEnvelope } from '../../../../../platform/envelope.ts'
import { silentLogger } from '../../../../../platform/logger.ts'
import { createAuthenticator } from '../../../../../testing/authenticator.ts'
import { createTestDatabase, type TestDatabase } from '../../../../support/database.ts'
import { createFactories, type Factories } from '../../../../support/issuer-data.ts'

/** The rows of factors, as two issuers on one database work with them at the same time. */

const origin = 'https://login.example.test'
const relyingParty = relyingPartyOf(origin)
const keyEncryptionKey = randomBytes(32)
const envelope = createEnvelope({ current: keyEncryptionKey })

let home: TestDatabase
let other: Database
let factories: Factories
/** An issuer each. */
let issuers: { database: Database; factors: Factors }[]
beforeAll(async () => {
  home = await createTestDatabase()
  other = createDatabase({ connection: home.connection, logger: silentLogger })
  factories = createFactories(home.database)
  const open = async (database: Database) => ({
    database,
    factors: createFactors({ envelope, hmac: await createHmacs(database, envelope) }),
  })
  issuers = [await open(home.database), await open(other)]
})
afterAll(async () => {
  await other.close()
  await home.close()
})

let userId: string
beforeEach(async () => {
  userId = (await factories.createUser({ name: 'Ada' })).id
})

const first = () => issuers[0]!
const query = (...call: Parameters<Database['query']>) => home.database.query(...call)
const inTransaction = <Result>(work: (trx: Parameters<Factors['bindTotp']>[0]) => Promise<Result>) =>
  first().database.knex.transaction(work)
/** The same work at both issuers in turn, all at once. */
const atOnce = <Result>(count: number, work: (issuer: (typeof issuers)[number], index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, index) => work(issuers[index % issuers.length]!, index)))
const problemOf = (code: string) => expect.objectContaining({ code })

const now = new Date('2026-11-23T12:00:10Z')
const step = totpStep(now)

const withTotp = async (user = userId) => {
  const secret = newTotpSecret()
  const id = await inTransaction((trx) => first().factors.bindTotp(trx, { userId: user, secret }))
  const bytes = readTotpSecret(secret)!
  return { id, secret, codeAt: (at: number) => hotp(bytes, at) }
}

describe('an authenticator app', () => {
  const use = async (code: string, user = userId, issuer = first()) =>
    (await issuer.factors.useTotp(issuer.database.query, { userId: user, code, now })) !== undefined

  test('T 81: a code is good once, and no older one after it', async () => {
    const { codeAt } = await withTotp()
    const tried: boolean[] = []
    for (const at of [step - 2, step - 1, step - 1, step, step - 1, step + 2, step + 1, step])
      tried.push(await use(codeAt(at)))
    expect(tried).toEqual([false, true, false, true, false, false, true, false])
  })

  test('T 81: of twenty who show the same code at once, one gets in', async () => {
    const { codeAt } = await withTotp()
    const came = await atOnce(20, (issuer) => use(codeAt(step), userId, issuer))
    expect(came.filter(Boolean)).toHaveLength(1)
  })

  test('T 82: a code of one person is nothing for another', async () => {
    const mine = await withTotp()
    const theirs = (await factories.createUser()).id
    expect(await use(mine.codeAt(step), theirs)).toBe(false)
    await withTotp(theirs)
    expect(await use(mine.codeAt(step), theirs)).toBe(false)
    expect(await use(mine.codeAt(step))).toBe(true)
  })

  test('the code that confirmed it is used up', async () => {
    const secret = newTotpSecret()
    await inTransaction((trx) => first().factors.bindTotp(trx, { userId, secret, confirmedStep: step }))
    const bytes = readTotpSecret(secret)!
    expect([await use(hotp(bytes, step)), await use(hotp(bytes, step + 1))]).toEqual([false, true])
  })

  test('there is one for each person, whoever binds at the same time', async () => {
    const bound = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) =>
        issuers[index % 2]!.database.knex.transaction((trx) =>
          first().factors.bindTotp(trx, { userId, secret: newTotpSecret() }),
        ),
      ),
    )
    expect(bound.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const refused = bound.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
    expect(new Set(refused)).toEqual(new Set(['user.totp_already_in_use']))
  })

  test('a secret that is none, and a person who is nobody, are refused', async () => {
    const bind = (user: string, secret: string) =>
      inTransaction((trx) => first().factors.bindTotp(trx, { userId: user, secret }))
    await expect(bind(userId, 'MZXW6YTB')).rejects.toEqual(problemOf('user.totp_secret_invalid'))
    await expect(bind('nobody', newTotpSecret())).rejects.toEqual(problemOf('entity.not_found'))
  })

  test('its secret is nowhere in clear, is bound to its person, and gets a new key with everything else', async () => {
    const { id, secret, codeAt } = await withTotp()
    const bytes = readTotpSecret(secret)!
    const [row] = await factories.sql<{ sealed: Buffer }>('SELECT sealed FROM totp_secrets WHERE user_id = $1', [
      userId,
    ])
    expect(row!.sealed.includes(bytes)).toBe(false)
    expect(envelope.open(row!.sealed, `totp-secret:${userId}`)).toEqual(bytes)
    expect(() => envelope.open(row!.sealed, 'totp-secret:another')).toThrow()

    const fresh = randomBytes(32)
    const both = createEnvelope({ current: fresh, previous: keyEncryptionKey })
    await reencrypt({ database: home.database, envelope: both })
    const alone = createEnvelope({ current: fresh })
    const hmac = await createHmacs(home.database, alone)
    const after = createFactors({ envelope: alone, hmac })
    expect(await after.useTotp(query as Database['query'], { userId, code: codeAt(step), now })).toBe(id)
    // Back again, for the other tests.
    const back = createEnvelope({ current: keyEncryptionKey, previous: fresh })
    await reencrypt({ database: home.database, envelope: back })
  })
})

describe('backup codes', () => {
  const make = () => inTransaction((trx) => first().factors.replaceBackupCodes(trx, userId))
  const use = async (code: string, issuer = first(), user = userId) =>
    (await issuer.factors.useBackupCode(issuer.database.query, { userId: user, code })) !== undefined
  const left = async () => (await availableFactors(home.database.query, userId))!.backupCodes

  test('T 83: each is good once, for its person', async () => {
    const codes = await make()
    const stranger = (await factories.createUser()).id
    expect(await use(codes[0]!, first(), stranger)).toBe(false)
    expect([await use(codes[0]!.toLowerCase()), await use(codes[0]!), await use('00000-00000')]).toEqual([
      true,
      false,
      false,
    ])
    expect(await left()).toBe(9)
  })

  test('T 83: of twenty who show the same one at once, one gets in', async () => {
    const [code] = await make()
    const came = await atOnce(20, (issuer) => use(code!, issuer))
    expect(came.filter(Boolean)).toHaveLength(1)
    expect(await left()).toBe(9)
  })

  test('T 83: new ones void the old, used or not, also those made at the same time', async () => {
    const old = await make()
    await use(old[0]!)
    const sets = await atOnce(6, ({ database, factors }) =>
      database.knex.transaction((trx) => factors.replaceBackupCodes(trx, userId)),
    )
    expect(await left()).toBe(10)
    expect([await use(old[0]!), await use(old[1]!)]).toEqual([false, false])
    const good = await Promise.all(sets.map((codes) => use(codes[3]!)))
    expect(good.filter(Boolean)).toHaveLength(1)
  })

  test('what was shown before it is kept is kept as shown', async () => {
    const codes = newBackupCodes()
    await inTransaction((trx) => first().factors.keepBackupCodes(trx, userId, codes))
    expect(await Promise.all(codes.map((code) => use(code)))).toEqual(codes.map(() => true))
  })

  test('the database does not have them, and digests of the same code differ between people', async () => {
    const codes = await make()
    const stranger = (await factories.createUser()).id
    await inTransaction((trx) => first().factors.keepBackupCodes(trx, stranger, codes))
    const rows = await factories.sql<{ digest: Buffer }>('SELECT digest FROM backup_codes WHERE user_id = ANY ($1)', [
      [userId, stranger],
    ])
    expect(new Set(rows.map(({ digest }) => digest.toString('hex'))).size).toBe(20)
  })
})

describe('passkeys', () => {
  const withPasskey = async ({
    user = userId,
    isBackupEligible = true,
    countsFrom,
  }: {
    user?: string
    isBackupEligible?: boolean
    countsFrom?: number
  } = {}) => {
    const authenticator = createAuthenticator({
      origin,
      isBackupEligible,
      ...(countsFrom !== undefined && { countsFrom }),
    })
    const userHandle = (await findUserHandle(home.database.query, user)) ?? newUserHandle()
    const owner = { handle: userHandle, name: 'ada', displayName: 'Ada' }
    const existing = await listCredentials(home.database.query, user)
    const made = authenticator.create(registrationOptions(relyingParty, 'c', owner, existing))
    const credential = verifyRegistration(registrationCredential.parse(made), { challenge: 'c', relyingParty })
      .verified!
    const bind = (of = user, handle = userHandle) =>
      inTransaction((trx) =>
        first().factors.bindPasskey(trx, {
          userId: of,
          userHandle: handle,
          credential,
          name: 'Phone',
          agent: 'A browser',
        }),
      )
    return { authenticator, credential, userHandle, bind }
  }

  test('signs in: found by its credential, verified, and its use kept', async () => {
    const { authenticator, bind, userHandle } = await withPasskey({ isBackupEligible: false, countsFrom: 7 })
    const id = await bind()
    const answer = authenticationCredential.parse(authenticator.get(authenticationOptions(relyingParty, 'c')))
    const passkey = (await findPasskey(home.database.query, presentedCredentialId(answer)))!
    expect(passkey).toMatchObject({ id, userId, userHandle, signCount: 7, isBackupEligible: false })
    const { verified } = verifyAuthentication(answer, { challenge: 'c', relyingParty }, passkey)
    expect(verified).toEqual({ signCount: 8, isBackedUp: false, isCounterBehind: false })
    expect(await first().factors.usePasskey(home.database.query, id, verified!)).toBe(true)
    expect((await findPasskey(home.database.query, passkey.credentialId))!.signCount).toBe(8)
    expect(await findPasskey(home.database.query, randomBytes(32))).toBeUndefined()
  })

  test('T 96: a credential is registered once, for whomever', async () => {
    const { bind } = await withPasskey()
    await bind()
    const taken = { code: 'user.passkey_already_in_use', status: 409 }
    await expect(bind()).rejects.toMatchObject(taken)
    const stranger = (await factories.createUser()).id
    await expect(bind(stranger, newUserHandle())).rejects.toMatchObject(taken)
    expect((await availableFactors(home.database.query, stranger))!.passkeys).toBe(0)
    // What was refused left nothing behind.
    expect(await findUserHandle(home.database.query, stranger)).toBeUndefined()
  })

  test('T 96: of eight who register the same at once, one does', async () => {
    const { bind } = await withPasskey()
    const people = await Promise.all(Array.from({ length: 8 }, async () => (await factories.createUser()).id))
    const bound = await Promise.allSettled(people.map((person) => bind(person, newUserHandle())))
    expect(bound.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('a person has one handle: what was made for another is refused', async () => {
    await (await withPasskey()).bind()
    const second = await withPasskey()
    await expect(second.bind(userId, newUserHandle())).rejects.toEqual(problemOf('user.passkey_already_in_use'))
    await second.bind()
    expect(await listCredentials(home.database.query, userId)).toHaveLength(2)
  })

  test.each([
    ['on one device: one gets in', false, 5, 1],
    ['on many devices: all do', true, 5, 10],
    ['that does not count: all do', false, 0, 10],
  ])('T 97: ten answers with the same counter, of a passkey %s', async (_, isBackupEligible, signCount, expected) => {
    const { bind } = await withPasskey({ isBackupEligible })
    const id = await bind()
    const assertion = { signCount, isBackedUp: isBackupEligible, isCounterBehind: false }
    const came = await atOnce(10, ({ database, factors }) => factors.usePasskey(database.query, id, assertion))
    expect(came.filter(Boolean)).toHaveLength(expected)
  })

  test('T 97: a counter that another answer has passed is refused', async () => {
    const { bind } = await withPasskey({ isBackupEligible: false })
    const id = await bind()
    const use = (signCount: number) =>
      first().factors.usePasskey(home.database.query, id, { signCount, isBackedUp: false, isCounterBehind: false })
    expect([await use(6), await use(5), await use(6), await use(0), await use(7)]).toEqual([
      true,
      false,
      false,
      false,
      true,
    ])
  })

  test('is renamed by whoever has it', async () => {
    const id = await (await withPasskey()).bind()
    const stranger = (await factories.createUser()).id
    const rename = (user: string, name: string) =>
      inTransaction((trx) => renamePasskey(trx, { userId: user, id, name }))
    expect([await rename(stranger, 'Mine'), await rename(userId, 'Laptop')]).toEqual([false, true])
  })

  test('T 53: what is shown for nobody is always the same and looks like something', async () => {
    const hmac = await createHmacs(home.database, envelope)
    const [shown] = plausibleCredentials(hmac, 'nobody@example.test')
    expect(plausibleCredentials(await createHmacs(other, envelope), 'nobody@example.test')).toEqual([shown])
    expect(plausibleCredentials(hmac, 'nobody2@example.test')).not.toEqual([shown])
    expect([16, 20, 32]).toContain(shown!.credentialId.length)
  })
})

test('T 84: a backup code and a passkey that are used at once are both used', async () => {
  const { factors, database } = first()
  const codes = await inTransaction((trx) => factors.replaceBackupCodes(trx, userId))
  const authenticator = createAuthenticator({ origin, isBackupEligible: false })
  const owner = { handle: newUserHandle(), name: 'ada', displayName: 'Ada' }
  const made = registrationCredential.parse(authenticator.create(registrationOptions(relyingParty, 'c', owner, [])))
  const { verified } = verifyRegistration(made, { challenge: 'c', relyingParty })
  const id = await inTransaction((trx) =>
    factors.bindPasskey(trx, { userId, userHandle: owner.handle, credential: verified! }),
  )
  const came = await atOnce(20, async (issuer, index) =>
    index % 2 === 0
      ? (await issuer.factors.useBackupCode(issuer.database.query, { userId, code: codes[index / 2]! })) !== undefined
      : issuer.factors.usePasskey(issuer.database.query, id, {
          signCount: 0,
          isBackedUp: false,
          isCounterBehind: false,
        }),
  )
  expect(came).toEqual(came.map(() => true))
  expect(
    await factors.usePasskey(database.query, id, { signCount: 9, isBackedUp: false, isCounterBehind: false }),
  ).toBe(true)
  expect(await availableFactors(database.query, userId)).toMatchObject({ passkeys: 1, backupCodes: 0 })
})

test('what a person has is one question', async () => {
  const { database } = first()
  const nothing = { totp: false, passkeys: 0, backupCodes: 0, email: null, phone: null }
  expect(await availableFactors(database.query, userId)).toEqual(nothing)
  expect(await availableFactors(database.query, 'nobody')).toBeUndefined()
  await withTotp()
  await inTransaction((trx) => first().factors.replaceBackupCodes(trx, userId))
  const address = `${userId}@example.test`
  await factories.sql(
    `UPDATE users SET primary_email = $2, primary_phone = $3, email_verified_at = now(), phone_verified_at = NULL WHERE id = $1`,
    [userId, address, `491${String(Date.now()).slice(-9)}`],
  )
  // An address that is not known to be the person's is none to send codes to.
  expect(await availableFactors(database.query, userId)).toEqual({
    ...nothing,
    totp: true,
    backupCodes: 10,
    email: address,
  })
})
