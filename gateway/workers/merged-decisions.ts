import type { DecisionFilter } from '../inspection/decision-answers.ts'
import { type DecisionFollower, type Decisions, type FoundDecisions, mostFound } from '../inspection/decision-ring.ts'
import type { PrimaryHandlers, WorkerProcess } from './fork-worker.ts'

/** The decisions that all workers keep, as those of one gateway. */
export interface MergedDecisions extends Decisions {
  /** From a worker. */
  receive: PrimaryHandlers['decisions']
  /** Tells a new worker who follows. */
  join(worker: WorkerProcess): void
}

/** A worker that does not answer in this time has no part in the answer. In ms. */
const timeoutMs = 1_500

export const createMergedDecisions = (workers: () => readonly WorkerProcess[]): MergedDecisions => {
  const followers = new Map<number, { filter: DecisionFilter; follower: DecisionFollower }>()
  let last = 0
  return {
    async find(filter, limit) {
      const ask = (worker: WorkerProcess) =>
        worker
          .call('findDecisions', { filter, limit }, timeoutMs)
          .catch((): FoundDecisions => ({ decisions: [], more: false }))
      return merge(await Promise.all(workers().map(ask)), limit)
    },
    follow(filter, follower, replay) {
      const id = ++last
      followers.set(id, { filter, follower })
      const all = workers()
      const part = replay && { ...replay, most: Math.floor(replay.most / Math.max(all.length, 1)) }
      for (const worker of all) worker.tell('followDecisions', { follower: id, filter, ...(part && { replay: part }) })
      return () => {
        if (!followers.delete(id)) return
        for (const worker of workers()) worker.tell('unfollowDecisions', { follower: id })
      }
    },
    receive({ follower: id, records, lost, old }) {
      const follower = followers.get(id)?.follower
      if (lost > 0) follower?.lost(lost)
      if (records.length > 0) follower?.decisions(records, old)
    },
    join(worker) {
      for (const [follower, { filter }] of followers) worker.tell('followDecisions', { follower, filter })
    },
  }
}

/** By time, newest first. */
const merge = (answers: readonly FoundDecisions[], limit: number): FoundDecisions => {
  const sorted = answers.flatMap(({ decisions }) => decisions).sort((one, other) => other.time - one.time)
  let size = 0
  const decisions = sorted.slice(0, limit).filter(({ bytes }) => {
    size += bytes.length
    return size <= mostFound
  })
  return { decisions, more: decisions.length < sorted.length || answers.some(({ more }) => more) }
}
