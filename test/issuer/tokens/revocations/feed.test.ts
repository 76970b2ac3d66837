import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRevocationFeed, type RevocationFeed } from '../../../../issuer/tokens/revocations/feed.ts'
import { type RevocationPage, revoke } from '../../../../issuer/tokens/revocations/revocation-store.ts'
import type { Query } from '../../../../platform/database/database.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { type Answer, basic, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'
import { until } from '../../../support/until.ts'

let issuer: TestIssuer
let gateway: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  gateway = await issuer.createMachine(issuer.managementResource, ['revocations'])
})
afterAll(() => issuer.close())
beforeEach(() => issuer.sql('DELETE FROM revocations'))

const read = (query = '', { client = gateway, instance = 0 } = {}): Promise<Answer> =>
  request(`${issuer.urls[instance]}/oidc/revocations${query}`, { headers: { authorization: basic(client) } })

const pageOf = async (query = ''): Promise<RevocationPage> => (await read(query)).body

const inAnHour = () => new Date(Date.now() + 3_600_000)
const revokeTokens = (...ids: string[]) =>
  issuer.database.transaction((query) =>
    revoke(
      query,
      ids.map((value) => ({ kind: 'jti', value, expiresAt: inAnHour() })),
    ),
  )
const valuesOf = ({ entries }: RevocationPage) => entries.map(({ value }) => value)

test('everything that has not expired is read from the start, in pages, and then what came since', async () => {
  await revokeTokens('a', 'b')
  await issuer.database.transaction((query) => revoke(query, [{ kind: 'sub', value: 'u1' }]))
  await issuer.sql(`INSERT INTO revocations (seq, kind, value, expires_at)
                    VALUES (nextval('revocation_numbers'), 'jti', 'expired', now() - interval '1 second')`)
  const first = await pageOf()
  expect(first).toEqual({
    entries: [
      { seq: expect.any(Number), kind: 'jti', value: 'a', issuedBefore: null, expiresAt: expect.any(Number) },
      { seq: expect.any(Number), kind: 'jti', value: 'b', issuedBefore: null, expiresAt: expect.any(Number) },
      {
        seq: expect.any(Number),
        kind: 'sub',
        value: 'u1',
        issuedBefore: expect.any(Number),
        expiresAt: expect.any(Number),
      },
    ],
    cursor: first.entries[2]!.seq,
    more: false,
  })
  // Seconds, as in tokens; a little longer than the token, for verifiers whose clocks differ.
  const [a, , u1] = first.entries
  expect(a!.expiresAt * 1000 - Date.now()).toBeGreaterThan(3_600_000)
  expect(Math.abs(u1!.issuedBefore! * 1000 - Date.now())).toBeLessThan(60_000)

  expect(await pageOf(`?since=${first.cursor}`)).toEqual({ entries: [], cursor: first.cursor, more: false })
  await revokeTokens('c')
  expect(valuesOf(await pageOf(`?since=${first.cursor}`))).toEqual(['c'])
})

test('a long list comes in pages that lose and repeat nothing', async () => {
  const ids = Array.from({ length: 2_500 }, (_, index) => `token-${index}`)
  await revokeTokens(...ids)
  const read: string[] = []
  let page: RevocationPage = { entries: [], cursor: 0, more: true }
  const sizes: number[] = []
  while (page.more) {
    page = await pageOf(`?since=${page.cursor}`)
    sizes.push(page.entries.length)
    read.push(...valuesOf(page))
  }
  expect(sizes).toEqual([1_000, 1_000, 500])
  expect(read).toEqual(ids)
})

test('a token that is revoked again stays revoked once', async () => {
  await revokeTokens('once')
  await revokeTokens('once')
  expect(valuesOf(await pageOf())).toEqual(['once'])
})

// Two transactions take numbers; the one that began first commits last. `numbered` is how each takes its number.
const commitLate = async (numbered: (query: Parameters<typeof revoke>[0], value: string) => Promise<unknown>) => {
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
  const { promise: inserted, resolve: hasInserted } = Promise.withResolvers<void>()
  const slow = issuer.database.transaction(async (query) => {
    await numbered(query, 'slow')
    hasInserted()
    await mayCommit
  })
  await inserted
  const fast = issuer.database.transaction((query) => numbered(query, 'fast'))
  // The fast one either has committed or waits for a lock.
  await until(async () => {
    const committed = (await pageOf()).entries.length > 0
    const [{ waiting } = { waiting: 0 }] = await issuer.sql<{ waiting: number }>(
      `SELECT count(*) AS waiting FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`,
    )
    expect(committed || waiting > 0).toBe(true)
  })
  const before = await pageOf()
  commit()
  await Promise.all([slow, fast])
  const after = await pageOf(`?since=${before.cursor}`)
  return { seen: [...valuesOf(before), ...valuesOf(after)] }
}

test('a reader misses nothing when a transaction commits late', async () => {
  const { seen } = await commitLate((query, value) => revoke(query, [{ kind: 'jti', value, expiresAt: inAnHour() }]))
  expect(seen).toEqual(['slow', 'fast'])
})

