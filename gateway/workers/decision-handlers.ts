import type { Recorder } from '../inspection/recorder.ts'
import type { Channel, Handlers } from './channel.ts'
import type { primaryCalls, workerCalls } from './messages.ts'

type DecisionCalls = 'findDecisions' | 'differences' | 'followDecisions' | 'unfollowDecisions'

/** What waits for the primary process, of each follower. In bytes. */
const mostWaiting = 1_048_576
/** A primary process that takes no decisions for so long does not get these. In ms. */
const timeoutMs = 10_000

/** Answers the primary process about the decisions that this worker keeps. Undefined: it keeps none. */
export const createDecisionHandlers = (options: {
  recorder: () => Recorder | undefined
  call: Channel<typeof primaryCalls>['call']
}): Pick<Handlers<typeof workerCalls>, DecisionCalls> => {
  const { recorder, call } = options
  const followed = new Map<number, () => void>()

  /** One message at a time: what comes meanwhile goes together with the next. What was kept goes first. */
  const batches = (follower: number) => {
    let kept: Uint8Array<ArrayBuffer>[] = []
    let records: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    let lost = 0
    let sending = false
    const next = () => {
      const old = kept.length > 0
      const batch = { follower, records: old ? kept.splice(0, atOnce(kept)) : records, lost, old }
      lost = 0
      if (old) return batch
      records = []
      size = 0
      return batch
    }
    const send = async () => {
      while (kept.length > 0 || records.length > 0 || lost > 0)
        await call('decisions', next(), timeoutMs).catch(() => {})
      sending = false
    }
    const schedule = () => {
      if (sending) return
      sending = true
      setImmediate(() => void send())
    }
    return {
      decisions(added: readonly Uint8Array<ArrayBuffer>[], old: boolean) {
        if (old) kept = [...added]
        for (const record of old ? [] : added) {
          if (size + record.length > mostWaiting) lost++
          else {
            records.push(record)
            size += record.length
          }
        }
        schedule()
      },
      lost(count: number) {
        lost += count
        schedule()
      },
    }
  }

  return {
    findDecisions: ({ filter, limit }) =>
      recorder()?.decisions.find(filter, limit) ?? Promise.resolve({ decisions: [], more: false }),
    differences: () => recorder()?.differences() ?? [],
    followDecisions({ follower, filter, replay }) {
      const end = recorder()?.decisions.follow(filter, batches(follower), replay)
      if (end) followed.set(follower, end)
    },
    unfollowDecisions({ follower }) {
      followed.get(follower)?.()
      followed.delete(follower)
    },
  }
}

/** How many of them make a message. */
const atOnce = (records: readonly Uint8Array[]): number => {
  let size = 0
  let count = 0
  for (const record of records) {
    size += record.length
    if (size > mostWaiting) break
    count++
  }
  return Math.max(count, 1)
}
