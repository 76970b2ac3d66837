import { randomBytes } from 'node:crypto'
import { decodeProtectedHeader } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { managementScopes } from '../../issuer/base/authorization.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { lockoutKeys } from '../../issuer/directory/users/lockout/lockout-keys.ts'
import { newKeyPair } from '../../issuer/tokens/keys/key-pair.ts'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { migrations } from '../../migrations/index.ts'
import { type Migration, migrate } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { sha256 } from '../../platform/secret.ts'
import { createCodeFlow, parametersOf } from '../support/code-flow.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createDeviceFlow } from '../support/device-flow.ts'
import { request, startTestIssuer } from '../support/issuer.ts'
import { passwords } from '../support/shared-parts.ts'

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
  // But for what the console stands on, which every start sees to.
  const everything = () =>
    Promise.all(
      tables.map((table) =>
        sql(`SELECT * FROM ${table} one WHERE to_jsonb(one)::text !~ '"(console-|surrogate-console)' ORDER BY 1, 2`),
      ),
    )
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
  const machines = `type = 'MachineToMachine'`
  expect(
    await sql(`SELECT name FROM roles WHERE ${machines} AND id IN (SELECT role_id FROM role_scopes) ORDER BY 1`),
  ).toEqual([{ name: 'Management API access' }])
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

/** A row in every table that has none: what must be there, of the right type. */
const fillEveryTable = async (
  sql: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>,
  special: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
) => {
  const columns = (await sql(
    `SELECT c.table_name AS "table", c.column_name AS name, c.udt_name AS type,
       c.is_nullable = 'NO' AND c.column_default IS NULL AND c.is_identity = 'NO' AND c.is_generated = 'NEVER' AS required
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.table_name NOT LIKE 'knex%'
     ORDER BY c.ordinal_position`,
  )) as { table: string; name: string; type: string; required: boolean }[]
  const references = (await sql(
    `SELECT conrelid::regclass::text AS "table", a.attname AS name, confrelid::regclass::text AS "of", b.attname AS "ofName"
     FROM pg_constraint CROSS JOIN unnest(conkey, confkey) AS pair (one, other)
       JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = one
       JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = other
     WHERE contype = 'f'`,
  )) as { table: string; name: string; of: string; ofName: string }[]
  const values: Record<string, (table: string) => unknown> = {
    bytea: (table) => sha256(table),
    timestamptz: () => new Date(),
    jsonb: () => '{}',
    bool: () => false,
    _text: () => [],
    uuid: () => '00000000-0000-4000-8000-000000000000',
    varchar: (table) => `x_${table}`.slice(0, 12),
    text: (table) => `x_${table}`,
  }
  const waiting = new Set(columns.map(({ table }) => table))
  const filled = [...waiting]
  while (waiting.size > 0) {
    for (const table of waiting) {
      const own = references.filter((reference) => reference.table === table)
      if (own.some(({ of }) => of !== table && waiting.has(of))) continue
      waiting.delete(table)
      if ((await sql(`SELECT FROM ${table} LIMIT 1`)).length > 0) continue
      const row: Record<string, unknown> = {}
      for (const { name, type, required } of columns.filter((column) => column.table === table)) {
        const reference = own.find((one) => one.name === name)
        const given = special[table]?.[name]
        if (given !== undefined) row[name] = given
        else if (!required) continue
        else if (reference) {
          const [target] = await sql(`SELECT ${reference.ofName} AS value FROM ${reference.of} LIMIT 1`)
          row[name] = target!['value']
        } else row[name] = (values[type] ?? (() => 1))(table)
      }
      const names = Object.keys(row)
      await sql(
        `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, n) => `$${n + 1}`).join(', ')})`,
        Object.values(row),
      ).catch((cause) => {
        throw new Error(`${table}: ${cause.message}`, { cause })
      })
    }
  }
  return filled
}

type KeyPair = Awaited<ReturnType<typeof newKeyPair>>
const keyRow = ({ kid, algorithm, publicJwk, privateJwk }: KeyPair, state: string) => ({
  ...{ kid, algorithm, state, private_jwk: privateJwk },
  public_jwk: JSON.stringify(publicJwk),
  activated_at: new Date(),
})

/** Brings it to the newest schema. What was there is there, and new columns beside it. */
const migrateKeeping = async ({ database }: TestDatabase, tables: readonly string[]) => {
  const everything = async () => {
    const contents = await Promise.all(
      tables.map((table) => database.pool.query(`SELECT to_jsonb(t) AS row FROM ${table} t ORDER BY 1::text`)),
    )
    return Object.fromEntries(tables.map((table, n) => [table, contents[n]!.rows.map((found) => found.row)]))
  }
  const before = await everything()
  await migrate(database, migrations)
  expect(await everything()).toMatchObject(before)
}

