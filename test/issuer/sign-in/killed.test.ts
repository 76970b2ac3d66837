import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../platform/database/database.ts'
import { type CodeFlow, type Person, parametersOf } from '../../support/code-flow.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort } from '../../support/free-port.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { createProcessFlow, startIssuerProcess } from '../../support/issuer-process.ts'
import type { SurrogateProcess } from '../../support/surrogate-process.ts'

/** An issuer, as operators run it, that is killed in the middle of a sign-in. */
describe('killed', { timeout: 90_000 }, () => {
  let db: TestDatabase
  let port: number
  let running: SurrogateProcess
  let flow: CodeFlow
  let client: TestApplication
  let person: Person

  const sql = <Row extends object>(text: string, ...values: unknown[]): Promise<Row[]> =>
    db.database.query<Row>(statement('', text), values)
  const start = async () => {
    running = await startIssuerProcess(db.connection, { port })
  }
  const kill = async () => {
    running.signal('SIGKILL')
    await running.exited
  }

  beforeAll(async () => {
    db = await createTestDatabase()
    port = await freePort()
    flow = createProcessFlow([`http://127.0.0.1:${port}`])
  })
  afterAll(() => db.close())
  beforeEach(async () => {
    await start()
    client = await flow.createClient()
    person = await flow.createPerson()
  })
  afterEach(kill)

  /** While another connection holds something, a request that needs it, and the end of the process that serves it. */
  const killedWhile = async (held: string, values: unknown[], ask: () => Promise<unknown>) => {
    const answer = await db.database.transaction(async (query) => {
      await query(statement('', held), values)
      const asked = ask().then(
        () => 'answered',
        () => 'broken off',
      )
      await expect.poll(() => waiting()).toHaveLength(1)
      await kill()
      return asked
    })
    expect(await answer).toBe('broken off')
    await expect.poll(waiting).toEqual([])
    await expect.poll(() => ofThatProcess()).toEqual([])
  }
  const backends = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  const waiting = () => sql(`SELECT ${backends} AND wait_event_type = 'Lock'`)
  /** Connections that still do something; those of a process that has died end when they come to speak to it. */
  const ofThatProcess = () => sql(`SELECT ${backends} AND (state <> 'idle' OR backend_xid IS NOT NULL)`)

  const left = async () => {
    const [row] = await sql<Record<string, number>>(
      `SELECT (SELECT count(*)::integer FROM sessions WHERE user_id = $1) AS sessions,
         (SELECT count(*)::integer FROM authorizations WHERE user_id = $1) AS authorizations,
         (SELECT count(*)::integer FROM authorization_codes c JOIN authorizations a ON a.id = c.authorization_id
          WHERE a.user_id = $1) AS codes,
         (SELECT count(*)::integer FROM proofs WHERE user_id = $1 AND consumed_at IS NOT NULL) AS consumed,
         (SELECT count(*)::integer FROM known_devices WHERE user_id = $1) AS devices,
         (SELECT count(*)::integer FROM users WHERE id = $1 AND last_sign_in_at IS NOT NULL) AS noted,
         (SELECT count(*)::integer FROM outbox WHERE type = 'PostSignIn' AND entity_id = $1) AS events,
         (SELECT count(*)::integer FROM logs WHERE key = 'Interaction.End' AND user_id = $1) AS ends`,
      person.id,
    )
    return row
  }
  const none = { sessions: 0, authorizations: 0, codes: 0, consumed: 0, devices: 0, noted: 0, events: 0, ends: 0 }
  const once = { sessions: 1, authorizations: 1, codes: 1, consumed: 1, devices: 1, noted: 1, events: 1, ends: 1 }

  test.each<[string, string, () => unknown[]]>([
    [
      'with the session written and the code not',
      'SELECT FROM applications WHERE id = $1 FOR UPDATE',
      () => [client.id],
    ],
    ['with everything written but the event', 'LOCK TABLE outbox IN SHARE MODE', () => []],
  ])('%s, it leaves nothing behind, and the person signs in in the same tab', async (_, held, values) => {
    const browser = flow.browser()
    const page = await flow.ask(browser, client)
    const cookies = new Map(browser.cookies)
    await killedWhile(held, values(), () => flow.send(browser, page, flow.credentials(person)))
    expect(await left()).toEqual(none)
    expect(browser.cookies).toEqual(cookies)

    await start()
    const back = await browser.submit(page, flow.credentials(person))
    const { code } = parametersOf(back)
    expect(await left()).toMatchObject({ ...once, consumed: expect.any(Number) })
    expect(await flow.redeem(client, code!)).toMatchObject({ status: 200 })
  })

  const used = async () =>
    (
      await sql<Record<string, boolean>>(
        `SELECT c.redeemed_at IS NOT NULL AS redeemed,
           EXISTS (SELECT FROM opaque_tokens WHERE session_id = a.id) AS access,
           EXISTS (SELECT FROM refresh_tokens WHERE authorization_id = a.id) AS refresh,
           EXISTS (SELECT FROM logs WHERE payload->>'sessionId' = a.id AND result = 'Success') AS logged
         FROM authorization_codes c JOIN authorizations a ON a.id = c.authorization_id WHERE a.user_id = $1`,
        person.id,
      )
    )[0]

  test('in the statement that redeems a code, it leaves the code to be redeemed, where the server sees that nobody waits', async () => {
    await sql(
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_connection_check_interval = 50', current_database()); END $$`,
    )
    await kill()
    await start()
    const code = await flow.signIn(flow.browser(), client, person)
    await db.database.transaction(async (query) => {
      await query(statement('', 'LOCK TABLE refresh_tokens IN SHARE MODE'), [])
      const asked = flow.redeem(client, code).then(
        () => 'answered',
        () => 'broken off',
      )
      await expect.poll(waiting).toHaveLength(1)
      await kill()
      expect(await asked).toBe('broken off')
      // It gives up although what it waits for is still held.
      await expect.poll(waiting).toEqual([])
    })
    expect(await used()).toEqual({ redeemed: false, access: false, refresh: false, logged: false })
    await start()
    expect(await flow.redeem(client, code)).toMatchObject({ status: 200 })
    await sql(
      `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET client_connection_check_interval', current_database()); END $$`,
    )
  })

  test('there, it leaves the whole or nothing, where the server does not look', async () => {
    const code = await flow.signIn(flow.browser(), client, person)
    await killedWhile('LOCK TABLE refresh_tokens IN SHARE MODE', [], () => flow.redeem(client, code))
    const { redeemed } = (await used())!
    expect(await used()).toEqual({ redeemed, access: redeemed, refresh: redeemed, logged: redeemed })
    await start()
    expect((await flow.redeem(client, code)).status).toBe(redeemed ? 400 : 200)
  })
})
