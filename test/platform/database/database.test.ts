import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase, queryOf, statement } from '../../../platform/database/database.ts'
import { bytea, lookUp, sharedStatement } from '../../../platform/database/shared-statement.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createTestDatabase } from '../../support/database.ts'
import { runProcess } from '../../support/process.ts'

const open = async () => {
  const { database, close } = await createTestDatabase()
  onTestFinished(close)
  return database
}

const echo = statement('test-echo', 'SELECT $1::int AS number, pg_backend_pid() AS pid')
const divide = statement('test-divide', 'SELECT 1 / $1::int AS number')
const backend = statement('test-backend', 'SELECT pg_backend_pid() AS pid')

test('concurrent statements share few connections, and each gets its own answer', async () => {
  const database = await open()
  const rows = await Promise.all(
    Array.from({ length: 500 }, (_, number) => database.query<{ number: number; pid: number }>(echo, [number])),
  )
  expect(rows.map(([row]) => row!.number)).toEqual(Array.from({ length: 500 }, (_, number) => number))
  expect(new Set(rows.map(([row]) => row!.pid)).size).toBeLessThanOrEqual(4)
})

test('a statement that fails fails alone', async () => {
  const database = await open()
  const results = await Promise.allSettled(
    Array.from({ length: 40 }, (_, number) => database.query(divide, [number % 4])),
  )
  expect(results.map(({ status }) => status)).toEqual(
    Array.from({ length: 40 }, (_, number) => (number % 4 === 0 ? 'rejected' : 'fulfilled')),
  )
})

test('after its connections were cut the next statement opens another', async () => {
  const database = await open()
  const [before] = await database.query<{ pid: number }>(backend, [])
  await database.pool.query('SELECT pg_terminate_backend($1)', [before!.pid])
  const after = async () => {
    const [row] = await database.query<{ pid: number }>(backend, [])
    return row!.pid
  }
  await expect.poll(() => after().catch(() => before!.pid)).not.toBe(before!.pid)
})

test('statements of a transaction that are sent together stand or fall together, and leave its connection whole', async () => {
  const database = await open()
  const insert = statement(
    'test-insert-together',
    `INSERT INTO resources (id, name, indicator) VALUES ($1, $2::text, $2::text || '?')`,
  )
  const count = statement('test-count', 'SELECT count(*) AS number, pg_backend_pid() AS pid FROM resources')
  const add = (id: string) => [id, `https://${id}.test`]
  const before = await database.transaction((query) => query<{ number: number; pid: number }>(count, []))
  const failing = database.transaction((query) =>
    Promise.all([query(insert, add('a')), query(divide, [0]), query(insert, add('b'))]),
  )
  // The one that failed, and not those behind it, which were refused for it.
  await expect(failing).rejects.toThrow('division by zero')
  const after = await database.transaction((query) => query<{ number: number; pid: number }>(count, []))
  expect(after).toEqual(before)
  const [, [counted]] = await database.transaction((query) =>
    Promise.all([query(insert, add('c')), query<{ number: number }>(count, [])]),
  )
  expect(counted!.number).toBe(before[0]!.number + 1)
})