test('an issuer of the older version beside it suspends people, introspects and rotates keys, and neither breaks the other', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0026-sign-in')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  const keyEncryptionKey = randomBytes(32)
  const envelope = createEnvelope({ current: keyEncryptionKey })
  const pairs = [await newKeyPair('ES256', envelope), await newKeyPair('ES256', envelope)] as const
  const tables = await fillEveryTable(sql, {
    signing_keys: keyRow(pairs[0], 'active'),
    logs: { result: 'Success' },
    roles: { type: 'User' },
    organization_roles: { type: 'User' },
    applications: { type: 'SPA' },
    revocations: { kind: 'sid', seq: 0 },
    deliveries: { test: true, payload: Buffer.from('{}') },
    claims_scripts: { token_type: 'client-credentials', script: 'const getCustomJwtClaims = async () => ({})' },
  })
  expect(tables.length).toBeGreaterThan(30)
  await migrateKeeping(old, tables)

  const issuer = await startTestIssuer({ test: old, instances: 2, config: { keyEncryptionKey } })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const [client, person, browser] = [await flow.createClient(), await flow.createPerson(), flow.browser()]
  const { body: tokens } = await flow.redeem(client, await flow.signIn(browser, client, person))
  expect(await flow.userinfo(tokens.access_token)).toBe(200)

  // Its introspection knows impersonation sessions only: what is of a sign-in it takes for ended.
  const introspected = (token: string) =>
    sql(
      `WITH token AS (SELECT *, ARRAY[user_id::text] AS people FROM opaque_tokens
         WHERE digest = $1 AND revoked_at IS NULL AND expires_at > now())
       SELECT user_id FROM token
       WHERE NOT EXISTS (SELECT FROM revocations r WHERE r.kind = 'sid' AND r.value = session_id)
         AND (session_id IS NULL OR EXISTS (SELECT FROM impersonation_sessions WHERE id = session_id AND ended_at IS NULL))
         AND NOT EXISTS (SELECT FROM unnest(people) AS person
           WHERE NOT EXISTS (SELECT FROM users WHERE id = person AND NOT is_suspended))
         AND EXISTS (SELECT FROM applications WHERE id = client_id)`,
      [tokenDigest('opaque-token', token)],
    )
  expect(await introspected(tokens.access_token)).toEqual([])
  const web = await issuer.createApplication({ allowTokenExchange: true })
  const impersonating = await issuer.actorToken(web, person.id)
  expect(await introspected(impersonating)).toEqual([{ user_id: person.id }])

  // Its suspension knows no sessions.
  const suspend = async (isSuspended: boolean) => {
    await sql('UPDATE users SET is_suspended = $2, updated_at = now() WHERE id = $1', [person.id, isSuspended])
    await sql('DELETE FROM opaque_tokens WHERE user_id = $1', [person.id])
    await sql(
      `INSERT INTO revocations (seq, kind, value, issued_before, expires_at)
       VALUES (nextval('revocation_numbers'), 'sub', $1, clock_timestamp(), now() + interval '7 days')`,
      [person.id],
    )
  }
  await suspend(true)
  for (const instance of [0, 1]) {
    expect(await flow.userinfo(tokens.access_token, instance)).toBe(401)
    expect(await flow.refresh(client, tokens.refresh_token, instance)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'user_suspended' },
    })
  }
  expect(parametersOf(await flow.ask(browser, client, { prompt: 'none' }))).toMatchObject({ error: 'login_required' })

  // Its rotation: the next key is published, then signs; the chain of ID tokens is none of its business.
  const idTokenKeys = await sql('SELECT kid, state FROM id_token_keys')
  expect(idTokenKeys).toHaveLength(1)
  const { kid, algorithm, state, public_jwk, private_jwk } = keyRow(pairs[1], 'next')
  await sql(
    `INSERT INTO signing_keys (kid, algorithm, state, public_jwk, private_jwk, created_at, activated_at)
     VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp() + interval '1 hour')`,
    [kid, algorithm, state, public_jwk, private_jwk],
  )
  const notify = () => sql(`SELECT pg_notify('surrogate_signing_keys', '')`)
  await notify()
  const published = async (url: string): Promise<string[]> =>
    (await request(`${url}/oidc/jwks`)).body.keys.map((key: { kid: string }) => key.kid)
  for (const url of issuer.urls) await expect.poll(() => published(url)).toContain(kid)
  await sql(`UPDATE signing_keys SET state = 'retiring', private_jwk = NULL, retired_at = clock_timestamp(),
    expires_at = clock_timestamp() + (token_life + 600) * interval '1 second' WHERE state = 'active'`)
  await sql(`UPDATE signing_keys SET state = 'active', activated_at = clock_timestamp() WHERE state = 'next'`)
  await notify()
  const signedWith = async () =>
    decodeProtectedHeader(await issuer.clientToken(issuer.bootstrap, issuer.managementResource, 'all')).kid
  await expect.poll(signedWith).toBe(kid)
  for (const url of issuer.urls) expect(await published(url)).toEqual(expect.arrayContaining([pairs[0].kid, kid]))
  expect(await sql('SELECT kid, state FROM id_token_keys')).toEqual(idTokenKeys)

  // Of the reactivated person, also when it is done there, what was signed in before is over or asked anew.
  await suspend(false)
  const again = await flow.redeem(client, await flow.signIn(flow.browser(), client, person))
  expect(decodeProtectedHeader(again.body.id_token).kid).toBe(kid)
  expect(await flow.userinfo(again.body.access_token, 1)).toBe(200)
})

