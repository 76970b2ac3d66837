import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { reencrypt } from '../../../issuer/maintenance/reencrypt.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { type ManagementTest, startManagement } from '../../support/management.ts'

/** Scripts of custom claims by the Management API. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api?.close())
beforeEach(() => api.database.knex('claims_scripts').delete())

const base = '/configs/jwt-customizer'
const script = 'const getCustomJwtClaims = () => ({ plan: "gold" })'
const other = 'const getCustomJwtClaims = () => ({ plan: "silver" })'

test('a script is put, replaced, changed, read and deleted', async () => {
  const first = { script, environmentVariables: { KEY: 'value' }, contextSample: { user: { id: 'u' } } }
  expect(await api.expect(201, 'PUT', `${base}/access-token`, first)).toEqual({ ...first, blockIssuanceOnError: true })
  const second = { script: other, tokenSample: { jti: 't' }, blockIssuanceOnError: false }
  expect(await api.expect(200, 'PUT', `${base}/access-token`, second)).toEqual(second)
  expect(await api.expect(200, 'GET', `${base}/access-token`)).toEqual(second)

  const changed = { ...second, environmentVariables: { A: '1' } }
  expect(await api.expect(200, 'PATCH', `${base}/access-token`, { environmentVariables: { A: '1' } })).toEqual(changed)
  await api.expect(201, 'PUT', `${base}/client-credentials`, { script })
  expect(await api.expect(200, 'GET', base)).toEqual([
    { key: 'jwt.accessToken', value: changed },
    { key: 'jwt.clientCredentials', value: { script, blockIssuanceOnError: true } },
  ])
  await api.expect(204, 'DELETE', `${base}/access-token`)
  expect(await api.expect(404, 'DELETE', `${base}/access-token`)).toMatchObject({ code: 'entity.not_found' })
  for (const [method, body] of [['GET'], ['PATCH', { script }]] as const) {
    expect(await api.expect(404, method, `${base}/access-token`, body)).toMatchObject({
      code: 'entity.not_exists_with_id',
      data: { id: 'access-token' },
    })
  }
})

test('a body is strict, and bounded', async () => {
  for (const body of [
    {},
    { script: '' },
    { script: 'x'.repeat(70_000) },
    { script, environmentVariables: { A: 1 } },
    { script, environmentVariables: { A: 'x'.repeat(40_000) } },
    { script, blockIssuanceOnError: 'yes' },
    { script, unknown: 1 },
  ]) {
    expect(await api.expect(400, 'PUT', `${base}/access-token`, body)).toMatchObject({ code: 'guard.invalid_input' })
  }
  await api.expect(400, 'PUT', `${base}/id-token`, { script })
  expect(await api.expect(200, 'GET', base)).toEqual([])
})

test('a script that could never work is refused, and nothing of it stays', async () => {
  for (const [broken, message] of [
    ['const getCustomJwtClaims = (', /^SyntaxError/],
    ['const other = 1', /does not define/],
    ['throw new Error("at once")', /at once/],
    ['for (;;);', /100 ms/],
  ] as const) {
    const answer = await api.expect(422, 'PUT', `${base}/access-token`, { script: broken })
    expect(answer).toMatchObject({ code: 'jwt_customizer.general', data: { message: expect.stringMatching(message) } })
  }
  expect(await api.expect(200, 'GET', base)).toEqual([])
})

test('environment variables are encrypted at rest, in no log, and can be brought under another key', async () => {
  const value = 'an-environment-variable-of-the-script'
  await api.expect(201, 'PUT', `${base}/access-token`, { script, environmentVariables: { KEY: value } })
  const [row] = await api.database.knex('claims_scripts').select()
  expect(JSON.stringify(row)).not.toContain(value)
  expect(row.sealed_environment.toString('latin1')).not.toContain(value)
  const logs = await api.expect(200, 'GET', '/logs?logKey=Management.putClaimsScript')
  expect(logs[0].payload).toMatchObject({ fields: ['script', 'environmentVariables'] })
  expect(JSON.stringify(logs) + api.logged()).not.toContain(value)
  const foreign = createEnvelope({ current: Buffer.alloc(32, 1), previous: Buffer.alloc(32, 2) })
  const { unreadable } = await reencrypt({ database: api.database, envelope: foreign })
  expect(unreadable).toContain('claims_scripts.sealed_environment access-token')
})

test('only holders of the permission come near: environment variables are not for readers', async () => {
  for (const scope of ['read', 'users', 'applications', 'keys']) {
    const token = api.token({ scope })
    await api.expect(403, 'GET', base, undefined, { token })
    await api.expect(403, 'PUT', `${base}/access-token`, { script }, { token })
    await api.expect(403, 'POST', `${base}/test`, { tokenType: 'access-token', script, token: {} }, { token })
  }
  await api.expect(201, 'PUT', `${base}/access-token`, { script }, { token: api.token({ scope: 'claims' }) })
})

const tried = (body: string, members: object = {}) => ({
  tokenType: 'access-token',
  script: `const getCustomJwtClaims = ({ token, context, environmentVariables, api }) => { ${body} }`,
  token: { jti: 'T' },
  context: { user: { id: 'U' } },
  environmentVariables: { KEY: 'sekret-value' },
  ...members,
})

test('a script is tried out with what it would be given', async () => {
  const body = tried(
    'return { id: context.user.id, of: token.jti, key: environmentVariables.KEY.length, sub: "forged" }',
  )
  expect(await api.expect(200, 'POST', `${base}/test`, body)).toEqual({ id: 'U', of: 'T', key: 12 })
})

test('a script that is tried out denies with 403 and fails with 422, without the values of its environment', async () => {
  expect(await api.expect(403, 'POST', `${base}/test`, tried('api.denyAccess("Not you.")'))).toMatchObject({
    code: 'jwt_customizer.denied',
    details: 'Not you.',
  })
  const failing: [string, string, string][] = [
    ['throw new Error("with " + environmentVariables.KEY)', 'error', 'Error: with [KEY] (line 1)'],
    ['return [1]', 'result', 'It returned an array: an object is needed.'],
    ['for (;;);', 'cpu', 'It took more than 100 ms of processor time.'],
    ['return new Promise(() => {})', 'unsettled', 'It waits for a promise that nothing settles.'],
  ]
  for (const [body, failure, message] of failing) {
    expect(await api.expect(422, 'POST', `${base}/test`, tried(body))).toMatchObject({
      code: 'jwt_customizer.general',
      data: { failure, message },
    })
  }
})

test('changes at the same time follow each other', async () => {
  await api.expect(201, 'PUT', `${base}/access-token`, { script })
  const patches = Array.from({ length: 8 }, (_, n) => ({ environmentVariables: { N: String(n) } }))
  await Promise.all([
    ...patches.map((patch) => api.expect(200, 'PATCH', `${base}/access-token`, patch)),
    api.expect(200, 'PATCH', `${base}/access-token`, { blockIssuanceOnError: false }),
  ])
  expect(await api.expect(200, 'GET', `${base}/access-token`)).toMatchObject({ script, blockIssuanceOnError: false })
})
