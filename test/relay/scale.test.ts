import { Client } from 'pg'
import { expect, test } from 'vitest'
import { replayDelivery } from '../../deliveries/reopen-store.ts'
import { type Query, type Statement, statement } from '../../platform/database/database.ts'
import { type AttemptRecord, recordAttempts } from '../../relay/ledger/attempt-store.ts'
import { ledgerFigures } from '../../relay/ledger/figures-store.ts'
import { ingestEvents } from '../../relay/ledger/ingest-store.ts'
import { claimGatedLanes, claimLanes, claimTestLanes, msUntilGatedDue } from '../../relay/ledger/lane-claim-store.ts'
import { type Lease, openDeliveries } from '../../relay/ledger/lane-store.ts'
import { inOrder, lockNextPending, lockPendingWithEarlier } from '../../relay/ledger/pending-store.ts'
import { removeExpired } from '../../relay/ledger/retention-store.ts'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

/** Many lanes and many hooks: what is asked for over and over must not grow with them. */

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

/**
 * Runs statements as the relay does, and notes what PostgreSQL did for each. Rows are not answered: the plan stands in
 * their place.
 */
const explaining = async () => {
  const client = new Client({
    ...ledger.connection,
    options: '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off',
  })
  await client.connect()
  const explain = async ({ text }: Statement, values: readonly unknown[]): Promise<Plan> => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values])
    return rows[0]['QUERY PLAN'][0].Plan
  }
  return { client, explain }
}
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const pagesOf = (plan: Plan) => plan['Shared Hit Blocks'] + plan['Shared Read Blocks']

test('what a relay asks for again and again reads a few pages by index, with 100 000 lanes', {
  timeout: 60_000,
}, async () => {
  // One large hook, one that is limited, one whose breaker is open, and 997 small ones.
  await ledger.rows(`
    INSERT INTO hooks (id, name, events, url, rate_limit, open_since, probe_at)
    SELECT 'h' || lpad(n::text, 5, '0'), '', '{User.Data.Updated}', 'https://receiver.test',
      CASE WHEN n = 2 THEN 600 END, CASE WHEN n = 3 THEN now() END, CASE WHEN n = 3 THEN now() END
    FROM generate_series(1, 1000) n`)
  await ledger.rows(`
    INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at)
    SELECT 'h' || lpad((CASE WHEN n <= 50000 THEN 1 WHEN n <= 55000 THEN 2 WHEN n <= 60000 THEN 3 ELSE 4 + n % 997 END)::text, 5, '0'),
      'user', 'u' || n, now() - n * interval '1 ms'
    FROM generate_series(1, 100000) n`)
  await ledger.rows(`
    INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
    SELECT hook_id, gen_random_uuid(), 'User.Data.Updated', entity_kind, entity_id, 1 FROM lanes`)
  const relayId = '00000000-0000-4000-8000-000000000000'
  await ledger.rows(`INSERT INTO relays (id, alive_until) VALUES ($1, now() + interval '1 hour')`, relayId)
  await ledger.rows('ANALYZE')

  const { client, explain } = await explaining()
  const plans = new Map<string, Plan>()
  const query =
    (answer: object[]): Query =>
    async (statement, values) => {
      plans.set(statement.name, await explain(statement, values))
      return answer as never
    }
  try {
    const nothing = { fence: null, last: '', more: false, gated: true, tests: true }
    const common = { relayId, leaseMs: 30_000, perHook: 4, room: new Map([['h00001', 64]]) }
    await claimLanes(query([nothing]), { ...common, limit: 256 })
    await claimGatedLanes(query([]), { ...common, catchUpRate: 3_000 })
    await claimTestLanes(query([]), common)
    await msUntilGatedDue(query([]), { catchUpRate: 3_000, sinceMs: 10 })
    const lanes = await ledger.rows<{ entity_id: string; fence: number }>(
      `SELECT entity_id, fence FROM lanes WHERE hook_id = 'h00001' AND leased_by IS NOT NULL`,
    )
    expect(lanes).toHaveLength(64)
    const leases = lanes.map(({ entity_id: entityId, fence }) => ({
      hookId: 'h00001',
      entityKind: 'user',
      entityId,
      fence,
      from: 0,
    }))
    await openDeliveries(query([]), leases, { perLane: 8, maxBytes: 1_000_000 })
    // Its first statement locks the lanes; the one that gives them back needs to hear that they are ours.
    await recordAttempts(
      query(leases),
      [],
      leases.map((lease) => ({ lease, goOn: true })),
      { random: () => 0 },
    )

    const names = ['lanes-claim', 'lanes-claim-gated', 'lanes-claim-tests', 'lanes-next-due', 'lanes-heads']
    expect([...plans.keys()]).toEqual([...names, 'attempts-lock-lanes', 'attempts-release'])
    for (const [name, plan] of plans) {
      const scanned = nodesOf(plan).filter((node) => node['Node Type'] === 'Seq Scan')
      expect([name, scanned.map((node) => node['Relation Name'])]).toEqual([name, []])
    }
    // A claim brings 256 lanes: each has its row, its new version and its place in the indexes. What is claimed after
    // it finds little.
    const most: Record<string, number> = { 'lanes-claim': 8_000, 'attempts-release': 3_000 }
    for (const [name, plan] of plans) expect([name, pagesOf(plan) < (most[name] ?? 1_000)]).toEqual([name, true])
  } finally {
    await client.end()
  }
})