test('a transaction begins with its first statement, on a connection that knows both and on one that does not', async () => {
  const database = await open()
  const insert = statement(
    'test-insert-first',
    `INSERT INTO resources (id, name, indicator) VALUES ($1, $2::text, $2::text || '?')`,
  )
  const add = (id: string) => [id, `https://${id}.test`]
  const ids = statement('test-ids', 'SELECT id FROM resources ORDER BY id')
  const began = statement('test-began', 'SELECT pg_current_xact_id_if_assigned() IS NOT NULL AS writes')
  // The second time on the same connection nothing is parsed any more.
  for (const time of ['a', 'b', 'c']) {
    const undone = database.transaction(async (query) => {
      await query(insert, add(`${time}-undone`))
      await query(divide, [0])
    })
    await expect(undone, time).rejects.toThrow('division by zero')
    const refused = database.transaction((query) =>
      Promise.all([query(divide, [0]), query(insert, add(`${time}-behind`)), query(insert, add(`${time}-last`))]),
    )
    await expect(refused, time).rejects.toThrow('division by zero')
    const rows = await database.transaction((query) =>
      Promise.all([query(insert, add(time)), query(began, []), query(insert, add(`${time}-too`))]),
    )
    expect(rows[1], time).toEqual([{ writes: true }])
  }
  expect((await database.query<{ id: string }>(ids, [])).map(({ id }) => id)).toEqual(
    ['a', 'b', 'c'].flatMap((time) => [time, `${time}-too`]),
  )
  // Of those that ask nothing, none is left open.
  await database.transaction(async () => {})
  await expect(database.transaction(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  const left = await database.pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
  )
  expect(left.rows).toEqual([])
})

test('a value that cannot be written fails its statement, the first of a transaction or a later one, and no other', async () => {
  const database = await open()
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const write = statement('test-json', 'SELECT $1::jsonb AS value')
  for (let time = 0; time < 3; time++) {
    for (const run of [
      () => database.query(write, [circular]),
      () => database.transaction((query) => query(write, [circular])),
      () =>
        database.transaction(async (query) => {
          await query(echo, [1])
          await query(write, [circular])
        }),
    ])
      await expect(run()).rejects.toThrow('circular')
    expect(await database.query(write, [{ time }])).toEqual([{ value: { time } }])
    expect(await database.transaction((query) => query(write, [{ time }]))).toEqual([{ value: { time } }])
  }
})

test('a statement whose columns have changed is refused, and not read as if they had not', async () => {
  const database = await open()
  await database.knex.raw('CREATE TABLE changing (a text, b text)')
  await database.knex.raw(`INSERT INTO changing VALUES ('x', 'y')`)
  const all = statement('test-changing', 'SELECT * FROM changing')
  const read = () => Promise.all(Array.from({ length: 20 }, () => database.query(all, [])))
  expect(new Set((await read()).map((rows) => JSON.stringify(rows)))).toEqual(new Set(['[{"a":"x","b":"y"}]']))
  for (const change of ['RENAME a TO c', 'ADD COLUMN d text', 'DROP COLUMN b']) {
    await database.knex.raw(`ALTER TABLE changing ${change}`)
    await expect(database.query(all, []), change).rejects.toMatchObject({ code: '0A000' })
  }
})

test('what goes on after a transaction is over writes nothing, by itself or into the transaction of somebody else', async () => {
  const database = await open()
  const insert = statement(
    'test-insert-late',
    `INSERT INTO resources (id, name, indicator) VALUES ($1, $2::text, $2::text || '?')`,
  )
  for (const end of ['fails', 'stands']) {
    const over = Promise.withResolvers<void>()
    let late: Promise<unknown> | undefined
    const transaction = database.transaction(async (query) => {
      late = over.promise.then(() => query(insert, [end, `https://${end}.test`]))
      await query(divide, [end === 'fails' ? 0 : 1])
    })
    expect([end, (await Promise.allSettled([transaction]))[0]!.status === 'rejected']).toEqual([end, end === 'fails'])
    over.resolve()
    await expect(late, end).rejects.toThrow('The transaction is over.')
  }
  expect(await database.knex('resources').select('id')).toEqual([])
})

test('a transaction stands whole or not at all, by either interface', async () => {
  const database = await open()
  const insert = statement(
    'test-insert',
    `INSERT INTO resources (id, name, indicator) VALUES ($1, $2::text, $2::text || '?')`,
  )
  const failing = database.transaction(async (query) => {
    await query(insert, ['a', 'https://a.test'])
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  await database.transaction((query) => query(insert, ['b', 'https://b.test']))
  // A literal question mark and a repeated parameter survive the translation to knex's placeholders.
  await database.knex.transaction((trx) => queryOf(trx)(insert, ['c', 'https://c.test']))
  expect(await database.knex('resources').select('id', 'indicator').orderBy('id')).toEqual([
    { id: 'b', indicator: 'https://b.test?' },
    { id: 'c', indicator: 'https://c.test?' },
  ])
})

test('a connection that is cut between two statements of a transaction fails that transaction and nothing else', async () => {
  const database = await open()
  const cut = database.transaction(async (query) => {
    const [own] = await query<{ pid: number }>(backend, [])
    await database.pool.query('SELECT pg_terminate_backend($1)', [own!.pid])
    const living = 'SELECT 1 FROM pg_stat_activity WHERE pid = $1'
    await expect.poll(async () => (await database.pool.query(living, [own!.pid])).rowCount).toBe(0)
    await query(backend, [])
  })
  await expect(cut).rejects.toThrow()
  await expect(database.transaction((query) => query(backend, []))).resolves.toHaveLength(1)
})

test('a server that ends a connection with its very first word fails what wanted it, not the process', async () => {
  const bytes = (type: string, content: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(content.length + 4)
    return Buffer.concat([Buffer.from(type), length, content])
  }
  // What a real one sends in three writes may arrive as one: that the connection stands, and that it ends (its
  // postmaster was killed).
  const authenticated = bytes('R', Buffer.alloc(4))
  const ready = bytes('Z', Buffer.from('I'))
  const fatal = bytes('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mthe server goes\0\0'))
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, fatal])))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const connection = { host: '127.0.0.1', port, user: 'nobody', password: '', database: 'none' }
  const database = createDatabase({ connection, logger: silentLogger })
  onTestFinished(database.close)
  const uncaught: unknown[] = []
  const note = (error: unknown) => void uncaught.push(error)
  process.on('uncaughtExceptionMonitor', note)
  onTestFinished(() => void process.off('uncaughtExceptionMonitor', note))

  for (const ask of [
    () => database.transaction((query) => query(backend, [])),
    () => database.pool.query('SELECT 1'),
    () => database.query(backend, []),
    () => database.knex.raw('SELECT 1'),
  ])
    await expect(ask()).rejects.toThrow()
  expect(uncaught).toEqual([])
})