test('an issuer of the older version beside it deletes people and applications, sets addresses and passwords, and takes tokens back', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0026-sign-in')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await migrate(old.database, migrations)
  const issuer = await startTestIssuer({ test: old, instances: 2 })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const client = await flow.createClient()
  const signedIn = async (at = client) => {
    const [person, browser] = [await flow.createPerson(), flow.browser()]
    const code = await flow.signIn(browser, at, person, { scope: 'openid offline_access email' })
    const { body } = await flow.redeem(at, code)
    expect(await flow.userinfo(body.access_token, 1)).toBe(200)
    return { person, browser, tokens: body }
  }
  const silently = async (browser: ReturnType<typeof flow.browser>, at = client) =>
    parametersOf(await flow.ask(browser, at, { prompt: 'none' }))
  /** What it revokes of somebody: `sub` or `client`, and the opaque tokens. */
  const revokeAll = async (kind: 'sub' | 'client', value: string) => {
    await sql(`DELETE FROM opaque_tokens WHERE ${kind === 'sub' ? 'user_id' : 'client_id'} = $1`, [value])
    await sql(
      `INSERT INTO revocations (seq, kind, value, issued_before, expires_at)
       VALUES (nextval('revocation_numbers'), $1, $2, clock_timestamp(), now() + interval '7 days')`,
      [kind, value],
    )
  }

  // It deletes a person: what signing in has left goes along.
  const deleted = await signedIn()
  await sql('DELETE FROM users WHERE id = $1', [deleted.person.id])
  await revokeAll('sub', deleted.person.id)
  for (const instance of [0, 1]) {
    expect(await flow.userinfo(deleted.tokens.access_token, instance)).toBe(401)
    expect(await flow.refresh(client, deleted.tokens.refresh_token, instance)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
  }
  expect(await silently(deleted.browser)).toMatchObject({ error: 'login_required' })
  for (const table of ['sessions', 'authorizations', 'proofs', 'known_devices'])
    expect(await sql(`SELECT FROM ${table} WHERE user_id = $1`, [deleted.person.id]), table).toEqual([])

  // An application: its tokens end, and a sign-in that is under way there; people stay signed in elsewhere.
  const doomed = await flow.createClient()
  const there = await signedIn(doomed)
  const waiting = flow.browser()
  const page = await flow.ask(waiting, doomed)
  await sql('DELETE FROM applications WHERE id = $1', [doomed.id])
  await revokeAll('client', doomed.id)
  expect(await flow.userinfo(there.tokens.access_token)).toBe(401)
  expect((await flow.refresh(doomed, there.tokens.refresh_token)).body).toMatchObject({ error: 'invalid_client' })
  expect(await waiting.submit(page, flow.credentials(there.person))).toMatchObject({ status: 400, location: undefined })
  expect(await silently(there.browser)).toHaveProperty('code')

  // An address: the caller of the Management API answers for it, so it counts as verified.
  const moved = await signedIn()
  await sql('UPDATE users SET primary_email = $2, updated_at = now() WHERE id = $1', [moved.person.id, 'new@x.test'])
  const headers = { authorization: `Bearer ${moved.tokens.access_token}` }
  expect((await request(`${issuer.url}/oidc/me`, { headers })).body).toMatchObject({
    email: 'new@x.test',
    email_verified: true,
  })

  // A password: the next sign-in needs the new one, but what was signed in stays, which is why the changelog says to
  // stop older issuers first.
  const partner = await flow.createClient({ type: 'SPA', isThirdParty: true })
  const half = flow.browser()
  const consent = await half.submit(await flow.ask(half, partner), flow.credentials(moved.person))
  const other = await flow.createPerson()
  await sql(
    `UPDATE users SET password_digest = o.password_digest, password_algorithm = o.password_algorithm, updated_at = now()
     FROM (SELECT * FROM users WHERE id = $2) o WHERE users.id = $1`,
    [moved.person.id, other.id],
  )
  expect((await half.submit(consent, { choice: 'allow' }, { with: 'choice' })).location).toBeUndefined()
  const refused = flow.browser()
  expect(
    (await refused.submit(await flow.ask(refused, client), flow.credentials(moved.person))).location,
  ).toBeUndefined()
  const entered = { username: moved.person.username, password: other.password, id: moved.person.id }
  expect(await flow.signIn(flow.browser(), client, entered)).toEqual(expect.any(String))
  const { status, body: refreshed } = await flow.refresh(client, moved.tokens.refresh_token)
  expect(status).toBe(200)

  // A client gives an access token up there: that one ends, and not, as here, its sign-in.
  const taken = await sql(
    `UPDATE opaque_tokens SET revoked_at = now()
     WHERE digest = $1 AND client_id = $2 AND revoked_at IS NULL AND expires_at > now() RETURNING session_id AS sid`,
    [tokenDigest('opaque-token', refreshed.access_token), client.id],
  )
  expect(taken).toEqual([{ sid: expect.stringMatching(/^ps_/) }])
  expect(
    await sql(`UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2 WHERE id = $1 RETURNING id`, [
      taken[0].sid,
      client.id,
    ]),
  ).toEqual([])
  for (const instance of [0, 1]) expect(await flow.userinfo(refreshed.access_token, instance)).toBe(401)
  expect(await flow.refresh(client, refreshed.refresh_token)).toMatchObject({ status: 200 })
})