test.for([
  ['nothing', ''],
  ['that they were empty', 'ANALYZE outbox, outbox_pending, deliveries, delivery_attempts, lanes'],
])(
  'ingesting, claiming and storing read what they need by index, when PostgreSQL knows of the tables %s',
  async ([, look]) => {
    const { database } = ledger
    const hook = await ledger.hook({ url: receiver.url })
    const perTransaction = `SELECT relname AS name, seq_scan AS scans, idx_tup_fetch AS fetched, n_tup_upd AS updated, n_tup_hot_upd AS in_place
    FROM pg_stat_xact_user_tables WHERE relname IN ('outbox', 'outbox_pending', 'deliveries', 'delivery_attempts', 'lanes')`
    const inTransaction = (work: (query: Query) => Promise<unknown>) =>
      database.transaction(async (query) => {
        await work(query)
        const rows = await query<{
          name: string
          scans: number
          fetched: number | null
          updated: number
          in_place: number
        }>(statement('test-read', perTransaction), [])
        // Otherwise the next transaction of this connection counts along what this one has read.
        await query(statement('test-flush', 'SELECT pg_stat_force_next_flush()'), [])
        return {
          scanned: rows.filter(({ scans }) => scans > 0).map(({ name }) => name),
          fetched: Math.max(...rows.map(({ fetched }) => fetched ?? 0)),
          deliveries: rows.find(({ name }) => name === 'deliveries'),
        }
      })
    const ingest = (count: number) =>
      inTransaction(async (query) => ingestEvents(query, inOrder(await lockNextPending(query, count))))
    const ingestFromBroker = (eventIds: readonly string[]) =>
      inTransaction(async (query) => ingestEvents(query, inOrder(await lockPendingWithEarlier(query, eventIds))))
    const anOpenOne = statement('test-open', 'SELECT id::text FROM open_deliveries LIMIT 1')
    const hasten = async () => {
      let id = ''
      await inTransaction(async (query) => {
        id = (await query<{ id: string }>(anOpenOne, []))[0]!.id
      })
      return inTransaction((query) => replayDelivery(query, hook.id, id))
    }
    const claim = async () => {
      const common = { leaseMs: 30_000, perHook: 200, room: new Map(), limit: 200 }
      let leases: Lease[] = []
      const read = await inTransaction(async (query) => {
        leases = (await claimLanes(query, { ...common, relayId })).leases
      })
      return { ...read, leases }
    }
    const relayId = '00000000-0000-4000-8000-000000000000'
    await ledger.rows(`INSERT INTO relays (id, alive_until) VALUES ($1, now() + interval '1 hour')`, relayId)
    const store = async (leases: readonly Lease[]) => {
      const open = await openDeliveries(database.query, leases, { perLane: 8, maxBytes: 1_000_000 })
      const results = leases.flatMap((lease) => open.get(lease.fence)!.map(({ id }) => succeeded(lease, id)))
      const released = leases.map((lease) => ({ lease, goOn: false }))
      return inTransaction((query) => recordAttempts(query, results, released, { random: () => 0 }))
    }
    // Plans are made now, when there is nothing, or next to nothing.
    for (const when of ['before', 'after']) {
      const [first] = await ledger.record(userUpdated(`first ${when}`))
      await ledger.record(userUpdated(`second ${when}`))
      await ingestFromBroker([first!.id])
      await ingest(10)
      await hasten()
      await store((await claim()).leases)
      if (when === 'before') await ledger.rows(look || 'SELECT')
    }

    // What was taken in and delivered long ago, and what waits.
    await ledger.rows(`
    WITH event AS (
      INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
      SELECT gen_random_uuid(), 'user', 'u' || n % 2500, 1 + n / 2500, 'User.Data.Updated', gen_random_uuid(), '{}'
      FROM generate_series(0, 19999) n RETURNING *),
    pending AS (INSERT INTO outbox_pending (seq) SELECT seq FROM event WHERE version >= 7)
    INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, state, finished_at)
    SELECT '${hook.id}', id, type, entity_kind, entity_id, version, 'succeeded', now() FROM event WHERE version < 7`)
    const taken = await ingest(2_000)
    expect([taken.scanned, taken.fetched < 20_000]).toEqual([[], true])
    const brought = await ledger.rows<{ id: string }>(`SELECT id FROM outbox WHERE version = 8 LIMIT 200`)
    const fromBroker = await ingestFromBroker(brought.map(({ id }) => id))
    expect([fromBroker.scanned, fromBroker.fetched < 6_000]).toEqual([[], true])
    const hastened = await hasten()
    expect(hastened.deliveries!.fetched).toBeLessThan(4_000)
    const claimed = await claim()
    expect([claimed.leases.length, claimed.scanned, claimed.fetched < 2_000]).toEqual([200, [], true])
    const stored = await store(claimed.leases)
    expect([stored.scanned, stored.fetched < 2_000]).toEqual([[], true])
    const { updated, in_place: inPlace } = stored.deliveries!
    expect(updated).toBeGreaterThanOrEqual(200)
    expect(inPlace).toBeGreaterThan(updated * 0.9)
  },
)

