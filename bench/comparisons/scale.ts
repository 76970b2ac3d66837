import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { watchDatabaseCpu } from '../harness/database-cpu-store.ts'
import type { Connection } from '../harness/database-store.ts'
import type { Stage } from '../harness/stage.ts'
import { type IssuerSize, seedSurrogate } from '../targets/issuer-seed-store.ts'
import { serveIssuer, startPostgres, tokenContestants } from './issuer.ts'

/**
 * Whether a token costs the same however much is in the database: our issuer against itself, on databases of different
 * sizes. Counted are both the issuer's CPU and PostgreSQL's, for plans that degrade show only there.
 */
export const scale: Comparison = {
  name: 'scale',
  title: 'Token service by size of the database',
  prepare: async (stage) => {
    const postgres = await startPostgres(stage)
    const contestants: Contestant[] = []
    for (const world of worlds) contestants.push(...(await prepareWorld(stage, postgres, world)))
    return { contestants, ratios }
  },
}

type World = { name: string; database: string; size: IssuerSize }

const permissions = 100
const base: World = {
  name: '1 000 users, 10 roles',
  database: 'base',
  size: { users: 1000, roles: 10, held: 2, permissions },
}
const grown: World[] = [
  { name: '1 000 000 users', database: 'users', size: { ...base.size, users: 1_000_000 } },
  { name: '10 000 roles', database: 'roles', size: { ...base.size, roles: 10_000 } },
  { name: '10 000 roles, 100 held', database: 'held', size: { ...base.size, roles: 10_000, held: 100 } },
]
const worlds = [base, ...grown]

const flat = 1.2

const ratios: Prepared['ratios'] = grown.flatMap(({ name }) =>
  ['client_credentials', 'token exchange'].flatMap((grant) =>
    (['server', 'database'] as const).map((cost) => ({
      of: `${name}, ${grant}`,
      to: `${base.name}, ${grant}`,
      cost,
      atMost: flat,
    })),
  ),
)

const prepareWorld = async (stage: Stage, postgres: Connection, { name, database, size }: World) => {
  const { connection, close, ...world } = await seedSurrogate(postgres, size, database)
  stage.onStop(close)
  const cpu = await watchDatabaseCpu(connection)
  stage.onStop(cpu.close)
  const server = await serveIssuer(stage, connection)
  return tokenContestants(name, server, world).map((contestant) => ({ ...contestant, databaseMicros: cpu.micros }))
}
