import { randomUUID } from 'node:crypto'
import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { pause } from '../platform/wake-up.ts'
import { enterRelay, leaveRelay, renewRelay, takeOverLanes } from './ledger/heartbeat-store.ts'

/**
 * A relay tells the database again and again that it is alive. If it cannot, because it was killed, sleeps, or has lost
 * the database, its membership ends: it breaks off its attempts, and other relays take its lanes over. It stops before
 * they begin, so that never two relays send the same delivery.
 */
export interface Heartbeat {
  /** Undefined while the database cannot be told that we are alive. */
  current(): Membership | undefined
  /** Whether we are among the relays that are alive. */
  health(): { ok: boolean; detail?: string }
  /** The lanes should have been given back before. */
  close(): Promise<void>
}

/** A relay's time among those that are alive; it begins anew after a heartbeat that came too late. */
export interface Membership {
  /** By which lanes are leased. */
  id: string
  /** Aborts when it ends. */
  signal: AbortSignal
  /** True while the other relays count us among those that are alive. */
  isAlive(): boolean
}

export interface HeartbeatOptions {
  database: Database
  logger: Logger
  /** Without a heartbeat for so long a relay counts as dead, in ms. */
  aliveMs: number
  /** There may be lanes to claim: some of other relays were freed, or a membership has just begun. */
  onFreeLanes(): void
}

interface OwnMembership extends Membership {
  renew(until: number): void
  end(): void
}

const createMembership = (): OwnMembership => {
  const ended = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let aliveUntil = 0
  const end = () => {
    clearTimeout(timer)
    ended.abort()
  }
  return {
    id: randomUUID(),
    signal: ended.signal,
    isAlive: () => !ended.signal.aborted && performance.now() < aliveUntil,
    renew(until) {
      aliveUntil = until
      clearTimeout(timer)
      timer = setTimeout(end, Math.max(until - performance.now(), 0))
    },
    end,
  }
}

export const startHeartbeat = ({ database, logger, aliveMs, onFreeLanes }: HeartbeatOptions): Heartbeat => {
  const stopping = new AbortController()
  let own: OwnMembership | undefined

  // Our time is measured from before the statement, so it is up before the database's.
  const sayAlive = async () => {
    const renewedUntil = performance.now() + aliveMs
    if (own !== undefined && !own.signal.aborted) {
      const { id } = own
      if (await database.transaction((query) => renewRelay(query, id, aliveMs))) return own.renew(renewedUntil)
      own.end()
    }
    if (own !== undefined) logger.warn('this relay was not heard of in time; it begins anew')
    const next = createMembership()
    const until = performance.now() + aliveMs
    await database.transaction((query) => enterRelay(query, next.id, aliveMs))
    next.renew(until)
    own = next
    onFreeLanes()
  }

  const takeOver = async () => {
    const { relays, lanes } = await database.transaction(takeOverLanes)
    if (relays > 0) logger.warn({ relays, lanes }, 'relays are gone; their lanes were taken over')
    if (lanes > 0) onFreeLanes()
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
        // Tried more often than logged.
        if (performance.now() >= silentUntil) {
          logger.error({ err: error }, failure)
          silentUntil = performance.now() + delay
        }
        await pause(Math.min(delay, aliveMs / 5), stopping.signal)
      }
    }
  }
  // At the same time: taking over waits for locks, and the heartbeat must not.
  const ended = Promise.all([
    again(sayAlive, 'the database cannot be told that this relay is alive; trying again'),
    again(takeOver, 'the lanes of relays that are gone cannot be taken over; trying again'),
  ])

  return {
    current: () => (own?.isAlive() ? own : undefined),
    health: () => (own?.isAlive() ? { ok: true } : { ok: false, detail: 'the database was not told in time' }),
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