/** As an issuer of the version before the second half of signing in keeps a proof of a password. */
const olderProof = `WITH person AS (SELECT id FROM users WHERE id = $2 FOR KEY SHARE),
   interaction AS (
     UPDATE interactions SET user_id = $2, state = (state - 'busyUntil') || $3::jsonb
     WHERE id = $1 AND finished_at IS NULL AND expires_at > now() AND EXISTS (SELECT FROM person) RETURNING id),
   void AS (
     UPDATE proofs SET consumed_at = now()
     WHERE interaction_id = (SELECT id FROM interaction) AND consumed_at IS NULL
       AND (kind = $5 OR user_id IS DISTINCT FROM $2))
   INSERT INTO proofs (id, interaction_id, user_id, kind, purpose, data, verified_at, expires_at)
   SELECT $4, id, $2, $5, 'sign_in', $6::jsonb, now(), now() + interval '10 minutes' FROM interaction`

/** The proofs that it reads. */
const olderProofs = `SELECT p.kind FROM proofs p JOIN interactions i ON i.id = p.interaction_id
   WHERE i.id = $1 AND p.user_id = i.user_id AND p.purpose = 'sign_in' AND p.verified_at IS NOT NULL
     AND p.consumed_at IS NULL AND p.expires_at > now()`

test('sign-ins that are under way when the second half comes go on, locks hold, and nobody has a factor or lacks one', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0028-interactions')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  const keyEncryptionKey = randomBytes(32)
  const envelope = createEnvelope({ current: keyEncryptionKey })
  const keys = lockoutKeys(await createHmacs(old.database, envelope))
  const password = 'as good as ever'
  const { digest, algorithm } = await passwords.hash(password)
  const columns = 'id, name, username, primary_email, password_digest, password_algorithm, is_suspended'
  const insertUser = (id: string, { digest: own = digest as string | null, isSuspended = false } = {}) =>
    sql(`INSERT INTO users (${columns}) VALUES ($1, $1, $1, $2, $3, $4, $5)`, [
      ...[id, `${id}@example.test`, own, own === null ? null : algorithm, isSuspended],
    ])
  for (const id of ['ada', 'bob', 'locked']) await insertUser(id)
  await insertUser('federated', { digest: null })
  await insertUser('suspended', { isSuspended: true })
  await insertUser('unverified')
  await sql(`UPDATE users SET email_verified_at = NULL WHERE id = 'unverified'`)
  await sql(`INSERT INTO applications (id, name, type, oidc_client_metadata) VALUES ('shop', 'Shop', 'SPA', $1)`, [
    JSON.stringify({ redirectUris: ['https://shop.example.test/callback'] }),
  ])
  const request = {
    ...{
      clientId: 'shop',
      redirectUri: 'https://shop.example.test/callback',
      responseMode: 'query',
      scopes: ['openid'],
    },
    ...{ resourceScopes: {}, resources: [], prompts: [], uiLocales: [], acrValues: [], wantsOfflineAccess: false },
    codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  }
  const begin = async (id: string) => {
    const browser = randomBytes(32).toString('base64url')
    await sql(
      `INSERT INTO interactions (id, browser, address, client_id, request, expires_at)
       VALUES ($1, $2, '203.0.113.7', 'shop', $3, now() + interval '1 hour')`,
      [id, tokenDigest('browser', browser), JSON.stringify(request)],
    )
    return { id, browser }
  }
  let proofs = 0
  const prove = async ({ id }: { id: string }, userId: string) => {
    const data = {
      identifier: { type: 'username', value: userId },
      digest: sha256(`password-digest:${digest}`).toString('hex'),
    }
    await sql(olderProof, [id, userId, '{"keep":true}', `older-proof-${++proofs}`, 'password', JSON.stringify(data)])
  }
  const name = (n: number) => `interactionofbefore${String(n).padStart(2, '0')}`
  const [proven, waiting] = [await begin(name(1)), await begin(name(2))]
  await prove(proven, 'ada')
  await sql(
    `INSERT INTO sign_in_failures (key, count, since, locks, locked_until) VALUES ($1, 10, now(), 1, now() + interval '10 minutes')`,
    [keys.user('locked')],
  )
  const tables = await fillEveryTable(sql, {
    ...{ logs: { result: 'Success' }, roles: { type: 'User' }, organization_roles: { type: 'User' } },
    revocations: { kind: 'sid', seq: 0 },
    pushed_requests: { kind: 'pushed' },
    authorizations: { id: 'ps_authorization' },
    deliveries: { test: true, payload: Buffer.from('{}') },
    claims_scripts: { token_type: 'client-credentials', script: 'const getCustomJwtClaims = async () => ({})' },
    signing_keys: keyRow(await newKeyPair('ES256', envelope), 'active'),
    id_token_keys: keyRow(await newKeyPair('RS256', envelope), 'active'),
  })
  await migrateKeeping(old, tables)

  const issuer = await startTestIssuer({ test: old, instances: 2, config: { keyEncryptionKey } })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const visit = ({ id, browser: cookie }: { id: string; browser: string }) => {
    const browser = flow.browser()
    browser.cookies.set('surrogate_browser', cookie)
    return { browser, page: () => browser.get(`/sign-in/${id}`) }
  }
  const leads = (location: string | undefined) =>
    expect(location).toMatch(/^https:\/\/shop\.example\.test\/callback\?code=/)

  // Proven there, finished here; begun there, signed in here.
  leads((await visit(proven).page()).location)
  const other = visit(waiting)
  const page = await other.page()
  const as = (username: string) => ({ identifier: username, password, choice: 'sign_in' })
  expect((await other.browser.submit(page, as('locked'))).text).toMatch(/minutes/)
  expect((await other.browser.submit(page, as('federated'))).status).toBe(400)
  leads((await other.browser.submit(page, as('bob'))).location)

  // An older issuer beside it, as it should not be: what it writes is understood, and it does not
  // read what it does not know.
  const [beside, shared] = [await begin(name(3)), await begin(name(4))]
  await prove(beside, 'unverified')
  leads((await visit(beside).page()).location)
  const sharedVisit = visit(shared)
  await sharedVisit.page()
  await sql(
    `INSERT INTO proofs (id, interaction_id, user_id, kind, purpose, secret, expires_at)
     VALUES ('pending-here', $1, 'ada', 'email_code', 'sign_in', '\\x00', now() + interval '5 minutes')`,
    [shared.id],
  )
  await prove(shared, 'ada')
  expect(await sql(olderProofs, [shared.id])).toEqual([{ kind: 'password' }])
  // Who registers here is nobody of those who prove something there.
  await sql(`UPDATE interactions SET event = 'Register' WHERE id = $1`, [shared.id])
  expect((await sharedVisit.page()).location ?? '').not.toContain('code=')
  await sql(`UPDATE interactions SET event = 'SignIn' WHERE id = $1`, [shared.id])
  leads((await sharedVisit.page()).location)

  // A password that it sets does what it did there.
  await sql(`UPDATE users SET password_digest = $2, password_algorithm = $3, updated_at = now() WHERE id = $1`, [
    ...['federated', digest, algorithm],
  ])
  const last = visit(await begin(name(5)))
  leads((await last.browser.submit(await last.page(), as('federated'))).location)
  expect(
    await sql(`SELECT count(*)::integer AS total FROM users WHERE mfa_skipped_at IS NOT NULL OR password_expired
      OR password_changed_at IS NOT NULL OR webauthn_handle IS NOT NULL`),
  ).toEqual([{ total: 0 }])
}, 60_000)

