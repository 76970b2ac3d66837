import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { webhookSecretOf } from '../../../../deliveries/hook-secrets.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { testRelayConfig } from '../../../support/relay.ts'
import { until } from '../../../support/until.ts'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ config: { webhookTargets: testRelayConfig } })
})
afterAll(() => issuer.close())
beforeEach(async () => {
  // What runs in the background locks some of these tables in another order.
  await until(() => issuer.database.pool.query('TRUNCATE hooks CASCADE'))
})

const newHook = { name: 'Audit', events: ['User.Created'], config: { url: 'http://127.0.0.1:8080/hook' } }
const create = async (members: Record<string, unknown> = {}) => {
  const { status, body } = await issuer.api('POST', '/hooks', { ...newHook, ...members })
  expect(status).toBe(201)
  return body
}

test('a hook is created, read, changed and deleted', async () => {
  const { status, body } = await issuer.api('POST', '/hooks', {
    name: 'Audit',
    events: ['User.Created', 'Role.Scopes.Update', 'User.Created'],
    config: { url: 'http://127.0.0.1:8080/hook', headers: { authorization: 'Bearer x' }, retries: 3 },
  })
  expect(status).toBe(201)
  expect(body).toEqual({
    tenantId: 'default',
    id: expect.stringMatching(/^[0-9a-z]{21}$/),
    name: 'Audit',
    event: null,
    events: ['User.Created', 'Role.Scopes.Updated'],
    config: { url: 'http://127.0.0.1:8080/hook', headers: { authorization: 'Bearer x' }, retries: 3 },
    organizationIds: null,
    signingKey: expect.stringMatching(/^[0-9A-Za-z]{32}$/),
    webhookSecret: webhookSecretOf(body.signingKey),
    enabled: true,
    disabledReason: null,
    createdAt: expect.any(Number),
  })
  expect(await issuer.api('GET', `/hooks/${body.id}`)).toMatchObject({ status: 200, body })
  expect(await issuer.api('GET', '/hooks')).toMatchObject({ status: 200, body: [body] })

  const changed = { ...body, name: 'Renamed', enabled: false, config: { url: 'http://127.0.0.1:9000/' } }
  const patch = { name: 'Renamed', enabled: false, config: { url: 'http://127.0.0.1:9000/' } }
  expect(await issuer.api('PATCH', `/hooks/${body.id}`, patch)).toMatchObject({ status: 200, body: changed })
  expect((await issuer.api('GET', `/hooks/${body.id}`)).body).toEqual(changed)
  expect((await issuer.api('PATCH', `/hooks/${body.id}`, patch)).body).toEqual(changed)

  expect(await issuer.api('DELETE', `/hooks/${body.id}`)).toMatchObject({ status: 204, body: '' })
  expect((await issuer.api('GET', `/hooks/${body.id}`)).body.code).toBe('entity.not_exists_with_id')
  // Changes of hooks are nobody's news.
  expect((await issuer.database.pool.query('SELECT * FROM outbox')).rows).toEqual([])
})

test('a hook that an existing client registers by `event` is answered as that client knows it', async () => {
  const { events: _, ...rest } = newHook
  const hook = await create({ events: undefined, event: 'PostRegister' })
  expect(hook).toMatchObject({ ...rest, event: 'PostRegister', events: [] })
  const path = `/hooks/${hook.id}`
  expect((await issuer.api('GET', path)).body).toEqual(hook)
  expect((await issuer.api('GET', '/hooks')).body).toEqual([hook])

  const changed = { ...hook, event: 'PostSignIn' }
  for (const patch of [{ event: 'PostSignIn' }, { event: 'PostSignIn' }, { event: null, enabled: true }])
    expect(await issuer.api('PATCH', path, patch)).toMatchObject({ status: 200, body: changed })
  expect((await issuer.api('GET', path)).body).toEqual(changed)
  expect((await issuer.api('PATCH', path, { name: 'Renamed' })).body).toEqual({ ...changed, name: 'Renamed' })

  // `events` says it all: what stands beside it means nothing.
  const both = { event: 'PostSignIn', events: ['User.Created', 'PostSignIn'] }
  expect((await issuer.api('PATCH', path, both)).body).toMatchObject({ event: null, events: both.events })
  expect(await create(both)).toMatchObject({ event: null, events: both.events })
  const unknown = { status: 400, body: { code: 'guard.invalid_input' } }
  expect(await issuer.api('PATCH', path, { event: 'PostSignIn.' })).toMatchObject(unknown)
  expect(await issuer.api('POST', '/hooks', { ...rest, event: null })).toMatchObject({
    status: 400,
    body: { code: 'hook.missing_events' },
  })
})

