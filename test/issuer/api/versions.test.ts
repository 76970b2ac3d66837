import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { takesIfMatch } from '../../../issuer/base/versions/entities.ts'
import { type CallOptions, type ManagementTest, startManagement } from '../../support/management.ts'
import { createFixtures, type Fixtures } from './openapi-fixtures.ts'
import { createRequests } from './openapi-requests.ts'

/** ETag and If-Match: nobody overwrites what they have not seen. */

let api: ManagementTest
let fixtures: Fixtures
// biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
let document: any
beforeAll(async () => {
  api = await startManagement()
  fixtures = await createFixtures(api)
  document = await (await fetch(`${api.url}/api/openapi.json`)).json()
})
afterAll(() => api.close())

const ifMatch = (value: string, options: CallOptions = {}): CallOptions => ({
  ...options,
  headers: { 'if-match': value },
})
const etagOf = async (path: string) => (await api.call('GET', path)).headers.get('etag')!

let counter = 0
const someRole = async (): Promise<{ id: string; path: string }> => {
  const { id } = await api.expect(200, 'POST', '/roles', { name: `Versioned ${++counter}`, description: 'first' })
  return { id, path: `/roles/${id}` }
}

/** An entity that can be read and changed, of each kind: its path, and two changes of it. */
const entities: [kind: string, path: () => string, change: (text: string) => object][] = [
  ['a user', () => `/users/${fixtures.ids['/users/{userId}']}`, (name) => ({ name })],
  ['a role', () => `/roles/${fixtures.ids['/roles/{id}']}`, (description) => ({ description })],
  ['a resource', () => `/resources/${fixtures.ids['/resources/{id}']}`, (name) => ({ name })],
  ['an application', () => `/applications/${fixtures.ids['/applications/{id}']}`, (name) => ({ name })],
  ['an organization', () => `/organizations/${fixtures.ids['/organizations/{id}']}`, (name) => ({ name })],
  [
    'an organization role',
    () => `/organization-roles/${fixtures.ids['/organization-roles/{id}']}`,
    (description) => ({ description }),
  ],
  [
    'an organization permission',
    () => `/organization-scopes/${fixtures.ids['/organization-scopes/{id}']}`,
    (description) => ({ description }),
  ],
  ['a hook', () => `/hooks/${fixtures.ids['/hooks/{id}']}`, (name) => ({ name })],
  [
    'a connector for messages',
    () => `/connectors/${fixtures.ids['/connectors/{id}']}`,
    (text) => ({ syncProfile: text === 'one' }),
  ],
  [
    'an identity provider',
    () => `/connectors/${fixtures.ids['createConnectorAuthorizationUri /connectors/{id}']}`,
    (text) => ({ syncProfile: text === 'one' }),
  ],
  ['the sign-in experience', () => '/sign-in-exp', (text) => ({ supportEmail: `${text}@example.test` })],
  ['the settings of accounts', () => '/account-center', (text) => ({ enabled: text === 'one' })],
  ['the settings of sessions', () => '/configs/oidc/session', (text) => ({ ttl: text === 'one' ? 7200 : 3600 })],
  [
    'the pages of an application',
    () => `/applications/${fixtures.ids['/applications/{id}']}/sign-in-experience`,
    (displayName) => ({ displayName }),
  ],
]

describe.each(entities)('%s', (_kind, path, change) => {
  test('has its version as ETag, and is changed only as the one that was read', async () => {
    const read = await etagOf(path())
    expect(read).toMatch(/^"\d+"$/)
    expect(await etagOf(path())).toBe(read)

    const first = await api.call('PATCH', path(), change('one'), ifMatch(read))
    expect(first.status).toBe(200)
    const changed = first.headers.get('etag')!
    expect(changed).not.toBe(read)
    expect(await etagOf(path())).toBe(changed)

    const logged = await api.database.knex('logs').count({ total: '*' }).first()
    const second = await api.call('PATCH', path(), change('two'), ifMatch(read))
    expect(second).toMatchObject({ status: 412, body: { code: 'entity.version_mismatch' } })
    expect(second.headers.get('etag')).toBe(changed)
    const current = await api.expect(200, 'GET', path())
    expect(second.body.data).toEqual({ current })
    expect(current).toMatchObject(first.body)
    // Refused is not done: no row of the audit trail either.
    expect(await api.database.knex('logs').count({ total: '*' }).first()).toEqual(logged)

    expect((await api.call('PATCH', path(), change('two'), ifMatch(changed))).status).toBe(200)
    // As ever, without the header.
    expect((await api.call('PATCH', path(), change('one'))).status).toBe(200)
  })
})

test('of several who read the same, one has their way', async () => {
  const races = [
    async () => {
      const { path } = await someRole()
      return { path, change: (name: string) => ({ description: name }) }
    },
    async () => {
      const { id } = await api.expect(200, 'POST', '/applications', { name: 'Raced', type: 'SPA' })
      return { path: `/applications/${id}`, change: (name: string) => ({ name }) }
    },
    // A setting that nobody has made: there is no row to lock.
    async () => {
      await api.database.knex('settings').where({ name: 'session' }).delete()
      await api.database.knex('entity_versions').where({ kind: 'setting', id: 'session' }).delete()
      return { path: '/configs/oidc/session', change: (_: string, index: number) => ({ ttl: 3_600 + index }) }
    },
  ]
  for (const race of races) {
    for (let round = 0; round < 5; round++) {
      const { path, change } = await race()
      const read = await etagOf(path)
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) =>
          api.call('PATCH', path, change(`writer ${index}`, index + 1), ifMatch(read)),
        ),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412, 412, 412, 412, 412])
      const winner = answers.find(({ status }) => status === 200)!
      expect(await api.expect(200, 'GET', path)).toMatchObject(winner.body)
      expect(await etagOf(path)).toBe(winner.headers.get('etag'))
    }
  }
})

