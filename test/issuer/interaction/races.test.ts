import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database, Query } from '../../../platform/database/database.ts'
import { startTestInteractions, type TestInteractions, totpCode } from '../../support/interactions.ts'

let home: TestInteractions
const settings = {
  signUp: { identifiers: ['email'], password: true, verify: true },
  mfa: { factors: ['Totp'], policy: 'NoPrompt' },
}
const password = 'copper-otter-4-windmills'
const unavailable = Object.assign(new Error('Connection terminated unexpectedly'), { code: '08006' })

/** Statements of the next transaction until the database is away; undefined: it stays. */
let statementsLeft: number | undefined
const leaving = (query: Query): Query =>
  (async (asked, values) => {
    if (statementsLeft !== undefined && statementsLeft-- <= 0) throw unavailable
    return query(asked, values)
  }) as Query
const wrap = (database: Database): Database => ({
  ...database,
  transaction: (work) => database.transaction((trx) => work(leaving(trx as Query) as never)),
})

beforeAll(async () => {
  home = await startTestInteractions({ instances: 2, settings, wrap })
})
afterAll(() => home.close())

let lastAddress = 0
const registering = async (email: string, instance: number) => {
  // Each from its own address: as many messages as this are not sent to one.
  const running = await home.begin({ event: 'Register', instance, ip: `198.18.0.${++lastAddress}` })
  const { proofId, code } = await running.send('register', email)
  const answer = { proofId, code: code! }
  const verified = await home.operations.codes.verify(await running.read(), running.visitor, answer, home.request)
  expect(verified.outcome).toBe('verified')
  expect(await home.operations.staging.password(await running.read(), password)).toEqual({ outcome: 'staged' })
  return running
}
const eventsOf = async (id: string) =>
  (await home.sql<{ type: string }>('SELECT type FROM outbox WHERE entity_id = $1 ORDER BY seq', [id])).map(
    ({ type }) => type,
  )

test('of several who register with one address at once one becomes somebody, and nothing is left of the others', async () => {
  const made: Awaited<ReturnType<typeof registering>>[] = []
  for (const instance of [0, 1, 0, 1]) made.push(await registering('one@example.test', instance))
  const ends = await Promise.all(made.map((running) => running.finish()))
  expect(ends.map(({ kind }) => kind).toSorted()).toEqual(['redirect', 'taken', 'taken', 'taken'])
  const users = await home.sql<{ id: string }>(`SELECT id FROM users WHERE lower(primary_email) = 'one@example.test'`)
  expect(users).toHaveLength(1)
  expect(await eventsOf(users[0]!.id)).toEqual(['User.Created', 'PostRegister'])
  expect(await home.sql(`SELECT user_id FROM sessions`)).toEqual([{ user_id: users[0]!.id }])
})

test('a registration that is sent twenty times at once is one person, one session, one code and one answer', async () => {
  const running = await registering('twenty@example.test', 0)
  const ends = await Promise.all(Array.from({ length: 20 }, () => running.finish()))
  expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1)
  expect(ends[0]!.kind).toBe('redirect')
  const [user] = await home.sql<{ id: string }>(`SELECT id FROM users WHERE primary_email = 'twenty@example.test'`)
  expect(await eventsOf(user!.id)).toEqual(['User.Created', 'PostRegister'])
  expect(await home.sql('SELECT FROM sessions WHERE user_id = $1', [user!.id])).toHaveLength(1)
  expect(await home.sql('SELECT FROM authorizations WHERE user_id = $1', [user!.id])).toHaveLength(1)
})

test.each(['suspended', 'deleted'] as const)(
  'whoever is %s while a second factor is shown gets no session',
  async (end) => {
    const ada = await home.createPerson()
    const secret = await home.giveTotp(ada.id)
    const running = await home.begin({ instance: 1 })
    expect(await running.password(ada.username, ada.password)).toBe('verified')
    expect(await running.secondFactor('totp', totpCode(secret))).toBe('verified')
    const ending = {
      suspended: 'UPDATE users SET is_suspended = true WHERE id = $1',
      deleted: 'DELETE FROM users WHERE id = $1',
    }
    // A transaction that has begun to end the person is waited for.
    const held = await home.test.database.pool.connect()
    await held.query('BEGIN')
    await held.query(ending[end], [ada.id])
    const finishing = running.finish()
    await held.query('COMMIT')
    held.release()
    expect(['page', 'over']).toContain((await finishing).kind)
    expect(await home.sql('SELECT FROM sessions WHERE user_id = $1', [ada.id])).toEqual([])
    expect(await eventsOf(ada.id)).not.toContain('PostSignIn')
  },
)

test('when the database goes away after any statement of the end, nothing is left, and the next try does it once', async () => {
  let tried = 0
  for (; ; tried++) {
    const email = `away_${tried}@example.test`
    const running = await registering(email, 0)
    statementsLeft = tried
    const ended = await running.finish().catch((error) => error)
    const isThrough = statementsLeft !== undefined && statementsLeft >= 0 && ended !== unavailable
    statementsLeft = undefined
    if (isThrough) break
    expect(ended).toBe(unavailable)
    expect(await home.sql('SELECT FROM users WHERE primary_email = $1', [email])).toEqual([])
    const again = await running.finish()
    expect(again.kind).toBe('redirect')
    const [user] = await home.sql<{ id: string }>('SELECT id FROM users WHERE primary_email = $1', [email])
    expect(await eventsOf(user!.id)).toEqual(['User.Created', 'PostRegister'])
    expect(await home.sql('SELECT FROM sessions WHERE user_id = $1', [user!.id])).toHaveLength(1)
    expect(tried).toBeLessThan(60)
  }
  expect(tried).toBeGreaterThan(8)
}, 60_000)

test('one that expired, or that another tab has finished, ends nothing twice', async () => {
  const running = await registering('late@example.test', 0)
  await home.sql(`UPDATE interactions SET expires_at = now() WHERE id = $1`, [running.id])
  expect((await running.finish()).kind).toBe('over')
  expect(await home.sql(`SELECT FROM users WHERE primary_email = 'late@example.test'`)).toEqual([])

  const ada = await home.createPerson()
  const [one, other] = [await home.begin(), await home.begin({ instance: 1 })]
  await Promise.all([one, other].map((tab) => tab.password(ada.username, ada.password)))
  expect((await Promise.all([one.finish(), other.finish()])).map(({ kind }) => kind)).toEqual(['redirect', 'redirect'])
  expect(await eventsOf(ada.id)).toEqual(['PostSignIn', 'PostSignIn'])
  await home.sql(`UPDATE interactions SET finished_at = now() - interval '11 seconds' WHERE id = $1`, [one.id])
  expect((await one.finish()).kind).toBe('over')
})
