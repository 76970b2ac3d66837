import { expect, onTestFinished, test } from 'vitest'
import { managementScopes } from '../../issuer/base/authorization.ts'
import { migrations } from '../../migrations/index.ts'
import { migrate } from '../../platform/database/database.ts'
import { sha256 } from '../../platform/secret.ts'
import { createTestDatabase } from '../support/database.ts'
import { startTestIssuer } from '../support/issuer.ts'

/** A database that an older version has filled. */

const indicators = ['http://management.test/api', 'https://default.logto.app/api']
const secret = 'the secret of the first start'

/**
 * Before the ids and names of the Management API were those that existing clients know: as that version's first start
 * left it.
 */
const filledByOlderVersion = async () => {
  const steps = migrations.findIndex(({ name }) => name === '0025-hook-event')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  for (const [number, indicator] of indicators.entries()) {
    await sql(`INSERT INTO resources (id, name, indicator, is_management) VALUES ($1, 'Management API', $2, true)`, [
      `resource-${number}`,
      indicator,
    ])
    // In the order of their ids they are listed another way.
    const names = Object.keys(managementScopes).toReversed()
    await sql(
      `INSERT INTO scopes (id, resource_id, name, description)
       SELECT $1 || '-' || lpad(n::text, 2, '0'), $1, name, 'As it was' FROM unnest($2::text[]) WITH ORDINALITY AS one (name, n)`,
      [`resource-${number}`, names],
    )
  }
  await sql(`INSERT INTO roles (id, name, description, type)
    VALUES ('old-role', 'Management API access', 'Holds every permission of the Management API', 'MachineToMachine')`)
  await sql(`INSERT INTO role_scopes SELECT 'old-role', id FROM scopes WHERE name = 'all'`)
  await sql(`INSERT INTO applications (id, name, description, type, custom_data)
    VALUES ('first', 'Bootstrap', 'Holds every permission of the Management API', 'MachineToMachine', '{"bootstrap": true}')`)
  await sql(`INSERT INTO application_secrets (application_id, name, digest) VALUES ('first', 'Bootstrap secret', $1)`, [
    sha256(secret),
  ])
  await sql(`INSERT INTO application_roles VALUES ('first', 'old-role')`)
  // Its callers could take this name, which meant nothing yet.
  await sql(`INSERT INTO roles (id, name, description, type)
    VALUES ('theirs', 'Logto Management API access', 'Moved from elsewhere', 'MachineToMachine')`)
  await sql(
    `INSERT INTO users (id, name, primary_phone) VALUES ('ada', 'Ada', '610412345678'), ('bob', 'Bob', '99999')`,
  )
  return { old, sql }
}

const tables = [
  'resources',
  'scopes',
  'roles',
  'role_scopes',
  'applications',
  'application_secrets',
  'application_roles',
]

test('keeps its ids and names at every start of this version, and its first application does all it did', async () => {
  const { old, sql } = await filledByOlderVersion()
  const everything = () => Promise.all(tables.map((table) => sql(`SELECT * FROM ${table} ORDER BY 1, 2`)))
  const before = await everything()
  await migrate(old.database, migrations)
  expect(await everything()).toEqual(before)

  const config = {
    baseUrl: 'http://management.test',
    managementApiIndicators: [indicators[1]!],
    bootstrapClientId: undefined,
    bootstrapClientSecret: undefined,
  }
  const issuer = await startTestIssuer({ test: old, config, instances: 2 })
  onTestFinished(issuer.close)
  expect(issuer.instances.map(({ bootstrap }) => bootstrap)).toEqual([undefined, undefined])
  expect(await everything()).toEqual(before)

  for (const [number, resource] of indicators.entries()) {
    const token = await issuer.clientToken({ id: 'first', secret }, resource, 'all')
    const api = async (path: string) => (await issuer.api('GET', path, undefined, { token })).body
    expect(await api(`/resources/resource-${number}`)).toMatchObject({ name: 'Management API', indicator: resource })
    expect((await api(`/resources/management-api`)).code).toBe('entity.not_exists_with_id')
    expect(await api('/roles/theirs/scopes')).toEqual([])
    expect(await api('/roles/old-role/scopes')).toHaveLength(2)
    expect(await api('/users/ada')).toMatchObject({ name: 'Ada', primaryPhone: '610412345678' })
    const moved = await issuer.api('PATCH', '/users/bob', { name: `Bob ${number}`, primaryPhone: '99999' }, { token })
    expect(moved).toMatchObject({ status: 200, body: { name: `Bob ${number}`, primaryPhone: '99999' } })
  }
})

