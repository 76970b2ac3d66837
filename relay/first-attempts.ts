import { batchesAtOnce } from '../events/bus.ts'
import { entityOf, type LockedEvent } from '../events/ledger-store.ts'
import type { Query } from '../platform/database.ts'
import type { Claimed } from './claimed-lane.ts'
import { type HookLoad, hangMs } from './concurrency.ts'
import type { RelaySession, Session } from './heartbeat.ts'
import { type LaneRunner, sizeOf } from './lane-runner.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import { type FirstSuccess, leaseBegunAttempts, storeFirstSuccesses } from './ledger/first-attempt-store.ts'
import { type FreshEvent, freshEvents } from './ledger/fresh-event-store.ts'
import type { OpenDelivery } from './ledger/lane-store.ts'
import type { Targets } from './targets.ts'
import { type Attempt, createUnstoredResults } from './unstored-results.ts'

/**
 * Sends events while they are taken in, to receivers that are well and prompt: what succeeds then, as most does, is written once, when it is
 * done. Everything else becomes a lane as ever. The transaction that takes the events in holds them, so that nobody else sends
 * them; ends it early, they are sent again.
 */
export interface FirstAttempts {
  /** Payloads of events are of use: something may be sent right away. */
  mayBegin(): boolean
  /** Begins. Undefined when there is nothing that may be sent right away. */
  begin(query: Query, ready: readonly LockedEvent[]): Promise<FirstRound | undefined>
}

/** The first attempts of one batch. */
export interface FirstRound {
  /** Waits, and stores what has succeeded. Returns the numbers of events that are thereby taken in. */
  store(query: Query): Promise<ReadonlySet<number>>
  /** After taking in the rest: leases the lanes of attempts that are still under way, or did not succeed. */
  lease(query: Query): Promise<void>
  /** After the commit: goes on with these. */
  goOn(): void
  /** When there was none: what came of the attempts is kept for when the events come again. */
  drop(): void
}

export interface FirstAttemptsOptions {
  runner: LaneRunner
  session: Pick<RelaySession, 'current'>
  targets: Pick<Targets, 'prepare'>
  onResult(result: AttemptRecord, delivery: OpenDelivery): void
  /** POSTs to one hook at a time. */
  perHook: number
  /** Lanes under way at a time, over all hooks. */
  maxLanes: number
  leaseMs: number
  /** How long before its end a lease is too short to begin an attempt, in ms. */
  attemptMs: number
}

/**
 * A hook gets at most what it gets through in this time, in ms: what else is for it waits in lanes, and does not hold up the events behind it that
 * are for others.
 */
const shareMs = 100
/** How long a transaction waits for receivers, in ms. */
const longestMs = 250

/** The events of one entity for one hook: sent one after the other, while each succeeds. */
interface Chain {
  claimed: Claimed
  events: FreshEvent[]
  /** Under way, or without plain success. */
  begun: { delivery: OpenDelivery; result: Attempt } | undefined
}

/** What is for one hook. */
interface Line {
  load: HookLoad
  /** By entity, in the order of their events. */
  chains: Map<string, Chain>
  /** Attempts that are still to be begun. */
  left: number
}