test('a sign-in that is under way when passkeys begin to be offered leads on, and the next one offers one', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0035-passkey-offers')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name, mfa_skipped_at) VALUES ('skipper', 'Skipper', now())`)
  await migrate(old.database, migrations)
  // A second factor that was put off is another thing.
  expect(await sql('SELECT id FROM users WHERE passkey_skipped_at IS NOT NULL')).toEqual([])

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const enabled = { enabled: true, showPasskeyButton: true, allowAutofill: true }
  await issuer.api('PATCH', '/sign-in-exp', { passkeySignIn: enabled })
  const flow = createCodeFlow(issuer)
  const [client, person] = [await flow.createClient(), await flow.createPerson()]
  // The page of the older version has no field that says what its browser can do.
  const earlier = flow.browser()
  const first = await flow.ask(earlier, client)
  const { csrf } = first.forms[0]!.fields
  const before = { ...first, forms: [{ ...first.forms[0]!, fields: { csrf: csrf! } }] }
  expect(parametersOf(await flow.send(earlier, before, flow.credentials(person)))).toHaveProperty('code')

  const browser = flow.browser()
  const page = await flow.ask(browser, client)
  const answer = await flow.send(browser, page, { ...flow.credentials(person), makesPasskeys: 'yes' })
  expect((await browser.get(answer.location!)).text).toContain('Sign in faster next time')
})

test('tokens of people go on when tokens begin to be bound to keys, also those that an older issuer makes', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0042-dpop')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name) VALUES ('ada', 'Ada')`)
  await sql(`INSERT INTO applications (id, name, description, type) VALUES ('shop', 'Shop', NULL, 'Native')`)
  await sql(`INSERT INTO sessions (id, digest, user_id, authenticated_at, amr, acr, interaction, idle_ttl, is_persistent, first_address,
      last_address, expires_at)
    VALUES ('a-session', '\\x00', 'ada', now(), '{pwd}', 'urn:surrogate:acr:basic', '{}', 3600, false, '127.0.0.1', '127.0.0.1', now() + interval '1 hour')`)
  // As that version writes them: it does not name the new columns.
  const signIn = async (sid: string) => {
    await sql(
      `INSERT INTO authorizations (id, session_id, user_id, client_id, scopes, resources, is_offline, authenticated_at, amr, acr,
         interaction, expires_at)
       VALUES ($1, 'a-session', 'ada', 'shop', '{openid,offline_access}', '{}', true, now(), '{pwd}', 'urn:surrogate:acr:basic', '{}',
         now() + interval '1 day')`,
      [sid],
    )
    await sql(
      `INSERT INTO refresh_tokens (digest, authorization_id, expires_at) VALUES ($1, $2, now() + interval '1 day')`,
      [tokenDigest('refresh-token', `refresh ${sid}`), sid],
    )
    await sql(
      `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, session_id, expires_at)
       VALUES ($1, 'ada', 'shop', 'openid', $2, now() + interval '1 hour')`,
      [tokenDigest('opaque-token', `opaque-${sid}`), sid],
    )
  }
  await signIn('ps_before')
  await migrate(old.database, migrations)
  await signIn('ps_beside')
  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  for (const sid of ['ps_before', 'ps_beside']) {
    expect(await flow.userinfo(`opaque-${sid}`)).toBe(200)
    const answer = await flow.refresh({ id: 'shop' }, `refresh ${sid}`)
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'Bearer', refresh_token: expect.any(String) } })
    expect(await flow.userinfo(answer.body.access_token)).toBe(200)
  }
  expect(await sql('SELECT count(*)::integer AS bound FROM refresh_tokens WHERE jkt IS NOT NULL')).toEqual([
    { bound: 0 },
  ])
})