test('one who has read it and one who has not never both take each other for the version before', async () => {
  for (let round = 0; round < 10; round++) {
    const { path } = await someRole()
    const read = await etagOf(path)
    const [plain, careful] = await Promise.all([
      api.call('PATCH', path, { description: 'plain' }),
      api.call('PATCH', path, { description: 'careful' }, ifMatch(read)),
    ])
    expect(plain.status).toBe(200)
    const { description } = await api.expect(200, 'GET', path)
    // Whoever was first: the careful one has overwritten nothing.
    expect([careful.status, description]).toEqual([careful.status, 'plain'])
    expect([200, 412]).toContain(careful.status)
  }
})

describe('the condition', () => {
  test('* is any version of what there is', async () => {
    const { path } = await someRole()
    expect((await api.call('PATCH', path, { description: 'x' }, ifMatch('*'))).status).toBe(200)
    expect((await api.call('PATCH', '/roles/none', { description: 'x' }, ifMatch('*'))).status).toBe(404)
  })

  test('may name several; a weak one is never the right one', async () => {
    const { path } = await someRole()
    const read = await etagOf(path)
    const attempt = (value: string) => api.call('PATCH', path, { description: 'first' }, ifMatch(value))
    expect((await attempt(`"a,b", ${read}`)).status).toBe(200)
    expect((await attempt(`, ${read} ,`)).status).toBe(200)
    expect((await attempt(`W/${read}`)).status).toBe(412)
    expect((await attempt(`"other", W/${read}`)).status).toBe(412)
  })

  test.each(['', 'abc', '"', '7', '"7', 'w/"7"', '"7" "8"', '*, "7"', '**', '"a b"', ','])(
    'that is %j is 400, and nothing happens',
    async (value) => {
      const { path } = await someRole()
      const answer = await api.call('PATCH', path, { description: 'changed' }, ifMatch(value))
      expect(answer).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
      expect((await api.expect(200, 'GET', path)).description).toBe('first')
    },
  )

  test('keeps deletions and what belongs to an entity too', async () => {
    const { id, path } = await someRole()
    const read = await etagOf(path)
    const scope = fixtures.ids['/resources/{resourceId}/scopes/{scopeId}']!
    await api.expect(201, 'POST', `${path}/scopes`, { scopeIds: [scope] })
    expect((await api.call('DELETE', `${path}/scopes/${scope}`, undefined, ifMatch(read))).status).toBe(412)
    expect((await api.call('DELETE', path, undefined, ifMatch(read))).status).toBe(412)
    const gone = await api.call('DELETE', path, undefined, ifMatch(await etagOf(path)))
    expect([gone.status, gone.headers.get('etag')]).toEqual([204, null])
    // What is not there is 404, whatever the condition.
    expect((await api.call('DELETE', `/roles/${id}`, undefined, ifMatch(read))).status).toBe(404)
  })
})

test('the record is shown to those only who may read it', async () => {
  const { ids } = fixtures
  const path = `/hooks/${ids['/hooks/{id}']}`
  const refused = await api.call('PATCH', path, { name: 'x' }, ifMatch('"0"', { token: api.token({ scope: 'hooks' }) }))
  expect(refused).toMatchObject({ status: 412, body: { data: { current: { id: ids['/hooks/{id}'] } } } })
  const forbidden = await api.call(
    'PATCH',
    path,
    { name: 'x' },
    ifMatch('"0"', { token: api.token({ scope: 'read' }) }),
  )
  expect(forbidden).toMatchObject({ status: 403 })
  expect(forbidden.body.data).not.toHaveProperty('current')
})

test('every change of an entity heeds the condition, and says so', async () => {
  const requests = createRequests(document)
  const deviations: string[] = []
  let count = 0
  // Nothing of it is changed: all are refused.
  const own = await createFixtures(api)
  for (const operation of requests.operations) {
    const route = api.routes.find(({ operationId }) => operationId === operation.operationId)
    if (route === undefined || !takesIfMatch(route)) continue
    count++
    const schema = requests.bodySchemaOf(operation)
    const names = Object.keys(schema?.properties ?? {}).filter(
      (name) => !['event', 'oidcClientMetadata', 'customClientMetadata'].includes(name),
    )
    const body = schema && requests.sampleObject(schema, operation.operationId, own, names)
    const path = requests.pathOf(operation, own)
    const { status, body: answer } = await api.call(operation.method, path, body, ifMatch('"1000000"'))
    if (status !== 412) deviations.push(`${operation.operationId}: ${status} ${JSON.stringify(answer)}`)
    const parameters = JSON.stringify(operation.definition.parameters)
    if (!parameters.includes('#/components/parameters/If-Match')) deviations.push(`${operation.operationId}: documents`)
  }
  expect(deviations).toEqual([])
  expect(count).toBeGreaterThan(40)
}, 300_000)

test('a change that is no event counts too: a relay disables a hook, an issuer of another version writes', async () => {
  const path = `/hooks/${fixtures.ids['/hooks/{id}']}`
  const read = await etagOf(path)
  const hook = api.database.knex('hooks').where({ id: fixtures.ids['/hooks/{id}'] })
  // Not how it goes with deliveries, which changes all the time.
  await hook.clone().update({ failures: 3, failing_since: new Date() })
  expect(await etagOf(path)).toBe(read)
  await hook.clone().update({ enabled: false, disabled_reason: 'gone' })
  expect((await api.call('PATCH', path, { enabled: true }, ifMatch(read))).status).toBe(412)
})