test('a transaction whose process hangs gives its locks back', async () => {
  const { connection, close } = await createTestDatabase()
  onTestFinished(close)
  const database = createDatabase({ connection, logger: silentLogger, transactionIdleMs: 100 })
  onTestFinished(() => database.close())
  const lock = statement('test-lock', 'SELECT pg_advisory_xact_lock(99)')
  const hanging = database.transaction(async (query) => {
    await query(lock, [])
    // It goes on only after somebody else has got the lock.
    await database.transaction((other) => other(lock, []))
    await query(lock, [])
  })
  await expect(hanging).rejects.toThrow()
})

test('a database that does not answer is one clear line', async () => {
  const database = createDatabase({ connection: 'postgres://nobody:x@127.0.0.1:9/none', logger: silentLogger })
  onTestFinished(() => database.close())
  await expect(database.ping()).rejects.toMatchObject({
    name: 'StartupError',
    exitCode: 3,
    message: expect.stringContaining('The database cannot be reached'),
    hint: expect.stringContaining('DATABASE_URL'),
  })
})

const quotient = lookUp(
  'test-quotient',
  { number: 'integer', divisor: 'integer' },
  'SELECT asked.number / asked.divisor AS quotient, pg_current_xact_id()::text AS transaction WHERE asked.number >= 0',
)

test('requests for a shared statement go out together, and each gets its own rows', async () => {
  const database = await open()
  const ask = (number: number) =>
    database.query<{ quotient: number; transaction: string }>(quotient, [{ number, divisor: 1 }])
  const rows = await Promise.all(Array.from({ length: 300 }, (_, index) => ask(index - 100)))
  expect(rows.map(([row]) => row?.quotient)).toEqual(
    Array.from({ length: 300 }, (_, index) => (index < 100 ? undefined : index - 100)),
  )
  expect(new Set(rows.flat().map(({ transaction }) => transaction)).size).toBeLessThan(10)
})

test('a request that fails in a shared statement fails alone', async () => {
  const database = await open()
  const results = await Promise.allSettled(
    Array.from({ length: 40 }, (_, number) => database.query(quotient, [{ number, divisor: number % 4 }])),
  )
  expect(results.map(({ status }) => status)).toEqual(
    Array.from({ length: 40 }, (_, number) => (number % 4 === 0 ? 'rejected' : 'fulfilled')),
  )
})

test('a shared statement is the same by itself, in a pg transaction and in one of knex', async () => {
  const database = await open()
  const values = { bytes: 'bytea', names: 'text[]', at: 'timestamptz', data: 'jsonb', nothing: 'text' }
  const echoed = sharedStatement(
    'test-echoed',
    values,
    (asked) => `SELECT n, bytes, names, at, data, nothing, '?' AS mark FROM ${asked}`,
  )
  const row = {
    bytes: bytea(Buffer.from([0, 255])),
    names: ['a b', '"', '\\', 'é'],
    at: new Date('2026-01-02T03:04:05.678Z'),
    data: { deep: [null, { '?': '$1' }] },
    nothing: undefined,
  }
  const expected = [{ n: 0, ...row, bytes: Buffer.from([0, 255]), nothing: null, mark: '?' }]
  expect(await database.query(echoed, [row])).toEqual(expected)
  expect(await database.transaction((query) => query(echoed, [row]))).toEqual(expected)
  expect(await database.knex.transaction((trx) => queryOf(trx)(echoed, [row]))).toEqual(expected)
})

