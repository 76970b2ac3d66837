import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRetentionJob, retentionDefaults, retentionSettings } from '../../../issuer/maintenance/retention.ts'
import { statement } from '../../../platform/database/database.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
  await sql(`INSERT INTO users (id) VALUES ('u1')`)
})
afterAll(() => db.close())
beforeEach(() => sql('TRUNCATE subject_tokens, opaque_tokens, impersonation_sessions, logs, revocations'))

const sql = <Row extends object>(text: string, values: unknown[] = []) =>
  db.database.query<Row>(statement('', text), values)
const namesIn = async (text: string) => (await sql<{ name: string }>(text)).map(({ name }) => name)
const createJob = (options: { batch?: number; retention?: Partial<typeof retentionDefaults> } = {}) => {
  const metrics = createMetrics()
  const retention = { ...retentionDefaults, ...options.retention }
  return {
    ...createRetentionJob({ ...options, database: db.database, retention, logger: silentLogger, metrics }),
    metrics,
  }
}

const addSessions = () =>
  sql(`INSERT INTO impersonation_sessions (id, subject_id, client_id, creator_id, scopes, context, token_id, started_at, expires_at)
       SELECT name, 'u1', 'c1', 'c1', '{}', '{}', name, now() - age, now() - age + life
       FROM (VALUES ('old', interval '401 days', interval '1 h'), ('kept', '399 days', '1 h'), ('still good', '401 days', '500 days'))
         AS session (name, age, life)`)

test('every kind goes when its time is over, and not before', async () => {
  await sql(`INSERT INTO subject_tokens (digest, user_id, creator_id, context, expires_at)
             SELECT convert_to(name, 'UTF8'), 'u1', name, '{}', now() - age
             FROM (VALUES ('old', interval '8 days'), ('kept', '6 days'), ('good', '-1 minute')) AS token (name, age)`)
  await sql(`INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
             SELECT convert_to(name, 'UTF8'), 'u1', name, '', now() - age
             FROM (VALUES ('old', interval '2 days'), ('kept', '1 h'), ('good', '-1 h')) AS token (name, age)`)
  await addSessions()
  await sql(`INSERT INTO logs (id, key, result, payload, created_at)
             SELECT name, 'k', 'Success', '{}', now() - age
             FROM (VALUES ('old', interval '401 days'), ('kept', '399 days')) AS log (name, age)`)
  await sql(`INSERT INTO revocations (seq, kind, value, expires_at)
             SELECT nextval('revocation_numbers'), 'jti', name, now() - age
             FROM (VALUES ('old', interval '1 s'), ('kept', '-1 h')) AS revocation (name, age)`)
  const job = createJob()
  await job.run()
  expect({
    subjectTokens: await namesIn('SELECT creator_id AS name FROM subject_tokens ORDER BY 1'),
    opaqueTokens: await namesIn('SELECT client_id AS name FROM opaque_tokens ORDER BY 1'),
    sessions: await namesIn('SELECT id AS name FROM impersonation_sessions ORDER BY 1'),
    logs: await namesIn('SELECT id AS name FROM logs ORDER BY 1'),
    revocations: await namesIn('SELECT value AS name FROM revocations ORDER BY 1'),
  }).toEqual({
    subjectTokens: ['good', 'kept'],
    opaqueTokens: ['good', 'kept'],
    sessions: ['kept', 'still good'],
    logs: ['kept'],
    revocations: ['kept'],
  })
  expect((await job.metrics.render()).text).toContain('surrogate_retention_removed_total{kind="logs"} 1')
})

test('each time is a setting, and no setting takes a session whose token is good', async () => {
  await addSessions()
  await createJob({ retention: { sessions: retentionSettings.RETENTION_SESSIONS.parse('30d') } }).run()
  expect(await namesIn('SELECT id AS name FROM impersonation_sessions')).toEqual(['still good'])
})

test('used client assertions are forgotten when they expire, rate limits when they mean nothing any more', async () => {
  await sql(`INSERT INTO client_assertions (digest, expires_at)
             SELECT convert_to(name, 'UTF8'), now() - age
             FROM (VALUES ('expired', interval '1 s'), ('good', '-1 minute')) AS assertion (name, age)`)
  await sql(`INSERT INTO rate_limit_buckets (key, tokens, leased, updated_at)
             SELECT convert_to(name, 'UTF8'), 0, 0, now() - age
             FROM (VALUES ('full again', interval '3 minutes'), ('filling', '30 s')) AS bucket (name, age)`)
  await createJob().run()
  const left = (table: string, column: string) =>
    namesIn(`SELECT convert_from(${column}, 'UTF8') AS name FROM ${table}`)
  expect(await left('client_assertions', 'digest')).toEqual(['good'])
  expect(await left('rate_limit_buckets', 'key')).toEqual(['filling'])
})

const addOldLogs = (count: number) =>
  sql(`INSERT INTO logs (id, key, result, payload, created_at)
       SELECT 'log ' || n, 'k', 'Success', '{}', now() - interval '500 days' FROM generate_series(1, ${count}) AS n`)
const logsLeft = async () => (await namesIn('SELECT id AS name FROM logs')).length

test('a backlog goes in batches until it is gone', async () => {
  await addOldLogs(25)
  await createJob({ batch: 10 }).run()
  expect(await logsLeft()).toBe(0)
})

test('while another instance removes, this one leaves it alone', async () => {
  await addOldLogs(5)
  await db.database.transaction(async (query) => {
    await query(statement('', 'SELECT pg_advisory_xact_lock(7305175)'), [])
    await createJob().run()
    expect(await logsLeft()).toBe(5)
  })
  await createJob().run()
  expect(await logsLeft()).toBe(0)
})
