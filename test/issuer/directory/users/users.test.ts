import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPasswordHasher } from '../../../../issuer/directory/users/password.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement({ passwords: createPasswordHasher() })
})
afterAll(() => api.close())

const blank = {
  username: null,
  primaryEmail: null,
  primaryPhone: null,
  name: null,
  avatar: null,
  customData: {},
  identities: {},
  lastSignInAt: null,
  profile: {},
  applicationId: null,
  cimdClientId: null,
  isSuspended: false,
  hasPassword: false,
}

/** A user of the test's own; forgets the events of making it. */
const someUser = async (data: object = {}) => {
  const user = await api.expect(200, 'POST', '/users', data)
  await api.events()
  return user
}

const eventOf = (type: string, userId: string, version: number, data: unknown, request: object) => [
  expect.objectContaining({
    event: type,
    version,
    data,
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    createdAt: expect.stringMatching(/Z$/),
    ip: '127.0.0.1',
    path: `/users/${userId}`,
    params: { userId },
    ...request,
  }),
]

describe('creating', () => {
  test('an empty user', async () => {
    const user = await api.expect(200, 'POST', '/users', {})
    expect(user).toEqual({
      ...blank,
      id: expect.stringMatching(/^[0-9a-z]{12}$/),
      createdAt: expect.any(Number),
      updatedAt: user.createdAt,
    })
    expect(Math.abs(user.createdAt - Date.now())).toBeLessThan(60_000)
    expect(await api.expect(200, 'GET', `/users/${user.id}`)).toEqual(user)
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'User.Created',
        version: 1,
        data: user,
        path: '/users',
        matchedRoute: '/users',
        params: {},
        method: 'POST',
        status: 200,
      }),
    ])
  })

  test('a user with everything', async () => {
    const input = {
      username: 'Ada_1',
      primaryEmail: 'ada@example.test',
      primaryPhone: '12025550123',
      name: 'Ada',
      avatar: 'https://example.test/a.png',
      customData: { level: 3, nested: { a: [1, null] } },
      profile: { givenName: 'Ada', address: { locality: 'London' } },
    }
    const user = await api.expect(200, 'POST', '/users', { ...input, password: 'correct horse', ignored: true })
    expect(user).toEqual({
      ...blank,
      ...input,
      hasPassword: true,
      id: user.id,
      createdAt: user.createdAt,
      updatedAt: user.updatedAt,
    })
    expect(await api.expect(200, 'GET', `/users/${user.id}/custom-data`)).toEqual(input.customData)
    expect(await api.expect(200, 'GET', `/users/${user.id}/has-password`)).toEqual({ hasPassword: true })
  })

  test('stores the password as Argon2id, and an imported digest as it is', async () => {
    const own = await someUser({ password: 'correct horse' })
    const digest = '$2b$10$abcdefghijklmnopqrstuuJ8mQk2d7P1cP0KQH2P6o1Yv5i3E1cWy'
    const imported = await someUser({ passwordDigest: digest, passwordAlgorithm: 'Bcrypt' })
    expect(imported.hasPassword).toBe(true)
    const stored = (id: string) =>
      api.database.knex('users').where({ id }).first('password_digest', 'password_algorithm')
    expect(await stored(own.id)).toEqual({
      password_digest: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/),
      password_algorithm: 'Argon2id',
    })
    expect(await stored(imported.id)).toEqual({ password_digest: digest, password_algorithm: 'Bcrypt' })
  })

  test.each([
    [{ password: 'a', passwordDigest: 'b', passwordAlgorithm: 'MD5' }, 400, 'user.password_and_digest'],
    [{ passwordDigest: 'b' }, 400, 'user.password_algorithm_required'],
    [{ passwordDigest: 'b', passwordAlgorithm: 'ROT13' }, 400, 'guard.invalid_input'],
    [{ username: 'with space' }, 400, 'guard.invalid_input'],
    [{ primaryPhone: '+1555' }, 400, 'guard.invalid_input'],
    [{ avatar: 'not a url' }, 400, 'guard.invalid_input'],
    [{ customData: [] }, 400, 'guard.invalid_input'],
    [{ name: 'a'.repeat(129) }, 400, 'guard.invalid_input'],
    // Half a million characters on which a backtracking pattern would take minutes.
    [{ primaryEmail: `a@${'.a'.repeat(250_000)}@` }, 400, 'guard.invalid_input'],
  ])('refuses %o', async (body, status, code) => {
    await api.events()
    expect(await api.call('POST', '/users', body)).toMatchObject({ status, body: { code } })
    expect(await api.events()).toEqual([])
  })

  test('gives the default user roles, and only those', async () => {
    const role = (name: string, type: string, isDefault: boolean) =>
      api.expect(200, 'POST', '/roles', { name, description: name, type, isDefault })
    const member = await role('Member', 'User', true)
    await role('Machine', 'MachineToMachine', true)
    await role('Editor', 'User', false)
    const user = await someUser()
    expect(await api.expect(200, 'GET', `/users/${user.id}/roles`)).toEqual([member])
    await api.expect(204, 'DELETE', `/roles/${member.id}`)
  })
})