test('events of existing clients can be named, though nothing sends them yet', async () => {
  const events = ['PostSignInAdaptiveMfaTriggered', 'Grant.LimitExceeded']
  expect((await create({ events })).events).toEqual(events)
  for (const event of events) expect(await create({ events: undefined, event })).toMatchObject({ event, events: [] })
  const document = (await issuer.api('GET', '/openapi.json', undefined, { token: null })).body
  for (const event of events) expect(document.webhooks[event].post.summary).toMatch(/ Not sent yet\.$/)
})

test('a single hook shows its figures when asked to', async () => {
  const { id, ...hook } = await create()
  const path = `/hooks/${id}`
  const none = { executionStats: { successCount: 0, requestCount: 0 } }
  expect((await issuer.api('GET', path)).body).toEqual({ id, ...hook })
  expect((await issuer.api('GET', `${path}?includeExecutionStats=false`)).body).toEqual({ id, ...hook })
  for (const yes of ['true', '1'])
    expect((await issuer.api('GET', `${path}?includeExecutionStats=${yes}`)).body).toEqual({ id, ...hook, ...none })
  expect(await issuer.api('GET', '/hooks/missing?includeExecutionStats=true')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_exists_with_id' },
  })
})

test('secrets are sealed in the database', async () => {
  const hook = await create({ config: { ...newHook.config, headers: { authorization: 'Bearer top-secret' } } })
  const { rows } = await issuer.database.pool.query(
    `SELECT hooks::text || hook_signing_keys::text AS text, sealed_headers, sealed FROM hooks JOIN hook_signing_keys ON hook_id = hooks.id`,
  )
  expect(rows).toHaveLength(1)
  for (const bytes of [Buffer.from(rows[0].text), rows[0].sealed_headers, rows[0].sealed]) {
    expect(bytes.includes(hook.signingKey)).toBe(false)
    expect(bytes.includes('top-secret')).toBe(false)
  }
  expect(issuer.logged()).not.toContain(hook.signingKey)
  expect(issuer.logged()).not.toContain('top-secret')
})

const refusals: [string, Record<string, unknown>, number, string][] = [
  ['no events', { events: [] }, 400, 'hook.missing_events'],
  ['events absent', { events: undefined }, 400, 'hook.missing_events'],
  ['an unknown event', { events: ['User.Exploded'] }, 400, 'guard.invalid_input'],
  ['an empty name', { name: '' }, 400, 'guard.invalid_input'],
  ['a long name', { name: 'x'.repeat(257) }, 400, 'guard.invalid_input'],
  ['no config', { config: undefined }, 400, 'guard.invalid_input'],
  ['not a URL', { config: { url: 'nonsense' } }, 422, 'hook.target_not_allowed'],
  ['a private address', { config: { url: 'http://10.0.0.1/' } }, 422, 'hook.target_not_allowed'],
  ['a metadata address in decimal', { config: { url: 'http://2852039166/' } }, 422, 'hook.target_not_allowed'],
  ['another scheme', { config: { url: 'ftp://example.com/' } }, 422, 'hook.target_not_allowed'],
  ['userinfo', { config: { url: 'http://a:b@127.0.0.1:8080/' } }, 422, 'hook.target_not_allowed'],
  ['a database port', { config: { url: 'http://127.0.0.1:5432/' } }, 422, 'hook.target_not_allowed'],
  ['a reserved header', { config: { ...newHook.config, headers: { Host: 'x' } } }, 400, 'guard.invalid_input'],
  ['a signature header', { config: { ...newHook.config, headers: { 'Webhook-Id': 'x' } } }, 400, 'guard.invalid_input'],
  [
    'a line break in a header',
    { config: { ...newHook.config, headers: { a: 'b\r\nc: d' } } },
    400,
    'guard.invalid_input',
  ],
  [
    'a header name with a space',
    { config: { ...newHook.config, headers: { 'a b': 'c' } } },
    400,
    'guard.invalid_input',
  ],
  [
    'a header that frames',
    { config: { ...newHook.config, headers: { 'Content-Length': '1' } } },
    400,
    'guard.invalid_input',
  ],
  ['a hop-by-hop header', { config: { ...newHook.config, headers: { TE: 'trailers' } } }, 400, 'guard.invalid_input'],
  ['a cookie', { config: { ...newHook.config, headers: { Cookie: 'a=b' } } }, 400, 'guard.invalid_input'],
  [
    'a forged proxy header',
    { config: { ...newHook.config, headers: { 'X-Forwarded-For': '1.1.1.1' } } },
    400,
    'guard.invalid_input',
  ],
  [
    'a header name with a colon',
    { config: { ...newHook.config, headers: { 'a:b': 'c' } } },
    400,
    'guard.invalid_input',
  ],
  [
    'a header value beyond Latin-1',
    { config: { ...newHook.config, headers: { a: '日本' } } },
    400,
    'guard.invalid_input',
  ],
  ['a header value in Latin-1', { config: { ...newHook.config, headers: { a: 'é' } } }, 400, 'guard.invalid_input'],
  ['a large header', { config: { ...newHook.config, headers: { a: 'x'.repeat(4_097) } } }, 400, 'guard.invalid_input'],
  [
    '21 headers',
    {
      config: { ...newHook.config, headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`x-${n}`, ''])) },
    },
    400,
    'guard.invalid_input',
  ],
  ['no rate', { config: { ...newHook.config, rateLimit: 0 } }, 400, 'guard.invalid_input'],
  ['an endless rate', { config: { ...newHook.config, rateLimit: 600_001 } }, 400, 'guard.invalid_input'],
  ['a header twice', { config: { ...newHook.config, headers: { a: '1', A: '2' } } }, 400, 'guard.invalid_input'],
]
test.each(refusals)('%s is refused at creation and change', async (_name, members, status, code) => {
  expect(await issuer.api('POST', '/hooks', { ...newHook, ...members })).toMatchObject({ status, body: { code } })
  const hook = await create()
  if (Object.values(members)[0] !== undefined)
    expect(await issuer.api('PATCH', `/hooks/${hook.id}`, members)).toMatchObject({ status, body: { code } })
  expect((await issuer.api('GET', '/hooks')).body).toEqual([hook])
})

