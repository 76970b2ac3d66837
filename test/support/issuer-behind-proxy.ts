import { type CountingProxy, type RoundTrip, startCountingProxy } from './counting-proxy.ts'
import type { PostgresConnection } from './database.ts'
import { startTestIssuer, type TestIssuer } from './issuer.ts'

export interface IssuerBehindProxy extends TestIssuer {
  /**
   * What the issuer asked PostgreSQL, in the order it was sent. Factories and `sql` go past the proxy and do not count.
   */
  roundTrips: readonly RoundTrip[]
  /** The number of the connection that each of them went over. */
  connections: readonly number[]
  /** The issuer cannot reach PostgreSQL meanwhile. Round trips after it are not counted. */
  withoutDatabase<Result>(meanwhile: () => Promise<Result>): Promise<Result>
}

/** An issuer that reaches its database through a proxy. `close()` it. */
export const startIssuerBehindProxy = async (): Promise<IssuerBehindProxy> => {
  let behind!: PostgresConnection
  let proxy!: CountingProxy
  const connections: number[] = []
  const issuer = await startTestIssuer({
    through: async (connection) => {
      behind = connection
      proxy = await startCountingProxy(connection, { onRoundTrip: (_, { connection }) => connections.push(connection) })
      return proxy.connection
    },
  })
  return {
    ...issuer,
    roundTrips: proxy.roundTrips,
    connections,
    async withoutDatabase(meanwhile) {
      const { port } = proxy.connection
      await proxy.close()
      try {
        return await meanwhile()
      } finally {
        proxy = await startCountingProxy(behind, { port })
      }
    },
    async close() {
      await issuer.close()
      await proxy.close()
    },
  }
}
