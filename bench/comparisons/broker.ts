import { randomBytes } from 'node:crypto'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { freePort } from '../../test/support/free-port.ts'
import { startTestNats } from '../../test/support/nats.ts'
import type { Comparison, Contestant } from '../harness/comparison.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'
import { underTest } from '../harness/process.ts'
import { send, sendExpecting } from '../harness/send.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { startPostgres } from './issuer.ts'
import { managementToken } from './management.ts'

/**
 * What a change costs the caller, by what carries its event: PostgreSQL, NATS, or NATS that is not there. Each issuer
 * has a database of its own; `PATCH /api/users/:id/custom-data` over HTTP, its event in the same transaction.
 */
export const broker: Comparison = {
  name: 'broker',
  title: 'Changes by the Management API, with and without a broker (needs nats-server)',
  prepare: async (stage) => {
    const postgres = await startPostgres(stage)
    const nats = await startTestNats()
    stage.onStop(nats.close)
    const carriers = [
      { name: 'events through PostgreSQL' },
      { name: 'events through NATS', address: `127.0.0.1:${nats.port}` },
      { name: 'NATS is down', address: `127.0.0.1:${await freePort()}` },
    ]
    const contestants: Contestant[] = []
    for (const { name, address } of carriers) contestants.push(await contestantOf(stage, postgres, name, address))
    return {
      contestants,
      ratios: [
        { of: 'NATS is down', to: 'events through NATS', atMost: 1.1 },
        { of: 'NATS is down', to: 'events through PostgreSQL', atMost: 1.1 },
        { of: 'events through NATS', to: 'events through PostgreSQL' },
      ],
    }
  },
}

const people = 200

const contestantOf = async (...settings: Parameters<typeof changingIssuer>): Promise<Contestant> =>
  (await changingIssuer(...settings)).contestant

/** An issuer with a database of its own, and changes to send to it. */
export const changingIssuer = async (
  stage: Stage,
  postgres: Connection,
  name: string,
  nats: string | undefined,
): Promise<{ contestant: Contestant; connection: Connection }> => {
  const connection = await addDatabase(postgres, name.replaceAll(' ', '_').toLowerCase())
  const database = createDatabase({ connection, logger: silentLogger, poolSize: 2 })
  await migrate(database, migrations)
  await database.close()
  const bootstrap = { id: 'bench', secret: randomBytes(32).toString('base64url') }
  const target = new URL('../targets/issuer.ts', import.meta.url)
  const server = await stage.serve(target, underTest, { connection, bootstrap, ...(nats !== undefined && { nats }) })
  const token = await managementToken(server, bootstrap)
  const users = await makePeople(server, token)
  let change = 0
  const next = () => {
    change += 1
    return request(
      'PATCH',
      `/api/users/${users[change % people]}/custom-data`,
      { customData: { change } },
      server,
      token,
    )
  }
  const contestant: Contestant = {
    name,
    server,
    once: true,
    requests: (count) => Array.from({ length: count }, next),
    expected: { status: 200, bodyIncludes: '"change"' },
    preflight: async () => {
      const path = `/api/users/${users[0]}/custom-data`
      await sendExpecting(server.port, request('PATCH', path, { customData: {} }, server, `${token}x`), 401)
    },
  }
  return { contestant, connection }
}

const makePeople = async (server: Server, token: string): Promise<string[]> => {
  const ids: string[] = []
  for (let index = 0; index < people; index += 1) {
    const { status, body } = await send(
      server.port,
      request('POST', '/api/users', { username: `u${index}` }, server, token),
    )
    if (status !== 201 && status !== 200) throw new Error(`no user was made: ${status} ${body}`)
    ids.push((JSON.parse(body.toString()) as { id: string }).id)
  }
  return ids
}

const request = (method: string, path: string, body: object, { port }: Server, token: string): string => {
  const text = JSON.stringify(body)
  return [
    `${method} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    '',
    text,
  ].join('\r\n')
}
