import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hookSecrets } from '../../../deliveries/hook-secrets.ts'
import { createConnectorStore } from '../../../deliveries/messages/connector-store.ts'
import { openMessage, sealMessage } from '../../../deliveries/messages/message.ts'
import { insertMessage } from '../../../deliveries/messages/message-store.ts'
import { reencrypt } from '../../../issuer/maintenance/reencrypt.ts'
import { sealedColumns } from '../../../issuer/maintenance/sealed-column-store.ts'
import { createSigningKeys } from '../../../issuer/tokens/keys/signing-keys.ts'
import { type Query, statement } from '../../../platform/database/database.ts'
import { createEnvelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const [old, fresh] = [randomBytes(32), randomBytes(32)]
const before = createEnvelope({ current: old })
const during = createEnvelope({ current: fresh, previous: old })
const after = createEnvelope({ current: fresh })

let home: TestDatabase
beforeEach(async () => {
  home = await createTestDatabase()
})
afterEach(() => home.close())

const sql = (text: string, values: unknown[] = []) => home.database.query(statement('', text), values)

/** Signing keys and `hooks` hooks, half of them with headers, all sealed under `envelope`. */
const fill = async (envelope: typeof before, { hooks = 4 } = {}) => {
  const keys = await createSigningKeys({
    database: home.database,
    envelope,
    algorithm: 'ES256',
    logger: silentLogger,
  })
  await keys.close()
  const secrets = hookSecrets(envelope)
  for (let index = 0; index < hooks; index++) {
    const id = `hook${index}`
    const headers: Record<string, string> = index % 2 ? { authorization: `Bearer ${index}` } : {}
    await sql(`INSERT INTO hooks (id, name, events, url, sealed_headers) VALUES ($1, $1, '{}', 'https://a.test', $2)`, [
      id,
      secrets.sealHeaders(id, headers),
    ])
    await sql(`INSERT INTO hook_signing_keys (id, hook_id, sealed) VALUES ($1, $2, $3)`, [
      `key${index}`,
      id,
      secrets.sealSigningKey(id, `signing key of ${index}`),
    ])
  }
  return keys.active().kid
}

/** What a process with this key-encryption key alone can read. */
const readAll = async (envelope: typeof before) => {
  const keys = await createSigningKeys({
    database: home.database,
    envelope,
    algorithm: 'ES256',
    logger: silentLogger,
  })
  await keys.close()
  const { openHeaders, openSigningKey } = hookSecrets(envelope)
  const rows = (await sql(
    `SELECT hooks.id, sealed_headers AS headers, sealed FROM hooks JOIN hook_signing_keys ON hook_id = hooks.id ORDER BY hooks.id`,
  )) as { id: string; headers: Buffer | null; sealed: Buffer }[]
  return {
    kid: keys.active().kid,
    hooks: rows.map(({ id, headers, sealed }) => [openHeaders(id, headers), openSigningKey(id, sealed)]),
  }
}

test('everything is readable with the new key alone, and nothing with the old one', async () => {
  const kid = await fill(before)
  await expect(readAll(after)).rejects.toThrow(/key-encryption key/)
  const result = await reencrypt({ database: home.database, envelope: during })
  expect(result).toEqual({ total: 8, reencrypted: 8, unreadable: [], missed: 0 })
  expect(await readAll(after)).toEqual({
    kid,
    hooks: [
      [{}, 'signing key of 0'],
      [{ authorization: 'Bearer 1' }, 'signing key of 1'],
      [{}, 'signing key of 2'],
      [{ authorization: 'Bearer 3' }, 'signing key of 3'],
    ],
  })
  await expect(readAll(before)).rejects.toThrow(/key-encryption key/)
  // Again: there is nothing left to do, also without the old key.
  expect(await reencrypt({ database: home.database, envelope: after })).toEqual({ ...result, reencrypted: 0 })
})

test('interrupted anywhere, everything stays readable, and the next run goes on', async () => {
  await fill(before, { hooks: 10 })
  let reencrypted = 0
  for (let calls = 1; reencrypted < 17; calls++) {
    let left = calls
    const query: Query = (...call) => {
      if (left-- === 0) throw new Error('interrupted')
      return home.database.query(...call)
    }
    const result = await reencrypt({ database: { query }, envelope: during, batch: 3 }).catch((error: Error) => {
      expect(error.message).toBe('interrupted')
    })
    expect((await readAll(during)).hooks).toHaveLength(10)
    if (result) reencrypted = result.total
  }
  expect((await readAll(after)).hooks).toHaveLength(10)
})

test('runs beside processes that change what it encrypts: their value stays, under the new key', async () => {
  await fill(before, { hooks: 2 })
  const secrets = hookSecrets(during)
  let changes = 0
  // Just before a value is replaced, a process that knows both keys, but writes under the old one, replaces it.
  const query: Query = async (wanted, values) => {
    if (wanted.name === 'reencrypt-write-hook_signing_keys.sealed' && changes++ === 0) {
      const { sealSigningKey } = hookSecrets(before)
      await sql('UPDATE hook_signing_keys SET sealed = $1 WHERE id = $2', [sealSigningKey('hook0', 'changed'), 'key0'])
    }
    return home.database.query(wanted, values)
  }
  expect(await reencrypt({ database: { query }, envelope: during })).toEqual({
    ...{ total: 5, reencrypted: 5, unreadable: [], missed: 0 },
  })
  const [row] = await sql(`SELECT sealed FROM hook_signing_keys WHERE id = 'key0'`)
  expect(secrets.openSigningKey('hook0', row!['sealed'] as Buffer)).toBe('changed')
  expect((await readAll(after)).hooks[0]).toEqual([{}, 'changed'])
})

test('values under a key that nobody gave are named and left alone; the others are done', async () => {
  await fill(before, { hooks: 1 })
  const stranger = hookSecrets(createEnvelope({ current: randomBytes(32) })).sealSigningKey('hook0', 'x')
  await sql('UPDATE hook_signing_keys SET sealed = $1', [stranger])
  expect(await reencrypt({ database: home.database, envelope: during })).toEqual({
    ...{ total: 3, reencrypted: 2, unreadable: ['hook_signing_keys.sealed key0'], missed: 0 },
  })
  expect(await sql('SELECT sealed FROM hook_signing_keys')).toEqual([{ sealed: stranger }])
})

test('the headers of a test-send that is under way are encrypted anew, for the hook they belong to', async () => {
  await fill(before, { hooks: 1 })
  const [row] = await sql(
    `INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, test, payload)
     VALUES ('hook0', gen_random_uuid(), 'User.Created', 'test', 'x', 1, true, '{}') RETURNING id`,
  )
  const headers = { authorization: 'Bearer of a test' }
  await sql(
    `INSERT INTO test_targets (delivery_id, hook_id, url, sealed_headers) VALUES ($1, 'hook0', 'https://a.test', $2)`,
    [row!['id'], hookSecrets(before).sealHeaders('hook0', headers)],
  )
  expect(await reencrypt({ database: home.database, envelope: during })).toMatchObject({ unreadable: [], missed: 0 })
  const [target] = await sql('SELECT sealed_headers AS sealed FROM test_targets')
  expect(hookSecrets(after).openHeaders('hook0', target!['sealed'] as Buffer)).toEqual(headers)
})

/** Binary columns that hold nothing sealed, beside digests. */
const notSealed = [
  // Pictures on pages.
  'assets.content',
  'deliveries.payload',
  'delivery_attempts.response_body',
  // Encrypted with keys that the database's owner never has.
  'interactions.redirect',
  'refresh_tokens.successor',
  // Digests by another name.
  'failing_identifiers.key',
  'identity_provider_requests.state_digest',
  'interactions.browser',
  'message_counts.key',
  'opaque_tokens.personal_access_token',
  'proofs.secret',
  'outbox.payload',
  // What browsers are told.
  'passkeys.credential_id',
  'passkeys.public_key',
  'users.webauthn_handle',
  'device_codes.user_code',
  'pushed_requests.browser',
  'rate_limit_buckets.key',
  'sessions.previous_digest',
  'sign_in_failures.key',
]

test('every binary column of the schema is either encrypted anew or known to hold nothing sealed', async () => {
  const columns = await sql(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns JOIN information_schema.tables
       USING (table_schema, table_name)
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type = 'bytea'`,
  )
  const names = columns.map(({ name }) => String(name)).filter((name) => !name.endsWith('.digest'))
  const known = [...notSealed, ...sealedColumns.map(({ name }) => name)]
  expect(names.toSorted()).toEqual(known.toSorted())
})

test('what waits to be sent to people, and what sends it, are readable with the new key alone', async () => {
  const connectors = createConnectorStore(before)
  const connector = { id: 'c1', connectorId: 'vonage-sms', config: { apiSecret: 'x' } }
  await home.database.transaction((query) =>
    connectors.insert(query, { ...connector, type: 'Sms', syncProfile: false, metadata: {} }),
  )
  const content = { to: 'ada@example.com', usage: 'SignIn', variables: {}, locale: 'en', subject: 'Hello', text: 'x' }
  const sealed = sealMessage(before, 'm1', content)
  await insertMessage(home.database.query, { id: 'm1', channel: 'email', type: 'SignIn', sealed, ttl: 600 })
  expect(await reencrypt({ database: home.database, envelope: during })).toEqual({
    ...{ total: 2, reencrypted: 2, unreadable: [], missed: 0 },
  })
  expect(await createConnectorStore(after).find(home.database.query, 'c1')).toMatchObject(connector)
  const [row] = await sql('SELECT sealed FROM messages')
  expect(openMessage(after, 'm1', row!['sealed'] as Buffer)).toEqual(content)
})
