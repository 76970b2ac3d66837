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

  /** One message at a time: what comes meanwhile goes together with the next. */
  const batches = (follower: number) => {
    let records: Uint8Array<ArrayBuffer>[] = []
    let size = 0
    let lost = 0
    let sending = false
    const send = async () => {
      while (records.length > 0 || lost > 0) {
        const batch = { follower, records, lost }
        records = []
        size = 0
        lost = 0
        await call('decisions', batch, timeoutMs).catch(() => {})
      }
      sending = false
    }
    const schedule = () => {
      if (sending) return
      sending = true
      setImmediate(() => void send())
    }
    return {
      decisions(added: readonly Uint8Array<ArrayBuffer>[]) {
        for (const record of added) {
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
    followDecisions({ follower, filter }) {
      const end = recorder()?.decisions.follow(filter, batches(follower))
      if (end) followed.set(follower, end)
    },
    unfollowDecisions({ follower }) {
      followed.get(follower)?.()
      followed.delete(follower)
    },
  }
}