test('retention and figures end, with plans that were made when there was nothing', { timeout: 60_000 }, async () => {
  const { database } = ledger
  const hook = await ledger.hook({ url: receiver.url })
  const tidy = () => database.transaction((query) => removeExpired(query, 14 * 86_400_000))
  await tidy()
  await ledgerFigures(database.query, 10)
  // Of each entity five changes long ago, of which the last is still to be delivered.
  await ledger.rows(`
    WITH event AS (
      INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload, created_at)
      SELECT gen_random_uuid(), 'user', 'u' || n % 20000, 1 + n / 20000, 'User.Data.Updated', gen_random_uuid(), '{}',
        now() - interval '20 days' FROM generate_series(0, 99999) n RETURNING *),
    delivery AS (
      INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, state, created_at, finished_at)
      SELECT '${hook.id}', id, type, entity_kind, entity_id, version, CASE WHEN version = 5 THEN 'pending' ELSE 'succeeded' END,
        created_at, CASE WHEN version < 5 THEN created_at END FROM event RETURNING *)
    INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, from_version)
    SELECT hook_id, entity_kind, entity_id, now(), 5 FROM delivery WHERE version = 5`)
  expect((await ledgerFigures(database.query, 10)).oldest).toMatchObject([{ hookId: hook.id }])
  await tidy()
  const left = `SELECT (SELECT count(*)::int FROM outbox) AS events, (SELECT count(*)::int FROM deliveries) AS deliveries`
  expect(await ledger.rows(left)).toEqual([{ events: 20_000, deliveries: 20_000 }])
})

const succeeded = (lease: Lease, deliveryId: number): AttemptRecord => ({
  lease,
  deliveryId,
  at: new Date(),
  durationMs: 1,
  state: 'succeeded',
  retryInMs: 0,
  requestHeaders: {},
  status: 204,
  responseHeaders: {},
  responseBody: null,
  error: null,
  address: null,
  changesHealth: false,
})

test('with 1 000 hooks, ten of them dead, every other one gets its events', { timeout: 60_000 }, async () => {
  const hung = await anotherReceiver(() => {})
  const hook = await ledger.hook({ url: receiver.url, enabled: false })
  // Copies, each with a key of its own that is sealed for it.
  for (let index = 0; index < 10; index += 1) await ledger.hook({ url: hung.url })
  await ledger.rows(`DELETE FROM hooks WHERE id = $1`, hook.id)
  const ids = new Set<string>()
  for (let index = 0; index < 990; index += 1) ids.add((await ledger.hook({ url: receiver.url })).id)
  await ledger.relay({ config: { ...testRelayConfig, maxLanes: 64, attemptTimeoutMs: 2_000, leaseMs: 60_000 } })
  await ledger.record(userUpdated('a'), userUpdated('b'), userUpdated('a'))
  await receiver.until((received) => received.length === 2_970)
  expect(new Set(receiver.received.map(({ body }) => body.hookId))).toEqual(ids)
  const versions = Map.groupBy(receiver.received, ({ body }) => `${body.hookId} ${body.data['id']}`)
  for (const [lane, own] of versions)
    expect(own.map(({ body }) => body.version)).toEqual(lane.endsWith('a') ? [1, 2] : [1])
})