test('a hook that leads back to this service is refused: each change would make another', async () => {
  const { port, hostname } = new URL(issuer.baseUrl)
  for (const url of [
    `${issuer.baseUrl}/api/hooks`,
    issuer.baseUrl.toUpperCase(),
    `http://${hostname}.:${port}/`,
    `https://${hostname}:${port}/oidc/token`,
  ]) {
    const { status, body } = await issuer.api('POST', '/hooks', { ...newHook, config: { url } })
    expect([url, status, body.code]).toEqual([url, 422, 'hook.target_not_allowed'])
  }
  const hook = await create({ config: { url: `http://${hostname}:${port === '9999' ? 9998 : 9999}/` } })
  expect(hook.enabled).toBe(true)
})

test('20 headers of 4 kB and a rate limit are kept as they are', async () => {
  const headers = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`x-${n}`, 'y'.repeat(4_096)]))
  const hook = await create({ config: { ...newHook.config, headers, rateLimit: 600 } })
  expect(hook.config).toEqual({ ...newHook.config, headers, rateLimit: 600 })
  const patched = await issuer.api('PATCH', `/hooks/${hook.id}`, { config: newHook.config })
  expect(patched.body.config).toEqual(newHook.config)
})

test('unknown hooks have the codes of their routes', async () => {
  const codes = await Promise.all([
    issuer.api('GET', '/hooks/missing'),
    issuer.api('PATCH', '/hooks/missing', { name: 'x' }),
    issuer.api('DELETE', '/hooks/missing'),
    issuer.api('PATCH', '/hooks/missing/signing-key'),
    issuer.api('GET', '/hooks/missing/deliveries'),
    issuer.api('GET', '/hooks/missing/recent-logs'),
  ])
  expect(codes.map(({ status, body }) => `${status} ${body.code}`)).toEqual([
    '404 entity.not_exists_with_id',
    '404 entity.not_exists',
    '404 entity.not_found',
    '404 entity.not_exists',
    '404 entity.not_exists_with_id',
    '404 entity.not_exists_with_id',
  ])
  const hook = await create()
  expect((await issuer.api('PATCH', `/hooks/${hook.id}`, {})).body.code).toBe('entity.invalid_input')
})

test('signing keys are not for holders of `read`', async () => {
  const reader = await issuer.createMachine(issuer.managementResource, ['read', 'hooks'])
  const statusWith = async (scope: string, path: string) => {
    const token = await issuer.clientToken(reader, issuer.managementResource, scope)
    return (await issuer.api('GET', path, undefined, { token })).status
  }
  const { id } = await create()
  expect(await statusWith('read', `/hooks/${id}/signing-key`)).toBe(403)
  expect(await statusWith('hooks', `/hooks/${id}/signing-key`)).toBe(200)
  expect(await statusWith('read', `/hooks/${id}/deliveries`)).toBe(200)
})