test('what people prove about their accounts is unknown to an issuer of the version before, and its sign-ins lead on', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0037-account')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name) VALUES ('ada', 'Ada')`)
  await sql(`INSERT INTO proofs (id, user_id, kind, purpose, verified_at, expires_at)
    VALUES ('before', 'ada', 'password', 'reauth', now(), now() + interval '1 hour')`)
  await sql(`INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
    VALUES ('\\x00', 'ada', 'shop', 'openid', now() + interval '1 hour')`)
  await migrate(old.database, migrations)
  // What an issuer of the version before writes, then and now, is held by nobody and came of no exchange.
  await sql(`INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
    VALUES ('\\x01', 'ada', 'shop', 'openid', now() + interval '1 hour')`)
  expect(await sql('SELECT holder FROM proofs')).toEqual([{ holder: null }])
  expect(await sql('SELECT DISTINCT is_exchanged FROM opaque_tokens')).toEqual([{ is_exchanged: false }])

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const [client, person] = [await flow.createClient(), await flow.createPerson()]
  const code = await flow.signIn(flow.browser(), client, person, { scope: 'openid profile' })
  const { body } = await flow.redeem(client, code)
  const headers = { authorization: `Bearer ${body.access_token}`, 'logto-verification-id': 'before' }
  expect(await request(`${issuer.url}/api/my-account`, { headers })).toMatchObject({
    status: 200,
    body: { id: person.id },
  })
  expect(await request(`${issuer.url}/api/my-account/primary-email`, { method: 'DELETE', headers })).toMatchObject({
    status: 403,
  })
})

test('impersonations go on: sessions and tokens of an older version are read, used and ended as before', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0044-impersonation-requests')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name) VALUES ('carol', 'Carol'), ('sam', 'Sam')`)
  const insertSession = (id: string) =>
    sql(
      `INSERT INTO impersonation_sessions (id, subject_id, actor_id, actor_via, client_id, creator_id, scopes, context, token_id,
         expires_at)
       VALUES ($1, 'carol', 'sam', 'sign_in', 'desk', 'backend', '{read:orders}', '{}', 'jti', now() + interval '1 hour')`,
      [id],
    )
  const insertSubjectToken = (value: string) =>
    sql(
      `INSERT INTO subject_tokens (digest, user_id, creator_id, expires_at)
       VALUES ($1, 'carol', 'backend', now() + interval '5 minutes')`,
      [tokenDigest('subject-token', value)],
    )
  await insertSession('before')
  await insertSubjectToken('sub_before')
  await migrate(old.database, migrations)
  // An issuer of the older version is still at work.
  await insertSession('beside')
  await insertSubjectToken('sub_beside')
  await insertSubjectToken('sub_used')
  const consumed = await sql(
    `UPDATE subject_tokens SET consumed_at = now() WHERE digest = $1 AND consumed_at IS NULL RETURNING user_id`,
    [tokenDigest('subject-token', 'sub_used')],
  )
  expect(consumed).toEqual([{ user_id: 'carol' }])

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const desk = await issuer.createApplication()
  for (const token of ['sub_before', 'sub_beside'])
    expect(await issuer.exchange(desk, token, { scope: 'openid' })).toMatchObject({ status: 200 })
  for (const id of ['before', 'beside']) {
    const before = { id, actorVia: 'sign_in', actorSid: null, access: null, approvalId: null, endedAt: null }
    expect((await issuer.api('GET', `/impersonations/${id}`)).body).toMatchObject(before)
    expect((await issuer.api('POST', `/impersonations/${id}/end`)).status).toBe(204)
    expect((await issuer.api('GET', `/impersonations/${id}`)).body.endedAt).toEqual(expect.any(Number))
  }
})

