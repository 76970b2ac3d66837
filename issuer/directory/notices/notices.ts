import { type HookOutcome, readOutcomes } from '../../../deliveries/outcome-notice-store.ts'
import type { EventHead } from '../../../events/feed-store.ts'
import type { Notifier } from '../../../events/notifier.ts'
import { createWakeUp, pause, type WakeUp } from '../../../platform/wake-up.ts'
import { overloaded } from '../../base/errors/problems.ts'
import type { ServerSentEvent } from '../../base/route.ts'
import type { EventFeed } from '../events/feed.ts'

/**
 * That something has changed, as it happens, for pages that show it: they ask again for what they show. Events of the
 * ledger are told by every issuer, whichever recorded them, and from a cursor on; attempts of deliveries while somebody
 * listens.
 */
export interface Notices {
  /** Throws 503 when too many listen. `stillAllowed` is asked now and then; the stream ends when it says no. */
  open(request: {
    after: number | undefined
    subject: string
    stillAllowed: () => Promise<boolean>
  }): (signal: AbortSignal) => AsyncGenerator<ServerSentEvent | undefined>
  close(): Promise<void>
}

export interface NoticesOptions {
  feed: Pick<EventFeed, 'heads' | 'keeps' | 'position'>
  /** Hears `outcomesChannel`, on a connection of its own: only while anybody listens. */
  hearOutcomes: () => Pick<Notifier, 'onNotify' | 'close' | 'connected'>
  /** How often one look serves all who listen, in ms. Default 250. */
  lookMs?: number
  /** Between comments on a stream that has nothing to tell, in ms: proxies end what is silent. Default 15 000. */
  heartbeatMs?: number
  /** How often a stream asks whether its token still counts, in ms. Default 5 000. */
  recheckMs?: number
  /** Streams of an instance, and of one caller. Default 200 and 20. */
  most?: number
  mostOfSubject?: number
}

interface Listener {
  subject: string
  wakeUp: WakeUp
  outcomes: Map<string, HookOutcome>
}

/** Whoever is further behind begins anew: to read everything there is `GET /events`. */
const mostBehind = 10_000
const pageSize = 100
/** How long a stream waits until outcomes are heard of, in ms. */
const connectMs = 1_000

/** Events about signing in and acting for somebody; the others are changes. */
const ofSessions = new Set(['PostSignIn', 'PostRegister', 'Session.Ended'])
const isOfSession = ({ type, entity }: EventHead) => ofSessions.has(type) || entity.kind.startsWith('impersonation')

export const createNotices = (options: NoticesOptions): Notices => {
  const { feed, hearOutcomes, lookMs = 250, heartbeatMs = 15_000, recheckMs = 5_000 } = options
  const { most = 200, mostOfSubject = 20 } = options
  const closing = new AbortController()
  const listeners = new Set<Listener>()

  let looking: Promise<void> | undefined
  let notifier: ReturnType<NoticesOptions['hearOutcomes']> | undefined
  /** While anybody listens. A look that fails is made again. */
  const look = async () => {
    const opened = hearOutcomes()
    notifier = opened
    opened.onNotify((payload) => {
      const told = readOutcomes(payload)
      for (const listener of listeners) hear(listener, told)
    })
    let last: number | undefined
    while (listeners.size > 0 && !closing.signal.aborted) {
      const position = await feed.position().catch(() => last)
      if (position !== last) for (const { wakeUp } of listeners) wakeUp.wake()
      last = position
      await pause(lookMs, closing.signal)
    }
    looking = undefined
    await opened.close()
  }

  /** From then on no outcome is missed. Without a connection there are none for a while. */
  const hearing = async (signal: AbortSignal) => {
    const until = performance.now() + connectMs
    while (!notifier?.connected && performance.now() < until && !signal.aborted) await pause(10, signal)
  }

  const requireRoom = (subject: string) => {
    const own = [...listeners].filter((listener) => listener.subject === subject)
    if (listeners.size >= most || own.length >= mostOfSubject) throw overloaded()
  }

  return {
    open({ after, subject, stillAllowed }) {
      requireRoom(subject)
      return async function* (left) {
        const signal = AbortSignal.any([left, closing.signal])
        const listener: Listener = { subject, wakeUp: createWakeUp(), outcomes: new Map() }
        listeners.add(listener)
        try {
          looking ??= look()
          await hearing(signal)
          yield* follow({ feed, listener, after, stillAllowed, signal, heartbeatMs, recheckMs })
        } finally {
          listeners.delete(listener)
        }
      }
    },
    async close() {
      closing.abort()
      await looking
    },
  }
}

const hear = ({ outcomes, wakeUp }: Listener, told: readonly HookOutcome[]) => {
  for (const { hookId, succeeded, failed } of told) {
    const known = outcomes.get(hookId) ?? { hookId, succeeded: 0, failed: 0 }
    outcomes.set(hookId, {
      hookId,
      succeeded: known.succeeded + succeeded,
      failed: known.failed + failed,
    })
  }
  if (told.length > 0) wakeUp.wake()
}

interface Following {
  feed: NoticesOptions['feed']
  listener: Listener
  after: number | undefined
  stillAllowed: () => Promise<boolean>
  signal: AbortSignal
  heartbeatMs: number
  recheckMs: number
}

async function* follow(following: Following): AsyncGenerator<ServerSentEvent | undefined> {
  const { feed, listener, after, stillAllowed, signal, heartbeatMs, recheckMs } = following
  let cursor = await feed.position()
  const canGoOn = after !== undefined && cursor - after <= mostBehind && (await feed.keeps(after))
  if (after !== undefined && !canGoOn) yield { id: String(cursor), event: 'gap', data: {} }
  if (canGoOn) cursor = after
  yield { id: String(cursor), event: 'ready', data: {} }
  let [toldAt, checkedAt] = [performance.now(), performance.now()]
  while (!signal.aborted) {
    if (performance.now() - checkedAt >= recheckMs) {
      if (!(await stillAllowed())) return yield { event: 'end', data: { reason: 'token' } }
      checkedAt = performance.now()
    }
    const page = await feed.heads(cursor, pageSize)
    const outcomes = [...listener.outcomes.values()]
    listener.outcomes.clear()
    if (page.upTo - cursor > mostBehind) {
      cursor = page.upTo
      yield { id: String(cursor), event: 'gap', data: {} }
      continue
    }
    for (const { seq, ...head } of page.heads)
      yield { id: String(seq), event: isOfSession({ seq, ...head }) ? 'session' : 'change', data: head }
    for (const outcome of outcomes) yield { event: 'delivery', data: outcome }
    cursor = page.cursor
    const now = performance.now()
    if (page.heads.length + outcomes.length > 0) toldAt = now
    else if (now - toldAt >= heartbeatMs) {
      yield undefined
      toldAt = now
    }
    if (!page.more) await listener.wakeUp.wait(Math.min(recheckMs, heartbeatMs), signal)
  }
}
