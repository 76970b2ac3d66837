import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordEvent } from '../../../../events/outbox.ts'
import type { Recording } from '../../../../issuer/base/recording.ts'
import { join } from '../../../../issuer/directory/organizations/jit/join.ts'
import { createPerson, type NewPerson } from '../../../../issuer/directory/people/create-person.ts'
import { changePassword } from '../../../../issuer/directory/users/new-password.ts'
import { readPhone } from '../../../../issuer/directory/users/phone.ts'
import { createDatabase, type Database } from '../../../../platform/database/database.ts'
import { newId } from '../../../../platform/ids.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'

let first: TestDatabase
let databases: [Database, Database]
beforeAll(async () => {
  first = await createTestDatabase()
  databases = [first.database, createDatabase({ connection: first.connection, logger: silentLogger })]
})
afterAll(async () => {
  await databases[1].close()
  await first.close()
})

const request = {
  ...{ ip: '203.0.113.7', userAgent: 'a browser', method: 'POST', path: '/sign-in/x', matchedRoute: '/sign-in/:id' },
  ...{ params: {}, status: 303 },
}

const within = <Result>(work: (recording: Recording) => Promise<Result>, database: Database = databases[0]) =>
  database.transaction((trx) => work({ trx, record: (event) => recordEvent(trx, { ...event, request }) }))
const register = (person: Partial<NewPerson>, database?: Database) =>
  within((recording) => createPerson(recording, { id: newId(12), ...person }), database)

const rows = async <Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> =>
  (await first.database.pool.query(sql, values)).rows as Row[]
const eventsOf = async (id: string) =>
  (await rows<{ payload: Buffer }>('SELECT payload FROM outbox WHERE entity_id = $1 ORDER BY seq', [id])).map(
    ({ payload }) => JSON.parse(payload.toString()),
  )

const organization = async (domains: string[], roles: string[] = []) => {
  const id = newId(12)
  await rows('INSERT INTO organizations (id, name) VALUES ($1, $1)', [id])
  for (const domain of domains) await rows('INSERT INTO organization_jit_email_domains VALUES ($1, $2)', [id, domain])
  for (const role of roles) {
    await rows(`INSERT INTO organization_roles (id, name, type) VALUES ($1, $1, 'User') ON CONFLICT DO NOTHING`, [role])
    await rows('INSERT INTO organization_jit_roles VALUES ($1, $2)', [id, role])
  }
  return id
}

test('somebody who registers is a user with all that was staged, default roles, and the organizations of the address', async () => {
  await rows(`INSERT INTO roles (id, name, description, type, is_default) VALUES
    ('default', 'default', '', 'User', true), ('other', 'other', '', 'User', false), ('m2m', 'm2m', '', 'MachineToMachine', true)`)
  const one = await organization(['one.test'], ['member', 'guest'])
  const two = await organization(['one.test', 'two.test'])
  const other = await organization(['other.test'], ['member'])
  const id = newId(12)
  const created = await register({
    ...{ id, username: 'ada', primaryEmail: 'Ada@ONE.test', phone: readPhone('4407700900123'), name: 'Ada' },
    ...{ password: { digest: 'digest', algorithm: 'Argon2id' }, profile: { givenName: 'Ada' }, customData: { a: 1 } },
  })
  expect(created).toEqual({
    outcome: 'created',
    user: expect.objectContaining({
      ...{ id, username: 'ada', primaryEmail: 'Ada@ONE.test', primaryPhone: '447700900123', name: 'Ada' },
      ...{ hasPassword: true, profile: { givenName: 'Ada' }, customData: { a: 1 }, isSuspended: false },
    }),
  })
  expect(await rows('SELECT role_id FROM user_roles WHERE user_id = $1', [id])).toEqual([{ role_id: 'default' }])
  const members = await rows('SELECT organization_id AS o FROM organization_users WHERE user_id = $1 ORDER BY 1', [id])
  expect(members).toEqual([one, two].sort().map((o) => ({ o })))
  const roles = await rows(
    'SELECT organization_role_id AS r FROM organization_user_roles WHERE user_id = $1 AND organization_id = $2 ORDER BY 1',
    [id, one],
  )
  expect(roles).toEqual([{ r: 'guest' }, { r: 'member' }])
  expect(await eventsOf(id)).toMatchObject([{ event: 'User.Created', version: 1, data: { id, username: 'ada' } }])
  for (const joined of [one, two]) {
    expect(await eventsOf(joined)).toMatchObject([
      { event: 'Organization.Membership.Updated', organizationId: joined, data: null, addedUserIds: [id] },
    ])
  }
  expect(await eventsOf(other)).toEqual([])
})

test('what is not given is neither there nor verified', async () => {
  const id = newId(12)
  await register({ id, username: 'bare' })
  expect(
    await rows(
      'SELECT email_verified_at, phone_verified_at, password_changed_at, primary_email, password_digest FROM users WHERE id = $1',
      [id],
    ),
  ).toEqual([
    {
      ...{ email_verified_at: null, phone_verified_at: null, password_changed_at: null },
      ...{ primary_email: null, password_digest: null },
    },
  ])
})