test('arrays arrive as they are, whatever is in them, by each interface', async () => {
  const database = await open()
  const texts = [
    [],
    ['a', '', 'NULL', 'null', '{}', 'a,b', '"', '\\', '\\n', '\n', "'", '\u0007', 'ü 🎈', '\u2028', null, 'a"b\\c'],
    ['NULL', 'a,b', '{"x"}', ' ', null, 'ü 🎈'],
  ]
  const numbers = [[], [0, -1, 2.5, 1e21, 1e-7, Number.MAX_SAFE_INTEGER, null]]
  const back = statement('test-arrays', 'SELECT $1::text[] AS texts, $2::float8[] AS numbers, $3::boolean[] AS flags')
  const bytes = statement('test-byte-arrays', 'SELECT $1::bytea[] AS bytes, $2::timestamptz[] AS times')
  const ways = [
    (values: unknown[], which = back) => database.query(which, values),
    (values: unknown[], which = back) => database.transaction((query) => query(which, values)),
    (values: unknown[], which = back) => database.knex.transaction((trx) => queryOf(trx)(which, values)),
  ]
  for (const way of ways) {
    for (const [texted, numbered] of texts.flatMap((list) => numbers.map((other) => [list, other] as const))) {
      const flags = [true, null, false]
      expect(await way([texted, numbered, flags])).toEqual([{ texts: texted, numbers: numbered, flags }])
    }
    const [raw, at] = [[Buffer.from([0, 92, 34]), null], [new Date(1_000_000)]]
    expect(await way([raw, at], bytes)).toEqual([{ bytes: raw, times: at }])
  }
})

test('a row is the same by each interface: its columns in order, parsed by their types', async () => {
  const database = await open()
  const kinds = statement(
    'test-kinds',
    `SELECT 'z' AS z, 1 AS a, 9007199254740991::bigint AS "bigInt", true AS yes, NULL::text AS nothing, '{"b": [1]}'::jsonb AS json,
       '2026-01-02T03:04:05Z'::timestamptz AS at, decode('00ff', 'hex') AS bytes, '{x,y}'::text[] AS list, 1 AS "constructor"
     FROM generate_series(1, $1)`,
  )
  const row = {
    ...{ z: 'z', a: 1, bigInt: Number.MAX_SAFE_INTEGER, yes: true, nothing: null, json: { b: [1] } },
    ...{ at: new Date('2026-01-02T03:04:05Z'), bytes: Buffer.from([0, 255]), list: ['x', 'y'], constructor: 1 },
  }
  for (const rows of [
    await database.query(kinds, [2]),
    await database.transaction((trx) => trx(kinds, [2])),
    (await database.knex.raw<{ rows: object[] }>(kinds.text.replace('$1', '2'))).rows,
  ]) {
    expect(rows).toEqual([row, row])
    expect(Object.keys(rows[0]!)).toEqual(Object.keys(row))
  }
  expect(await database.query(kinds, [0])).toEqual([])
})

test('PostgreSQL compiles no statement, whatever its configuration says', async () => {
  const database = await open()
  const shown = statement('test-jit', 'SHOW jit')
  await expect(database.query(shown, [])).resolves.toEqual([{ jit: 'off' }])
  await expect(database.transaction((query) => query(shown, []))).resolves.toEqual([{ jit: 'off' }])
  expect((await database.knex.raw('SHOW jit')).rows).toEqual([{ jit: 'off' }])
})

test('what is asked after the end is refused, and opens no connection that would stay', async () => {
  const { connection, close } = await createTestDatabase()
  const database = createDatabase({ connection, logger: silentLogger })
  await database.query(echo, [1])
  await database.close()
  await expect(database.query(echo, [2])).rejects.toThrow('closed')
  // Throws when a connection is left.
  await close()
})

test('answers that nobody holds are gone with the next small collection, and do not pile up until a large one', async () => {
  const { connection, close } = await createTestDatabase()
  onTestFinished(close)
  const program = fileURLToPath(new URL('../../support/kept-answers.ts', import.meta.url))
  // So little is collected that what is kept is seen.
  const args = ['--initial-old-space-size=1024', program, JSON.stringify(connection)]
  const { code, output } = await runProcess(process.execPath, args, { cwd: tmpdir() })
  expect(code, output).toBe(0)
  const kept: number[] = JSON.parse(output)
  expect(kept.toSorted((a, b) => a - b)[1]).toBeLessThan(0.1)
})