describe('identifiers', () => {
  test.each([
    ['username', 'taken', 'user.username_already_in_use'],
    ['primaryEmail', 'taken@example.test', 'user.email_already_in_use'],
    ['primaryPhone', '12025550124', 'user.phone_already_in_use'],
  ])('%s belongs to one user', async (field, value, code) => {
    const first = await someUser({ [field]: value })
    expect(await api.call('POST', '/users', { [field]: value })).toMatchObject({ status: 422, body: { code } })
    const other = await someUser()
    const collision = await api.call('PATCH', `/users/${other.id}`, { name: 'Changed', [field]: value })
    expect(collision).toMatchObject({ status: 422, body: { code } })
    expect(await api.expect(200, 'GET', `/users/${other.id}`)).toEqual(other)
    expect(await api.events()).toEqual([])
    await api.expect(200, 'PATCH', `/users/${first.id}`, { [field]: '' })
    await api.expect(200, 'PATCH', `/users/${other.id}`, { [field]: value })
  })

  test('of many who ask at once, one gets it, and the others leave nothing behind', async () => {
    await api.events()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => api.call('POST', '/users', { username: 'wanted', primaryPhone: '12025550125' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(422)])
    const codes = new Set(answers.filter(({ status }) => status === 422).map(({ body }) => body.code))
    expect([...codes]).toEqual(['user.username_already_in_use'])
    expect(await api.events()).toHaveLength(1)
    expect(await api.expect(200, 'GET', '/users?search.username=wanted')).toHaveLength(1)
  })

  test('cleared by null or "" are free for everybody', async () => {
    const users = [await someUser({ username: 'one' }), await someUser({ username: 'two' })]
    for (const user of users) {
      expect((await api.expect(200, 'PATCH', `/users/${user.id}`, { username: '', name: null })).username).toBeNull()
    }
  })
})

