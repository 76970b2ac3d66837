import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../platform/database/database.ts'
import type { CodeFlow } from '../../support/code-flow.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { freePort } from '../../support/free-port.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { createProcessFlow, startIssuerProcess } from '../../support/issuer-process.ts'
import type { SurrogateProcess } from '../../support/surrogate-process.ts'

/** Two issuers as operators run them, on one database: what one of them did, known to the other and after a restart. */
describe('a refresh token that was replaced', { timeout: 90_000 }, () => {
  let db: TestDatabase
  let ports: [number, number]
  let flow: CodeFlow
  let client: TestApplication
  let family: { sid: string; first: string; second: string; accessToken: string }
  const running: SurrogateProcess[] = []

  const sql = <Row extends object>(text: string, ...values: unknown[]): Promise<Row[]> =>
    db.database.query<Row>(statement('', text), values)
  const start = async (instance: number) => {
    const baseUrl = `http://127.0.0.1:${ports[0]}`
    running[instance] = await startIssuerProcess(db.connection, { port: ports[instance]!, baseUrl })
  }
  const end = async (instance: number, signal: NodeJS.Signals) => {
    running[instance]?.signal(signal)
    return running[instance]?.exited
  }

  beforeAll(async () => {
    db = await createTestDatabase()
    ports = [await freePort(), await freePort()]
    flow = createProcessFlow([`http://127.0.0.1:${ports[0]}`, `http://127.0.0.1:${ports[1]}`])
    await start(0)
    await start(1)
    client = await flow.createClient()
  })
  afterAll(async () => {
    await Promise.all([end(0, 'SIGTERM'), end(1, 'SIGTERM')])
    await db.close()
  })
  beforeEach(async () => {
    const person = await flow.createPerson()
    const { body } = await flow.redeem(client, await flow.signIn(flow.browser(), client, person))
    const [{ id: sid }] = (await sql('SELECT id FROM authorizations WHERE user_id = $1', person.id)) as [{ id: string }]
    const { body: next } = await flow.refresh(client, body.refresh_token)
    family = { sid, first: body.refresh_token, second: next.refresh_token, accessToken: next.access_token }
    expect(await flow.userinfo(family.accessToken, 1)).toBe(200)
  })

  const replacedAgo = (seconds: number) =>
    sql(
      `UPDATE refresh_tokens SET rotated_at = now() - $2 * interval '1 second'
       WHERE authorization_id = $1 AND rotated_at IS NOT NULL`,
      family.sid,
      seconds,
    )
  const reused = { status: 400, body: { error: 'invalid_grant', reason: 'refresh_token_reused' } }
  const expectDead = async () => {
    for (const instance of [0, 1]) {
      expect(await flow.refresh(client, family.second, instance)).toMatchObject(reused)
      expect(await flow.userinfo(family.accessToken, instance)).toBe(401)
    }
    expect(await sql(`SELECT FROM revocations WHERE kind = 'sid' AND value = $1`, family.sid)).toHaveLength(1)
  }

  test('is known for stolen at the other instance, when it comes after the leeway', async () => {
    await replacedAgo(11)
    expect(await flow.refresh(client, family.first, 1)).toMatchObject(reused)
    await expectDead()
  })

  test.each<[string, NodeJS.Signals]>([
    ['stopped and started again', 'SIGTERM'],
    ['killed and started again', 'SIGKILL'],
  ])('is known for stolen where it was replaced, after the issuer was %s', async (_, signal) => {
    const { pid } = running[0]!
    await end(0, signal)
    await start(0)
    expect(running[0]!.pid).not.toBe(pid)
    await replacedAgo(11)
    expect(await flow.refresh(client, family.first, 0)).toMatchObject(reused)
    await expectDead()
  })

  test('still gets the one that replaced it, within the leeway, from an issuer that has just started', async () => {
    await end(0, 'SIGKILL')
    await start(0)
    await replacedAgo(0)
    for (const instance of [0, 1]) {
      const again = await flow.refresh(client, family.first, instance)
      expect(again).toMatchObject({ status: 200, body: { refresh_token: family.second } })
    }
    expect(await flow.userinfo(family.accessToken)).toBe(200)
  })
})