test('numbers that are taken without the lock would make the reader miss the late commit', async () => {
  const { seen } = await commitLate((query) =>
    (query as typeof issuer.database.query)(
      {
        name: '',
        text: `INSERT INTO revocations (seq, kind, value, expires_at)
               SELECT nextval('revocation_numbers'), 'jti', 'number ' || lastval(), now() + interval '1 hour'`,
      },
      [],
    ),
  )
  // Two were committed, one was seen: this is what the lock is for.
  expect(seen).toHaveLength(1)
})

test('a waiting reader is answered as soon as something is revoked on any instance', async () => {
  const waiting = [read('?wait=30'), read('?wait=30', { instance: 1 }), read('?wait=30', { instance: 1 })]
  await revokeTokens('now')
  for (const answer of await Promise.all(waiting)) {
    expect(answer.status).toBe(200)
    expect(valuesOf(answer.body)).toEqual(['now'])
  }
})

test('what is rolled back wakes nobody and is seen by nobody', async () => {
  const failing = issuer.database.transaction(async (query) => {
    await revoke(query, [{ kind: 'jti', value: 'never', expiresAt: inAnHour() }])
    throw new Error('rolled back')
  })
  await expect(failing).rejects.toThrow('rolled back')
  await revokeTokens('after')
  expect(valuesOf(await pageOf())).toEqual(['after'])
})

test('the wait is over after its time, without entries', async () => {
  expect(await pageOf('?since=5&wait=1')).toEqual({ entries: [], cursor: 5, more: false })
})

test('a reader that is ahead of the numbers reads everything: the database was restored from a backup', async () => {
  await revokeTokens('kept')
  const page = await pageOf('?since=999999999')
  expect(valuesOf(page)).toEqual(['kept'])
  expect(page.cursor).toBeLessThan(999_999_999)
})

test('only clients that hold the permission read the feed', async () => {
  const stranger = await issuer.createApplication({ type: 'MachineToMachine' })
  expect(await read('', { client: stranger })).toMatchObject({
    status: 403,
    body: { error: 'insufficient_scope', code: 'oidc.insufficient_scope' },
  })
  expect(await read('', { client: { id: gateway.id, secret: 'wrong' } })).toMatchObject({
    status: 401,
    body: { error: 'invalid_client' },
  })
  expect(await request(`${issuer.url}/oidc/revocations`)).toMatchObject({
    status: 401,
    body: { error: 'invalid_client' },
  })
  expect((await read('', { client: issuer.bootstrap })).status).toBe(200)
})

test.each([
  ['?since=-1', 'since: must be a whole number'],
  ['?since=1e3', 'since: must be a whole number'],
  ['?wait=61', 'wait: '],
  ['?wait=1&wait=2', 'A parameter is repeated.'],
])('%s is refused', async (query, description) => {
  const answer = await read(query)
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(answer.body.error_description).toContain(description)
})

test('credentials in the URL are refused, not read', async () => {
  const query = `?client_id=${gateway.id}&client_secret=${gateway.secret}`
  expect(await request(`${issuer.url}/oidc/revocations${query}`)).toMatchObject({
    status: 400,
    body: { error: 'invalid_request' },
  })
  expect(issuer.logged()).not.toContain(gateway.secret!)
})

test('what concerns a user is kept as long as a token of that user can live', async () => {
  const days = async () => {
    await issuer.sql('DELETE FROM revocations')
    await issuer.database.transaction((query) => revoke(query, [{ kind: 'sub', value: 'u1' }]))
    const [entry] = (await pageOf()).entries
    return Math.floor((entry!.expiresAt * 1000 - Date.now()) / 86_400_000)
  }
  expect(await days()).toBe(7)
  await issuer.createResource({ ttl: 30 * 86_400 })
  expect(await days()).toBe(30)
})

test('while instances cannot wake each other, one look a second serves everybody who waits', async () => {
  let looks = 0
  const query: Query = (statement, values) => {
    if (statement.name === 'revocations-last') looks++
    return issuer.database.query(statement, values)
  }
  const notifier = { onNotify: () => () => {}, connected: false }
  const feed = createRevocationFeed({ database: { query }, notifier, logger: silentLogger })
  const { signal } = new AbortController()
  const waiting = Array.from({ length: 20 }, () => feed.read(0, 60_000, signal))
  await revokeTokens('polled')
  for (const page of await Promise.all(waiting)) expect(valuesOf(page)).toEqual(['polled'])
  expect(looks).toBeLessThan(waiting.length)
  feed.close()
})

test.each([
  ['goes away', (_feed: RevocationFeed, reader: AbortController) => reader.abort()],
  ['is still there when the issuer stops', (feed: RevocationFeed) => feed.close()],
])('a reader that %s is let go at once, with nothing', async (_name, end) => {
  const { promise: looked, resolve } = Promise.withResolvers<void>()
  const query: Query = async (statement, values) => {
    const rows = await issuer.database.query(statement, values)
    setImmediate(resolve)
    return rows as never
  }
  const notifier = { onNotify: () => () => {}, connected: true }
  const feed = createRevocationFeed({ database: { query }, notifier, logger: silentLogger })
  const reader = new AbortController()
  const waiting = feed.read(3, 600_000, reader.signal)
  await looked
  end(feed, reader)
  expect(await waiting).toEqual({ entries: [], cursor: 3, more: false })
  feed.close()
})