test('gets a new alias of the Management API under its own name for it', async () => {
  const { old, sql } = await filledByOlderVersion()
  await migrate(old.database, migrations)
  const config = {
    baseUrl: 'http://management.test',
    managementApiIndicators: ['https://another.test/api'],
    bootstrapClientId: 'first',
  }
  const issuer = await startTestIssuer({ test: old, config })
  onTestFinished(issuer.close)
  const found = await sql(`SELECT id, name FROM resources WHERE indicator = 'https://another.test/api'`)
  expect(found).toEqual([{ id: expect.stringMatching(/^[0-9a-z]{21}$/), name: 'Management API' }])
  expect(await sql(`SELECT name FROM roles WHERE id IN (SELECT role_id FROM role_scopes) ORDER BY 1`)).toEqual([
    { name: 'Management API access' },
  ])
})

test('hooks go on, also those that an issuer of the older version makes and changes meanwhile', async () => {
  const { old, sql } = await filledByOlderVersion()
  const insert = (id: string, events: string[]) =>
    sql(
      `INSERT INTO hooks (id, name, events, url, sealed_headers, retries, rate_limit, organization_ids, enabled)
       VALUES ($1, 'Old', $2, 'https://203.0.113.7/', NULL, NULL, NULL, NULL, true)`,
      [id, events],
    )
  await insert('before', ['PostRegister'])
  await migrate(old.database, migrations)
  await insert('beside', ['User.Created', 'PostSignIn'])
  const issuer = await startTestIssuer({
    test: old,
    config: { webhookTargets: { allowedNetworks: ['203.0.113.0/24'], allowHttp: false } },
  })
  onTestFinished(issuer.close)
  const made = await issuer.api('POST', '/hooks', { event: 'PostSignIn', config: { url: 'https://203.0.113.7/' } })
  expect(made).toMatchObject({ status: 201, body: { event: 'PostSignIn', events: [] } })
  // The signing keys of the others are sealed; this one's serves.
  await sql(`INSERT INTO hook_signing_keys (id, hook_id, sealed) SELECT hooks.id, hooks.id, sealed FROM hooks, hook_signing_keys
    WHERE hooks.id <> hook_id`)
  const shown = async () =>
    sql('SELECT id, event, events FROM hooks WHERE id IN ($1, $2, $3) ORDER BY created_at', [
      'before',
      'beside',
      made.body.id,
    ])
  expect(await shown()).toEqual([
    { id: 'before', event: null, events: ['PostRegister'] },
    { id: 'beside', event: null, events: ['User.Created', 'PostSignIn'] },
    { id: made.body.id, event: 'PostSignIn', events: ['PostSignIn'] },
  ])
  // As the older version changes it: without a word of `event`, which then says nothing any more.
  await sql(`UPDATE hooks SET events = ARRAY['Role.Created'] WHERE id = $1`, [made.body.id])
  expect((await issuer.api('GET', `/hooks/${made.body.id}`)).body).toMatchObject({
    event: null,
    events: ['Role.Created'],
  })
})

test('people go on: their addresses count as verified, also those that an issuer of the older version writes', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0026-sign-in')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  const insertUser = (id: string) =>
    sql(`INSERT INTO users (id, name, primary_email, primary_phone) VALUES ($1, 'Ada', $2, NULL)`, [
      id,
      `${id}@example.test`,
    ])
  await insertUser('before')
  await sql(`INSERT INTO impersonation_sessions (id, subject_id, client_id, creator_id, scopes, context, token_id, expires_at)
    VALUES ('an-impersonation', 'before', 'app', 'backend', '{}', '{}', 'jti', now() + interval '1 hour')`)
  await migrate(old.database, migrations)
  await insertUser('beside')
  const issuer = await startTestIssuer({ test: old, instances: 2 })
  onTestFinished(issuer.close)
  const verified = await sql('SELECT id, email_verified_at IS NOT NULL AS email FROM users ORDER BY id')
  expect(verified).toEqual([
    { id: 'before', email: true },
    { id: 'beside', email: true },
  ])
  // What signs in now is told apart from what was there.
  expect((await issuer.api('POST', '/impersonations/an-impersonation/end')).status).toBe(204)
  expect(await sql(`SELECT kind, value FROM revocations`)).toEqual([{ kind: 'sid', value: 'an-impersonation' }])
})