describe('changing', () => {
  const patchRequest = (part = '') => ({
    path: expect.stringContaining(part),
    matchedRoute: `/users/:userId${part}`,
    method: 'PATCH',
    status: 200,
  })

  test('replaces what is given, objects as a whole', async () => {
    const user = await someUser({ name: 'Ada', customData: { a: 1 }, profile: { nickname: 'A' } })
    const changed = await api.expect(200, 'PATCH', `/users/${user.id}`, { customData: { b: 2 }, profile: {} })
    expect(changed).toEqual({ ...user, customData: { b: 2 }, profile: {}, updatedAt: expect.any(Number) })
    expect(changed.updatedAt).toBeGreaterThanOrEqual(user.updatedAt)
    expect(await api.expect(200, 'GET', `/users/${user.id}`)).toEqual(changed)
    expect(await api.events()).toEqual(eventOf('User.Data.Updated', user.id, 2, changed, patchRequest()))
  })

  test('nothing changes nothing and tells nobody', async () => {
    const user = await someUser({ name: 'Ada', customData: { a: { b: 1, c: 2 } } })
    const same = { name: 'Ada', customData: { a: { c: 2, b: 1 } } }
    expect(await api.expect(200, 'PATCH', `/users/${user.id}`, same)).toEqual(user)
    expect(await api.expect(200, 'PATCH', `/users/${user.id}/custom-data`, { customData: {} })).toEqual(user.customData)
    expect(await api.expect(200, 'PATCH', `/users/${user.id}/is-suspended`, { isSuspended: false })).toEqual(user)
    expect(await api.events()).toEqual([])
  })

  test('with nothing in the body is refused', async () => {
    const user = await someUser()
    for (const body of [{}, { unknown: 1 }]) {
      expect(await api.call('PATCH', `/users/${user.id}`, body)).toMatchObject({
        status: 422,
        body: { code: 'entity.invalid_input' },
      })
    }
  })

  test('custom data merges at the first level', async () => {
    const user = await someUser({ customData: { a: { x: 1 }, b: 1 } })
    const merged = { a: { y: 2 }, b: 1, c: null }
    const answer = await api.expect(200, 'PATCH', `/users/${user.id}/custom-data`, {
      customData: { a: { y: 2 }, c: null },
    })
    expect(answer).toEqual(merged)
    expect(await api.events()).toEqual(
      eventOf('User.Data.Updated', user.id, 2, merged, { ...patchRequest('/custom-data') }),
    )
  })

  test('custom data may hold members with the names of built-in ones', async () => {
    const user = await someUser({ customData: { a: 1 } })
    const body = '{"customData":{"__proto__":{"polluted":true},"constructor":1}}'
    await api.expect(200, 'PATCH', `/users/${user.id}/custom-data`, body)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('the profile merges at the first level', async () => {
    const user = await someUser({ profile: { nickname: 'A', locale: 'en' } })
    const merged = { nickname: 'B', locale: 'en' }
    expect(await api.expect(200, 'PATCH', `/users/${user.id}/profile`, { profile: { nickname: 'B' } })).toEqual(merged)
    expect(await api.events()).toEqual(eventOf('User.Data.Updated', user.id, 2, merged, patchRequest('/profile')))
  })

  test('the password', async () => {
    const user = await someUser()
    const changed = await api.expect(200, 'PATCH', `/users/${user.id}/password`, { password: 'correct horse' })
    expect(changed).toEqual({ ...user, hasPassword: true, updatedAt: changed.updatedAt })
    expect(await api.events()).toEqual(eventOf('User.Data.Updated', user.id, 2, changed, patchRequest('/password')))
  })

  test('suspension and its end', async () => {
    const user = await someUser()
    const suspended = await api.expect(200, 'PATCH', `/users/${user.id}/is-suspended`, { isSuspended: true })
    expect(suspended).toEqual({ ...user, isSuspended: true, updatedAt: suspended.updatedAt })
    const again = await api.expect(200, 'PATCH', `/users/${user.id}/is-suspended`, { isSuspended: true })
    expect(again).toEqual(suspended)
    expect(await api.events()).toEqual(
      eventOf('User.SuspensionStatus.Updated', user.id, 2, suspended, patchRequest('/is-suspended')),
    )
    await api.expect(200, 'PATCH', `/users/${user.id}/is-suspended`, { isSuspended: false })
    expect((await api.events()).map(({ event, version }) => [event, version])).toEqual([
      ['User.SuspensionStatus.Updated', 3],
    ])
  })

  test('by many at once loses no change, and numbers their events without a gap', async () => {
    const user = await someUser()
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        api.expect(200, 'PATCH', `/users/${user.id}/custom-data`, { customData: { [`m${index}`]: index } }),
      ),
    )
    expect(Object.keys(await api.expect(200, 'GET', `/users/${user.id}/custom-data`))).toHaveLength(20)
    const events = await api.events()
    expect(events.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, index) => index + 2))
    expect(events.map(({ data }) => Object.keys(data as object).length)).toEqual(events.map((_, index) => index + 1))
  })

  test.each([
    ['GET', ''],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', ''],
    ['GET', '/custom-data'],
    ['GET', '/has-password'],
    ['PATCH', '/custom-data', { customData: {} }],
    ['PATCH', '/profile', { profile: {} }],
    ['PATCH', '/password', { password: 'x' }],
    ['PATCH', '/is-suspended', { isSuspended: true }],
    ['GET', '/roles'],
    ['POST', '/roles', { roleIds: ['x'] }],
    ['PUT', '/roles', { roleIds: [] }],
    ['DELETE', '/roles/x'],
  ])('an unknown user is 404: %s %s', async (method, part, body?: object) => {
    const answer = await api.call(method, `/users/nobody${part}`, body)
    expect(answer).toMatchObject({ status: 404, body: { code: 'entity.not_found' } })
  })
})