test('what somebody has comes back as a value, in whatever case or spelling, and leaves nothing behind', async () => {
  await register({ username: 'grace', primaryEmail: 'grace@example.test', phone: readPhone('61412345678') })
  const before = await rows('SELECT count(*) FROM users')
  expect(await register({ username: 'grace' })).toEqual({ outcome: 'username_already_in_use' })
  expect(await register({ primaryEmail: 'Grace@Example.test' })).toEqual({ outcome: 'email_already_in_use' })
  expect(await register({ phone: readPhone('610412345678') })).toEqual({ outcome: 'phone_already_in_use' })
  expect(await register({ username: 'GRACE', isUsernameCaseSensitive: false })).toEqual({
    outcome: 'username_already_in_use',
  })
  expect(await rows('SELECT count(*) FROM users')).toEqual(before)
  expect(await register({ username: 'GRACE' })).toMatchObject({ outcome: 'created' })
})

test('the same id for two people is our mistake, and throws', async () => {
  const id = newId(12)
  await register({ id })
  await expect(register({ id, username: 'second_of_id' })).rejects.toThrow('the id of a new user is in use')
})

test.each([
  ['username', () => ({ username: 'raced' }), 'username_already_in_use'],
  [
    'email',
    (n: number) => ({ primaryEmail: n % 2 ? 'Raced@example.test' : 'raced@example.test' }),
    'email_already_in_use',
  ],
  ['phone', () => ({ phone: readPhone('4917012345678') }), 'phone_already_in_use'],
  [
    'username in other cases',
    (n: number) => ({ username: n % 2 ? 'Cased' : 'cased', isUsernameCaseSensitive: false }),
    'username_already_in_use',
  ],
] as const)(
  'of 50 people who come with the same %s at once, over two issuers, one gets it',
  async (_, person, taken) => {
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) => register(person(index), databases[index % 2])),
    )
    const outcomes = results.map(({ outcome }) => outcome).sort()
    expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1)
    expect(outcomes.filter((outcome) => outcome === taken)).toHaveLength(49)
  },
)

test('50 people of one domain who come at once all join, each as an event of its own version', async () => {
  const id = await organization(['many.test'], ['member'])
  await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      register({ primaryEmail: `person-${index}@many.test` }, databases[index % 2]),
    ),
  )
  expect(await rows('SELECT count(*) FROM organization_users WHERE organization_id = $1', [id])).toEqual([
    { count: 50 },
  ])
  const versions = (await eventsOf(id)).map(({ version }) => version)
  expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
})

test('who is a member already is left alone, and an organization that is gone is no obstacle', async () => {
  const there = await organization([], ['member'])
  const id = newId(12)
  await register({ id })
  await rows('INSERT INTO organization_users (organization_id, user_id) VALUES ($1, $2)', [there, id])
  expect(await within((recording) => join(recording, id, [there, 'gone']))).toEqual([])
  expect(await rows('SELECT FROM organization_user_roles WHERE user_id = $1', [id])).toEqual([])
  expect(await eventsOf(there)).toEqual([])
})

test('a new password is not expired, ends every session but the one that made it, and no browser is known any more', async () => {
  const id = newId(12)
  await register({ id, password: { digest: 'old', algorithm: 'Argon2id' } })
  await rows('UPDATE users SET password_expired = true, password_changed_at = NULL WHERE id = $1', [id])
  await rows('INSERT INTO known_devices (digest, user_id) VALUES ($1, $2)', [Buffer.from('device'), id])
  for (const session of ['spared', 'ended']) {
    await rows(
      `INSERT INTO sessions (id, digest, user_id, is_persistent, authenticated_at, amr, acr, interaction, first_address,
         last_address, idle_ttl, expires_at)
       VALUES ($1, $2, $3, false, now(), '{}', '', '{}', '', '', 60, now() + interval '1 hour')`,
      [session, Buffer.from(session), id],
    )
  }
  const told: string[] = []
  const change = {
    ...{ userId: id, digest: { digest: 'new', algorithm: 'Argon2id' as const }, endedBy: id },
    notify: async (owner: { id: string }) => void told.push(owner.id),
  }
  const changed = await within((recording) => changePassword(recording, { ...change, exceptSessionId: 'spared' }))
  expect(changed).toMatchObject({
    ...{ password_digest: 'new', password_expired: false, password_changed_at: expect.any(Date) },
  })
  expect(await rows('SELECT id, end_reason FROM sessions WHERE user_id = $1 ORDER BY id', [id])).toEqual([
    { id: 'ended', end_reason: 'password_changed' },
    { id: 'spared', end_reason: null },
  ])
  expect(await rows('SELECT FROM known_devices WHERE user_id = $1', [id])).toEqual([])
  expect((await eventsOf(id)).map(({ event }) => event)).toEqual(['User.Created', 'User.Data.Updated', 'Session.Ended'])
  expect(await within((recording) => changePassword(recording, { ...change, userId: 'nobody' }))).toBeUndefined()
  expect(told).toEqual([id])
})
