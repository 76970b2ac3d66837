import { randomUUID } from 'node:crypto'
import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { pause } from '../platform/wake-up.ts'
import { enterRelay, leaveRelay, renewRelay, takeOverLanes } from './ledger/heartbeat-store.ts'

/**
 * A relay says again and again that it is alive. When it cannot, because it was killed, sleeps, or has lost the database, its time is up:
 * it breaks off what it has under way, and the others take its lanes over. By then it sends nothing more, so that there are never two.
 */
export interface RelaySession {
  /** Undefined while the database cannot be told that we are alive. */
  current(): Session | undefined
  /** Whether we are among the relays that are alive. */
  health(): { ok: boolean; detail?: string }
  /** The lanes should have been given back before. */
  close(): Promise<void>
}

export interface Session {
  /** By which lanes are leased. */
  id: string
  /** Aborts when the time is up. */
  signal: AbortSignal
  /** True while others believe that we are alive. */
  holds(): boolean
}

export interface SessionOptions {
  database: Database
  logger: Logger
  /** Without a word for so long a relay is gone, in ms. */
  aliveMs: number
  /** There may be work: lanes of others became free, or we have just begun. */
  onWork(): void
}

interface OwnSession extends Session {
  renew(until: number): void
  end(): void
}

const createOwnSession = (): OwnSession => {
  const ended = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let holdsUntil = 0
  const end = () => {
    clearTimeout(timer)
    ended.abort()
  }
  return {
    id: randomUUID(),
    signal: ended.signal,
    holds: () => !ended.signal.aborted && performance.now() < holdsUntil,
    renew(until) {
      holdsUntil = until
      clearTimeout(timer)
      timer = setTimeout(end, Math.max(until - performance.now(), 0))
    },
    end,
  }
}

export const startSession = ({ database, logger, aliveMs, onWork }: SessionOptions): RelaySession => {
  const stopping = new AbortController()
  let own: OwnSession | undefined

  // Our own time begins before the database's, so it is up before.
  const sayAlive = async () => {
    const renewedUntil = performance.now() + aliveMs
    if (own !== undefined && !own.signal.aborted) {
      const { id } = own
      if (await database.transaction((query) => renewRelay(query, id, aliveMs))) return own.renew(renewedUntil)
      own.end()
    }
    if (own !== undefined) logger.warn('this relay was not heard of in time; it begins anew')
    const next = createOwnSession()
    const until = performance.now() + aliveMs
    await database.transaction((query) => enterRelay(query, next.id, aliveMs))
    next.renew(until)
    own = next
    onWork()
  }

  const takeOver = async () => {
    const { relays, lanes } = await database.transaction(takeOverLanes)
    if (relays > 0) logger.warn({ relays, lanes }, 'relays are gone; their lanes were taken over')
    if (lanes > 0) onWork()
  }

  const again = async (work: () => Promise<void>, failure: string) => {
    const backOff = createBackOff()
    let silentUntil = Number.NEGATIVE_INFINITY
    while (!stopping.signal.aborted) {
      try {
        await work()
        backOff.reset()
        silentUntil = Number.NEGATIVE_INFINITY
        await pause(aliveMs / 5, stopping.signal)
      } catch (error) {
        const delay = backOff.next()
        // Tried more often than it is told.
        if (performance.now() >= silentUntil) {
          logger.error({ err: error }, failure)
          silentUntil = performance.now() + delay
        }
        await pause(Math.min(delay, aliveMs / 5), stopping.signal)
      }
    }
  }
  // Side by side: taking over waits for locks, our word must not.
  const ended = Promise.all([
    again(sayAlive, 'the database cannot be told that this relay is alive; trying again'),
    again(takeOver, 'the lanes of relays that are gone cannot be taken over; trying again'),
  ])

  return {
    current: () => (own?.holds() ? own : undefined),
    health: () => (own?.holds() ? { ok: true } : { ok: false, detail: 'the database was not told in time' }),
    async close() {
      stopping.abort()
      await ended
      const last = own
      own?.end()
      if (last === undefined) return
      await database
        .transaction((query) => leaveRelay(query, last.id))
        .catch((error: unknown) => logger.warn({ err: error }, 'this relay could not say that it leaves'))
    },
  }
}
