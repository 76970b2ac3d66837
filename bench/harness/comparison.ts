import type { Expected, Protocol } from './load-generator.ts'
import type { Settings } from './measure.ts'
import type { Server, Stage } from './stage.ts'

/** What a comparison is: servers that get the same work in turn, and the ratios between them that are promised. */
export type Comparison = {
  /** As typed on the command line. */
  name: string
  title: string
  /** Requests at a time, when the command line does not say. Default 16. */
  connections?: number
  /** Requests at a time, whatever the command line says: 1 for what one caller waits, without a queue. */
  fixedConnections?: number
} & (
  | {
      /** Puts servers and data on the stage, which `main.ts` clears whatever happens. */
      prepare: (stage: Stage) => Promise<Prepared>
    }
  | {
      /** For what is not a request that is answered: measures by itself. */
      run: (stage: Stage, settings: Settings, progress: (line: string) => void) => Promise<Page>
    }
)

/** What is printed: tables of a head and rows, the first column text; and the figures behind them. */
export type Page = { tables: string[][][]; figures: unknown }

export type Prepared = {
  contestants: Contestant[]
  ratios: Ratio[]
}

export type Contestant = {
  name: string
  server: Server
  /**
   * Whole requests for one round. With `once` they are single use: at least as many as asked for, prepared outside the
   * measured window; otherwise one or a few, sent over and over.
   */
  requests: (count: number) => Promise<string[]> | string[]
  once?: boolean
  expected: Expected
  /** Default `http`. */
  protocol?: Protocol
  /** With HTTP/2: requests at a time on one connection, of which there are fewer. Default 1. */
  streams?: number
  /** Times as many connections as the others have. Default 1. */
  timesConnections?: number
  /** CPU microseconds that PostgreSQL has worked for this server up to now; see `database-cpu-store.ts`. */
  databaseMicros?: () => Promise<number>
  /** The bar for the 95th percentile of a round, in ms. */
  atMostP95Ms?: number
  /** Runs along with every round, to its end: other clients, say. */
  beside?: (seconds: number) => Promise<unknown>
  /** Proves that the contestant does the work: sends what it has to refuse. Throws when it does not. */
  preflight?: () => Promise<void>
}

/**
 * `cost(of) / (cost(to) + plus.times × cost(plus.of) + …)`, with the bar it has to hold. Costs are the CPU for a
 * request, by default of the process under test; or the 99th percentile of the latency.
 */
export type Ratio = {
  of: string
  to: string
  plus?: { times: number; of: string }[]
  cost?: 'server' | 'database' | 'p99'
  atMost?: number
  atLeast?: number
}