test('who is signed in when back-channel logout comes is told of; third parties keep what they could ask for', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0041-logouts')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name) VALUES ('ada', 'Ada')`)
  await sql(
    `INSERT INTO applications (id, name, type, is_third_party, oidc_client_metadata)
     VALUES ('shop', 'Shop', 'SPA', false, $1), ('partner', 'Partner', 'SPA', true, '{}')`,
    [JSON.stringify({ backchannelLogoutUri: 'https://shop.example.test/logout' })],
  )
  await sql(`INSERT INTO resources (id, name, indicator) VALUES ('api', 'API', 'https://api.example.test')`)
  await sql(`INSERT INTO scopes (id, resource_id, name) VALUES ('read', 'api', 'read')`)
  await sql(`INSERT INTO organization_scopes (id, name) VALUES ('invite', 'invite')`)
  await sql(
    `INSERT INTO authorizations (id, session_id, user_id, client_id, scopes, resources, is_offline, authenticated_at,
       amr, acr, interaction, expires_at)
     SELECT 'ps_' || n, 's1', 'ada', 'shop', '{openid}', '{}', true, now(), '{pwd}', 'urn:surrogate:acr:basic', '{}',
       now() + interval '1 day' FROM generate_series(1, 2) n`,
  )
  await migrate(old.database, migrations)
  const issuer = await startTestIssuer({ test: old })
  onTestFinished(() => issuer.close())
  // An issuer of the version before tells nobody; ours does.
  await sql(`UPDATE authorizations SET ended_at = now(), end_reason = 'logout' WHERE id = 'ps_1'`)
  expect((await issuer.api('DELETE', '/users/ada/grants/ps_2')).status).toBe(204)
  expect(await sql('SELECT authorization_id AS id, state FROM logout_deliveries')).toEqual([
    { id: 'ps_2', state: 'waiting' },
  ])
  expect(await sql('SELECT scope_id, in_organization FROM application_consent_scopes ORDER BY 1, 2')).toEqual([
    { scope_id: 'read', in_organization: false },
    { scope_id: 'read', in_organization: true },
  ])
  expect(
    await sql('SELECT application_id, organization_scope_id FROM application_consent_organization_scopes'),
  ).toEqual([{ application_id: 'partner', organization_scope_id: 'invite' }])
  expect(await sql('SELECT FROM application_consent_user_scopes')).toHaveLength(10)
})

test('an application that was made for devices before there were any signs people in on them, and on them alone', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0043-device-codes')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO applications (id, name, type, custom_client_metadata, oidc_client_metadata) VALUES
    ('tv', 'TV', 'Native', '{"isDeviceFlow": true}', '{}'),
    ('site', 'Site', 'SPA', '{"isDeviceFlow": true}', '{"redirectUris": ["https://shop.example.test/callback"]}')`)
  await migrateKeeping(old, ['applications'])

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const device = createDeviceFlow(issuer, flow)
  const [browser, person] = [flow.browser(), await flow.createPerson()]
  const { body: asked } = await device.begin({ id: 'tv' })
  await device.decide(browser, await device.toConfirmation(browser, asked.user_code, person), 'allow')
  expect(await device.poll({ id: 'tv' }, asked.device_code)).toMatchObject({ status: 200 })
  // What meant nothing for its type means nothing still, and stands in no way.
  expect(parametersOf(await browser.get(flow.authorizationUrl({ id: 'site' }, { prompt: [] })))).toHaveProperty('code')
  const patched = await issuer.api('PATCH', '/applications/site', { customClientMetadata: {} })
  expect(patched).toMatchObject({ status: 200, body: { customClientMetadata: {} } })
})

test('people sign in for their accounts beside sign-ins of before, which lead on; an older issuer writes as it did', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0038-account-sign-ins')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO applications (id, name, description, type) VALUES ('shop', 'Shop', '', 'SPA')`)
  const insert = (id: string) =>
    sql(
      `INSERT INTO interactions (id, browser, address, client_id, request, expires_at)
       VALUES ($1, '\\x00', '203.0.113.1', 'shop', '{}', now() + interval '1 hour')`,
      [id],
    )
  await insert('before')
  await migrate(old.database, migrations)
  await insert('beside')
  expect(await sql('SELECT id, client_id FROM interactions ORDER BY id')).toEqual([
    { id: 'before', client_id: 'shop' },
    { id: 'beside', client_id: 'shop' },
  ])

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const flow = createCodeFlow(issuer)
  const person = await flow.createPerson()
  const browser = flow.browser()
  const arrived = await browser.submit(await browser.get('/account'), flow.credentials(person))
  expect(arrived.url).toBe(`${issuer.baseUrl}/account`)
  // What an older issuer asks for an interaction finds none of the account, and all of its own.
  const seen = await sql('SELECT i.id FROM interactions i JOIN applications a ON a.id = i.client_id ORDER BY i.id')
  expect(seen).toEqual([{ id: 'before' }, { id: 'beside' }])
})