describe('deleting', () => {
  test('a user, whose last event carries what he was', async () => {
    const user = await someUser({ name: 'Ada', password: 'correct horse' })
    expect(await api.call('DELETE', `/users/${user.id}`)).toMatchObject({ status: 204, body: undefined })
    expect(await api.events()).toEqual(
      eventOf('User.Deleted', user.id, 2, user, { matchedRoute: '/users/:userId', method: 'DELETE', status: 204 }),
    )
    expect(await api.call('DELETE', `/users/${user.id}`)).toMatchObject({
      status: 404,
      body: { code: 'entity.not_found' },
    })
    expect(await api.events()).toEqual([])
  })

  test('by many at once happens once', async () => {
    const user = await someUser()
    const answers = await Promise.all(Array.from({ length: 8 }, () => api.call('DELETE', `/users/${user.id}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array(7).fill(404)])
    expect(await api.events()).toHaveLength(1)
  })

  test('oneself is refused', async () => {
    const user = await someUser()
    const token = api.token({ sub: user.id })
    expect(await api.call('DELETE', `/users/${user.id}`, undefined, { token })).toMatchObject({
      status: 400,
      body: { code: 'user.cannot_delete_self' },
    })
  })
})

describe('roles', () => {
  const someRole = async (name: string, type = 'User') => {
    const role = await api.expect(200, 'POST', '/roles', { name, description: name, type })
    await api.events()
    return role
  }

  test('are added, replaced and taken, without an event', async () => {
    const user = await someUser()
    const [reader, writer, owner] = [await someRole('reader'), await someRole('writer'), await someRole('owner')]
    const roles = async () =>
      (await api.expect(200, 'GET', `/users/${user.id}/roles`)).map(({ name }: { name: string }) => name)

    const add = (roleIds: string[]) => api.expect(201, 'POST', `/users/${user.id}/roles`, { roleIds })
    expect(await add([reader.id])).toEqual({ roleIds: [reader.id], addedRoleIds: [reader.id] })
    expect(await add([reader.id, writer.id])).toEqual({ roleIds: [reader.id, writer.id], addedRoleIds: [writer.id] })
    expect(await roles()).toEqual(['writer', 'reader'])
    expect(await api.expect(200, 'GET', `/users/${user.id}/roles?search.name=r%25`)).toEqual([reader])

    const replaced = await api.expect(200, 'PUT', `/users/${user.id}/roles`, { roleIds: [owner.id, writer.id] })
    expect(replaced).toEqual({ roleIds: [owner.id, writer.id] })
    expect(await roles()).toEqual(['owner', 'writer'])
    await api.expect(204, 'DELETE', `/users/${user.id}/roles/${owner.id}`)
    await api.expect(404, 'DELETE', `/users/${user.id}/roles/${owner.id}`)
    expect(await roles()).toEqual(['writer'])
    await api.expect(200, 'PUT', `/users/${user.id}/roles`, { roleIds: [] })
    expect(await roles()).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('that are unknown or of machines are refused, and none is added', async () => {
    const user = await someUser()
    const role = await someRole('some user role')
    const machine = await someRole('some machine role', 'MachineToMachine')
    for (const method of ['POST', 'PUT']) {
      const call = (roleIds: string[]) => api.call(method, `/users/${user.id}/roles`, { roleIds })
      expect(await call([role.id, 'unknown'])).toMatchObject({
        status: 404,
        body: { code: 'entity.not_exists_with_id' },
      })
      expect(await call([role.id, machine.id])).toMatchObject({ status: 422, body: { code: 'user.invalid_role_type' } })
    }
    expect(await api.expect(200, 'GET', `/users/${user.id}/roles`)).toEqual([])
  })

  test('replaced by two at once are those of one of them', async () => {
    const user = await someUser()
    const roles = await Promise.all(Array.from({ length: 6 }, (_, index) => someRole(`parallel ${index}`)))
    const halves = [roles.slice(0, 3), roles.slice(3)].map((half) => half.map(({ id }) => id).sort())
    for (let round = 0; round < 5; round++) {
      await Promise.all(halves.map((roleIds) => api.expect(200, 'PUT', `/users/${user.id}/roles`, { roleIds })))
      const after = (await api.expect(200, 'GET', `/users/${user.id}/roles`)).map(({ id }: { id: string }) => id).sort()
      expect(halves).toContainEqual(after)
    }
  })

  test('exclude users from a list', async () => {
    const role = await someRole('excluded')
    const [inside, outside] = [await someUser({ username: 'inside' }), await someUser({ username: 'outside' })]
    await api.expect(201, 'POST', `/users/${inside.id}/roles`, { roleIds: [role.id] })
    const rows = await api.expect(200, 'GET', `/users?search.username=%25side&excludeRoleId=${role.id}`)
    expect(rows).toEqual([outside])
  })
})

test('no answer, event, audit row or log line holds a password or its digest', async () => {
  const password = 'a-very-particular-password'
  const answers = [await api.call('POST', '/users', { username: 'careful', password })]
  const { id } = answers[0]!.body
  answers.push(await api.call('PATCH', `/users/${id}/password`, { password: `${password}-2` }))
  answers.push(await api.call('GET', `/users/${id}`), await api.call('GET', '/users'), await api.call('GET', '/logs'))
  answers.push(await api.call('POST', '/users', { username: 'careful', password }))
  await api.expect(204, 'DELETE', `/users/${id}`)
  const told = JSON.stringify([answers.map(({ body }) => body), await api.events()])
  expect(told).toContain('"hasPassword":true')
  const holding = ['particular', 'argon2', 'igest'].filter((text) => told.includes(text))
  expect(holding).toEqual([])
  expect(['particular', 'argon2'].filter((text) => api.logged().includes(text))).toEqual([])
})

test('every mutation leaves an audit row; a refused one leaves none', async () => {
  const user = await someUser({ name: 'Audited' })
  await api.expect(200, 'PATCH', `/users/${user.id}`, { name: 'Renamed' })
  await api.expect(422, 'PATCH', `/users/${user.id}`, {})
  const rows = await api.expect(200, 'GET', `/logs?userId=${user.id}`)
  expect(rows.map(({ key }: { key: string }) => key)).toEqual(['Management.updateUser', 'Management.createUser'])
  expect(rows[0]).toEqual({
    tenantId: 'default',
    id: expect.stringMatching(/^[0-9a-z]{21}$/),
    key: 'Management.updateUser',
    payload: {
      key: 'Management.updateUser',
      result: 'Success',
      applicationId: 'bootstrap',
      userId: user.id,
      subject: 'bootstrap',
      ip: '127.0.0.1',
      userAgent: expect.any(String),
      method: 'PATCH',
      path: `/users/${user.id}`,
      params: { userId: user.id },
      fields: ['name'],
      events: [{ type: 'User.Data.Updated', entity: { kind: 'user', id: user.id } }],
    },
    createdAt: expect.any(Number),
  })
  expect(await api.expect(200, 'GET', `/logs/${rows[0].id}`)).toEqual(rows[0])
})

test('the publisher is woken for events, and only for events', async () => {
  const before = api.wakes()
  const user = await api.expect(200, 'POST', '/users', {})
  expect(api.wakes()).toBe(before + 1)
  await api.expect(422, 'PATCH', `/users/${user.id}`, {})
  await api.expect(200, 'PATCH', `/users/${user.id}/is-suspended`, { isSuspended: false })
  await api.expect(200, 'PUT', `/users/${user.id}/roles`, { roleIds: [] })
  expect(api.wakes()).toBe(before + 1)
})