export const createFirstAttempts = (options: FirstAttemptsOptions): FirstAttempts => {
  const { runner, session, targets, onResult, perHook, maxLanes, leaseMs, attemptMs } = options
  const { loads, known, send } = runner
  const unstored = createUnstoredResults()
  const counted = (result: AttemptRecord | undefined, delivery: OpenDelivery) => {
    if (result) onResult(result, delivery)
    return result
  }
  /** What came of an earlier attempt, or else comes of one that begins now. */
  const attempt = (claimed: Claimed, load: HookLoad, delivery: OpenDelivery): Attempt => {
    const { lease } = claimed
    const before = unstored.take(lease.hookId, delivery.eventId)
    if (before === undefined) return send(claimed, load, delivery).then((result) => counted(result, delivery))
    return before.then((result) => result && { ...result, lease })
  }

  const linesOf = (events: readonly FreshEvent[], own: Session): Line[] => {
    const since = performance.now()
    const until = since + leaseMs - attemptMs
    const lines = new Map<string, Line & { share: ReturnType<HookLoad['capacity']> }>()
    const lineOf = (hookId: string) => {
      const load = loads.of(hookId)
      const line = { load, chains: new Map<string, Chain>(), left: 0, share: load.capacity(shareMs) }
      lines.set(hookId, line)
      targets.prepare(hookId, since)
      return line
    }
    for (const fresh of events)
      for (const hookId of fresh.hookIds) {
        const line = lines.get(hookId) ?? lineOf(hookId)
        const { load, chains, share } = line
        if (share.more === 0) continue
        share.more -= 1
        const { entityKind, entityId, version } = fresh.event
        const key = entityOf(fresh.event)
        const chain = chains.get(key)
        if (chain && chain.events.length >= share.ofOne) continue
        line.left += 1
        load.expect(1)
        if (chain) chain.events.push(fresh)
        else {
          const lease = { hookId, entityKind, entityId, fence: 0, from: version }
          const claimed = runner.claimed(lease, { kind: 'plain', session: own, since, until })
          chains.set(key, { claimed, events: [fresh], begun: undefined })
        }
      }
    return [...lines.values()].filter(({ left }) => left > 0)
  }

  const beginRound = (lines: readonly Line[], own: Session): FirstRound => {
    const chains = lines.flatMap((line) => [...line.chains.values()])
    const successes: FirstSuccess[] = []
    let isOver = false
    let held = sizeOf(chains.flatMap(({ events }) => events.map(({ event }) => event)))
    runner.hold(held)
    runner.reserve(chains.length)
    const until = performance.now() + longestMs
    const open = new Set(lines)

    /** Nothing more of it is begun. */
    const close = (line: Line) => {
      line.load.expect(-line.left)
      line.left = 0
    }
    /** True when the next one of the entity may be sent. */
    const sendOne = async (line: Line, chain: Chain, fresh: FreshEvent): Promise<boolean> => {
      const { load } = line
      const { id: eventId, type, version, occurredAt, payload } = fresh.event
      if (payload === null || isOver || load.failing || !runner.hasMemory()) return false
      line.left -= 1
      load.expect(-1)
      const delivery = { id: 0, eventId, type, version, attempts: 0, test: false, occurredAt, payload, gap: false }
      const sending = attempt(chain.claimed, load, delivery)
      chain.begun = { delivery, result: sending }
      const result = await sending
      if (isOver) return false
      const succeeded = result?.state === 'succeeded' && !result.isNews
      if (succeeded || result === undefined) chain.begun = undefined
      if (!succeeded) return false
      successes.push({ fresh, result })
      const more = result.responseBody?.length ?? 0
      held += more
      runner.hold(more)
      return true
    }
    /** In one turn: what others want to send to the hook comes behind all of it, so that rounds end one after the other. */
    const workOff = (line: Line, next: Iterable<Chain>) =>
      line.load.inTurn(async () => {
        for (const chain of next) {
          if (isOver) return
          for (const fresh of chain.events) if (!(await sendOne(line, chain, fresh))) break
        }
      })
    const run = async (line: Line) => {
      const next = line.chains.values()
      const turns = Math.min(perHook, line.chains.size)
      await Promise.all(Array.from({ length: turns }, () => workOff(line, next)))
      close(line)
      open.delete(line)
    }
    const running = Promise.all(lines.map(run))

    const end = () => {
      isOver = true
      for (const line of lines) close(line)
    }
    const over = () =>
      new Promise<void>((resolve, reject) => {
        const timer = setInterval(() => {
          if (performance.now() >= until || ![...open].some(({ load }) => load.isPrompt())) finish()
        }, hangMs / 5)
        const finish = () => {
          clearInterval(timer)
          end()
          resolve()
        }
        running.then(finish, (error: unknown) => {
          finish()
          reject(error)
        })
      })

    const leased: { chain: Chain; delivery: OpenDelivery; fence: number }[] = []
    const release = () => {
      runner.hold(-held)
      runner.reserve(-chains.length)
    }
    return {
      async store(query) {
        await over()
        return storeFirstSuccesses(query, successes)
      },
      async lease(query) {
        // Its lane may be somebody else's by now, who then sends it again: an older delivery of the entity was opened meanwhile.
        const left = chains.flatMap((chain) => (chain.begun ? [{ chain, ...chain.begun }] : []))
        const begun = left.map(({ chain, delivery }) => ({ ...chain.claimed.lease, version: delivery.version }))
        await runner.learnFences(async () => {
          const rows = await leaseBegunAttempts(query, begun, { relayId: own.id, leaseMs })
          return rows.map(({ number, deliveryId, fence }) => {
            const { chain, delivery } = left[number]!
            leased.push({ chain, delivery: { ...delivery, id: deliveryId }, fence })
            return fence
          })
        })
      },
      goOn() {
        release()
        for (const { chain, delivery, fence } of leased) {
          chain.claimed.lease.fence = fence
          const result = chain.begun!.result.then((came) => came && { ...came, deliveryId: delivery.id })
          runner.run(chain.claimed, [delivery], result)
        }
      },
      drop() {
        end()
        release()
        for (const { fence } of leased) known.delete(fence)
        for (const { fresh, result } of successes)
          unstored.keep(result.lease.hookId, fresh.event.id, Promise.resolve(result))
        for (const { claimed, begun } of chains)
          if (begun) unstored.keep(claimed.lease.hookId, begun.delivery.eventId, begun.result)
      },
    }
  }

  const room = () => Math.min(runner.room(), Math.ceil(maxLanes / batchesAtOnce))
  return {
    mayBegin: () => session.current() !== undefined && room() > 0 && loads.prompt().length > 0,
    async begin(query, ready) {
      const own = session.current()
      const hookIds = loads.prompt()
      unstored.forgetOld()
      const most = room()
      if (own === undefined || ready.length === 0 || hookIds.length === 0 || most === 0) return undefined
      const events = await runner.reserving(most, () => freshEvents(query, ready, { hookIds, most }))
      const lines = linesOf(events, own)
      return lines.length > 0 ? beginRound(lines, own) : undefined
    },
  }
}