test('a database of before the console gets its roles and its application, whatever others are called', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0045-console')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO users (id, name, is_suspended) VALUES ('ada', 'Ada', false), ('bob', 'Bob', false)`)
  await sql(`INSERT INTO roles (id, name, description, type) VALUES ('theirs', 'Console owner', 'Ours', 'User')`)
  await sql(`INSERT INTO user_roles VALUES ('ada', 'theirs'), ('bob', 'theirs')`)
  await migrateKeeping(old, ['users', 'roles', 'user_roles'])
  // An issuer of the version before goes on.
  await sql(`UPDATE users SET is_suspended = true WHERE id = 'bob'`)
  await sql(`DELETE FROM user_roles WHERE user_id = 'bob'`)

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  expect(await sql(`SELECT id, name FROM roles WHERE name LIKE 'Console owner%' ORDER BY id`)).toEqual([
    { id: 'console-owner', name: 'Console owner (console-owner)' },
    { id: 'theirs', name: 'Console owner' },
  ])
  expect(await sql(`SELECT count(*)::int AS held FROM role_scopes WHERE role_id = 'theirs'`)).toEqual([{ held: 0 }])
  await sql(`INSERT INTO user_roles VALUES ('ada', 'console-owner')`)
  // It cannot take the last owner away either.
  await expect(sql(`DELETE FROM user_roles WHERE role_id = 'console-owner'`)).rejects.toMatchObject({
    constraint: 'console_last_owner',
  })
  await expect(sql(`UPDATE users SET is_suspended = true WHERE id = 'ada'`)).rejects.toMatchObject({
    constraint: 'console_last_owner',
  })
})

test('what was there has a version, and what an issuer of the older version writes counts', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0046-versions')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  await sql(`INSERT INTO applications (id, name, type) VALUES ('shop', 'Shop', 'SPA')`)
  await sql(`INSERT INTO resources (id, name, indicator) VALUES ('orders', 'Orders', 'https://orders.test')`)
  await sql(`INSERT INTO settings (name, value) VALUES ('session', '{"ttl": 7200}')`)
  await migrate(old.database, migrations)

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const change = (path: string, body: object, version: string) =>
    issuer.api('PATCH', path, body, { headers: { 'if-match': version } })
  for (const [path, body, asOlderVersion] of [
    ['/applications/shop', { name: 'Store' }, `UPDATE applications SET description = 'old' WHERE id = 'shop'`],
    ['/resources/orders', { name: 'Sales' }, `UPDATE resources SET access_token_ttl = 60 WHERE id = 'orders'`],
    ['/configs/oidc/session', { ttl: 3_600 }, `UPDATE settings SET value = '{"ttl": 1800}' WHERE name = 'session'`],
  ] as const) {
    const read = (await issuer.api('GET', path)).headers.get('etag')!
    await sql(asOlderVersion)
    expect((await change(path, body, read)).status).toBe(412)
    expect((await change(path, body, (await issuer.api('GET', path)).headers.get('etag')!)).status).toBe(200)
  }
})

test('searches find people in the order of a list, also those that an issuer of the older version writes', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0048-user-search-beside')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = async (text: string, values: unknown[] = []) => (await old.database.pool.query(text, values)).rows
  const insert = (id: string, name: string, daysAgo: number) =>
    sql(`INSERT INTO users (id, name, created_at) VALUES ($1, $2, now() - make_interval(days => $3))`, [
      ...[id, name],
      daysAgo,
    ])
  for (let number = 1; number <= 60; number++) await insert(`user${number}`, `Lovelace ${number}`, number)
  // Between any two steps, and while one copies, it writes as before: what is there already, what comes, and what goes.
  const up: Record<string, Migration['up']> = {
    async '0049-user-search-copy'(knex) {
      await migrations[steps + 1]!.up(knex)
      await sql(`DELETE FROM users WHERE id = 'user50'`)
    },
  }
  const stepwise = migrations.map((one) => ({ ...one, up: up[one.name] ?? one.up }))
  for (const step of [1, 2, 3]) {
    await migrate(old.database, stepwise.slice(0, steps + step))
    await insert(`user${60 + step}`, `Lovelace ${60 + step}`, 60 + step)
    await sql(`UPDATE users SET name = 'Hopper' WHERE id = $1`, [`user${2 * step}`])
    await sql(`UPDATE users SET name = name || ' again' WHERE id = 'user10'`)
    await sql(`DELETE FROM users WHERE id = $1`, [`user${2 * step + 1}`])
    expect(await sql(`SELECT count(*)::int AS found FROM user_search WHERE body LIKE '%hopper%'`)).toEqual([
      { found: step },
    ])
  }

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  const found = async (query: string): Promise<string[]> =>
    (await issuer.api('GET', `/users?search=%25lovelace%25&page_size=20&${query}`)).body.map(
      ({ id }: { id: string }) => id,
    )
  const gone = ['user2', 'user3', 'user4', 'user5', 'user6', 'user7', 'user50']
  const expected = Array.from({ length: 63 }, (_, index) => `user${index + 1}`).filter((id) => !gone.includes(id))
  expect([...(await found('page=1')), ...(await found('page=2')), ...(await found('page=3'))]).toEqual(expected)
  expect(await found(`after=${expected[19]}`)).toEqual(expected.slice(20, 40))
  expect(await found(`before=${expected[40]}`)).toEqual(expected.slice(20, 40))
  expect((await issuer.api('GET', '/users?search=%25again%20again%20again%25')).body).toMatchObject([{ id: 'user10' }])
  // A row that is moved in time.
  await sql(`UPDATE users SET created_at = now() WHERE id = 'user61'`)
  expect((await found('page=1'))[0]).toBe('user61')
})
